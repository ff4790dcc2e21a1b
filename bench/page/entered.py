"""From Enter in the text's field to the new map: what a visitor waits for besides the model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.made.captions import texts
from bench.page.stage import RUNS, STORE, WARM_UP, Measurement, Stage, medians

LETTERS = 42  # of a sentence of some 12 tokens

# Runs in the page: when the key went down, the answer came, and the frame with the new map was painted.
WATCH = f"""async () => {{
  {STORE}
  const at = (name) => (window.__at[name] = performance.now());
  document.addEventListener('keydown', () => (window.__at = {{}}, at('entered')), {{ capture: true }});
  store.follow(['translation'], () => at('answered'));
  store.follow(['drawCount'], () => requestAnimationFrame(() => setTimeout(() => at('painted'), 0)));
}}"""


def entered(stage: Stage) -> Iterator[Measurement]:
    """Another sentence each time. The model's own time is the one that the page tells."""
    page = stage.app_page()
    page.wait_for_selector(".detail .heatmaplayer image")
    page.evaluate(WATCH)
    box = page.locator("#source-text textarea")
    sentences = sorted(texts(400, "de"), key=lambda text: abs(len(text) - LETTERS))
    found: dict[str, list[float]] = {}
    for text in sentences[: WARM_UP + RUNS]:
        box.fill(text)
        box.press("Enter")
        page.wait_for_function("window.__at?.painted")
        at = page.evaluate("window.__at")
        facts = page.locator(".atlas-translation .facts").text_content() or ""
        model = float(re.search(r"([\d.]+) ms on", facts)[1])
        parts = {
            "answer": at["answered"] - at["entered"] - model,
            "paint": at["painted"] - at["answered"],
            "above_model": at["painted"] - at["entered"] - model,
            "model": model,
        }
        for name, value in parts.items():
            found.setdefault(f"entered_{name}", []).append(value)
    yield from medians(found)
    page.context.close()

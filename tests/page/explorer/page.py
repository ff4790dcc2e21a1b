"""Fixtures and helpers for browser tests of the explorer: serve it alone, over given traces, and read what it draws."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import gradio as gr
import numpy as np
import pytest
from playwright.sync_api import Page, TimeoutError

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz import shell
from attention_atlas.viz.explorer import explorer
from attention_atlas.viz.explorer.explorer import explorer_payload
from attention_atlas.viz.explorer.overlays import OVERLAYS
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.panels.scene import Selection
from attention_atlas.viz.questions import registry
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces
from attention_atlas.viz.wire.address import link_fields
from attention_atlas.viz.words import for_page
from tests.page.browser import use_modules

NO_MODELS = SimpleNamespace(by_digest=lambda digest: None)  # stands in for Translators: the traces need no model
KEYS = {AttentionKind.CROSS: "1", AttentionKind.ENCODER_SELF: "2", AttentionKind.DECODER_SELF: "3"}
DRAWN = """() => {
  const [{ z }] = document.querySelector('.atlas-explorer .detail .heatmap').data;
  const texts = (kind) => [...document.querySelectorAll(`.atlas-explorer .detail .axis-label.${kind} bdi`)]
    .map((n) => n.textContent);
  const heading = document.querySelector('.heading-line').textContent;
  return { z, rows: texts('row'), columns: texts('column'), heading };
}"""
# Plotly draws a map once its canvas is painted.
PLOTTED = """() => [...document.querySelectorAll('.atlas-explorer .detail .heatmap')]
  .every((plot) => plot.data && plot.style.visibility !== 'hidden')"""
SHOWN = ".field.history select option:checked"  # the sentence that is shown
Z_ERROR = 5e-4  # of a place on the colour bar: the page gets weights as 16-bit numbers

COUNT_DOWNLOADS = """() => {
  if (window.__handed !== undefined) return;
  const { click } = HTMLAnchorElement.prototype;
  window.__handed = 0;
  HTMLAnchorElement.prototype.click = function () {
    if (this.download) window.__handed += 1;
    return click.call(this);
  };
}"""


def explorer_page(*traces) -> shell.Page:
    """Build a page with only the explorer. It shows the first trace; links open the others by their sentence."""
    with gr.Blocks(analytics_enabled=False) as demo:
        explorer.add_explorer(explorer_payload(None, traces[0], Selection()))
    context = Context(NO_MODELS, Traces(NO_MODELS))
    for trace in traces:
        context.traces.add(trace)
    registry.load_all()
    return shell.Page(demo, context)


def show(page: Page, trace: TranslationTrace) -> None:
    """Show another translation, as the answer to a question does, and wait until it is drawn."""
    use_modules(page, "store/store.js")
    drawn = page.evaluate("atlas.store.state.drawCount")
    page.evaluate("map => atlas.store.set({ translation: { map } })", for_page(explorer_payload(None, trace)))
    page.wait_for_function("drawn => atlas.store.state.drawCount > drawn", arg=drawn)


def select(page: Page, **selection: object) -> None:
    """Select another head, as another part of the page does."""
    use_modules(page, "store/store.js")
    page.evaluate("selection => atlas.store.set({ selection })", selection)


def wait_for_selection(page: Page, **selection: object) -> None:
    """Wait until this is selected on the whole page."""
    use_modules(page, "store/store.js")
    page.wait_for_function(
        "fields => Object.entries(fields).every(([name, value]) => atlas.store.state.selection[name] === value)",
        arg=selection,
    )


@pytest.fixture(scope="module")
def explorer_urls() -> dict[tuple[str, ...], str]:
    """The addresses of the explorers that were served for a module, by their traces, overlays and formats."""
    return {}


@pytest.fixture()
def serve_traces(serve, explorer_urls, monkeypatch):
    """Return a function that serves an explorer over traces, once for each module."""

    def start(*traces) -> str:
        def translate(context: Context, address: Address | None, fields: dict) -> dict:
            trace = next(trace for trace in traces if trace.source_text == fields["text"])
            return {"map": explorer_payload(None, trace)}

        monkeypatch.setitem(registry.QUESTIONS, "page_translate", registry.Question(translate, "translate"))
        key = (*(trace.key for trace in traces), *OVERLAYS, *FORMATS)
        if key not in explorer_urls:
            explorer_urls[key] = serve(explorer_page(*traces))
        return explorer_urls[key]

    return start


@pytest.fixture()
def open_traces(serve_traces, open_page):
    def start(*traces, fragment: str | None = None, **options):
        """Open a page with an explorer of these traces. fragment: None for the model's pieces, with special tokens."""
        if fragment is None:
            fields = link_fields(traces[0], traces[0].decoding)
            fragment = f"#{urlencode({name: value for name, value in fields.items() if value})}"
        page = open_page(serve_traces(*traces) + fragment, **options)
        page.wait_for_selector(".atlas-explorer .thumbnail")
        page.wait_for_selector(".atlas-explorer .detail .plot")
        return page

    return start


def drawn(page) -> dict:
    """Return the map that Plotly draws: `z` [rows, columns], places on the colour bar from 0 to 1 (NaN: hidden), and
    `rows`, `columns` and `heading`."""
    page.wait_for_function(PLOTTED)
    plot = page.evaluate(DRAWN)
    plot["z"] = np.array(plot["z"], float)
    return plot


def status(page) -> str:
    return page.inner_text(".atlas-explorer .status").replace("\xa0", " ")


def view_options(page) -> None:
    """Open the "View options" if they are closed."""
    if page.locator(".atlas-explorer .view-options:not([open])").count():
        page.locator(".atlas-explorer .view-options summary").click()


def choose(page, label: str, value: str) -> None:
    view_options(page)
    page.locator(f".atlas-explorer .field:has(> span:text-is('{label}')) select").select_option(value)


def download(page: Page, name: str, folder: Path) -> bytes:
    """Press the export button of this name, save the file in the folder and return its bytes.

    Chromium drops the eleventh download that a page starts within two seconds, so a test must not start more than ten.
    On a busy machine it sometimes drops another one: the download is retried once, but only if the page did start it.
    """
    page.evaluate(COUNT_DOWNLOADS)
    for attempt in range(2):
        handed = page.evaluate("window.__handed")
        try:
            with page.expect_download(timeout=15000) as started:
                page.locator(".exports button", has_text=name).click()
            break
        except TimeoutError:
            assert attempt == 0 and page.evaluate("window.__handed") == handed + 1, page.inner_text(".status")
    path = folder / started.value.suggested_filename
    started.value.save_as(path)
    return path.read_bytes()

"""Record the animation of README.md from the page: python -m bench.animation [--out docs/app.webp]

Each state of the page is one picture, shown as long as it takes to read, whatever the speed of the machine.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from attention_atlas.model.program import CommandLine, run_program
from bench.common import ROOT
from bench.load import APP, running_server
from bench.page.stage import LOCALE, launch_chromium

SENTENCE = "Der kleine Hund schläft unter dem Tisch."
SIZE, WIDTH = (1280, 900), 1000  # CSS pixels of the page, pixels of the animation
SECONDS, LARGEST = 12, 1_500_000  # bytes
CELLS = ".atlas-explorer .detail .heatmaplayer image"


def scenes(page: Page) -> Iterator[int]:
    """Bring the page from state to state; yield the milliseconds for which each is shown."""
    box = page.locator("#source-text textarea, #source-text input").first
    box.fill("")
    words = SENTENCE.split(" ")
    for count in range(1, len(words) + 1):
        box.fill(" ".join(words[:count]))
        yield 190
    page.locator("#translate").click()
    page.wait_for_function(
        "text => document.querySelector('.atlas-explorer .field.history select')"
        "?.selectedOptions[0]?.textContent.includes(text)",
        arg=words[-2],
    )
    page.wait_for_selector(CELLS)
    yield 1300
    for layer, head in ((0, 0), (1, 3), (2, 5), (3, 6), (2, 2)):
        page.locator(f".thumbnail[data-layer='{layer}'][data-head='{head}']").click()
        page.wait_for_function(
            "name => document.querySelector('.heading-line').textContent.includes(name)",
            arg=f"{layer + 1} · Head {head + 1}",
        )
        yield 650
    for view, milliseconds in (("lines", 1500), ("text", 1300), ("map", 600)):
        page.locator(f".detail-head button[data-value='{view}']").click()
        yield milliseconds
    page.locator("#tab-stepper-button").click()
    page.locator(".atlas-stepper .candidate").first.wait_for()
    yield 1300
    page.locator(".atlas-stepper .candidate").nth(1).click()
    page.wait_for_timeout(1500)
    yield SECONDS * 1000  # cut to the time that is left


def pictures(page: Page) -> tuple[list[Image.Image], list[int]]:
    """Return a picture of each state and its milliseconds, SECONDS in all."""
    frames, durations = [], []
    for milliseconds in scenes(page):
        page.mouse.move(0, 0)
        page.wait_for_timeout(400)  # until transitions have ended
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frames.append(picture.resize((WIDTH, WIDTH * SIZE[1] // SIZE[0]), Image.Resampling.LANCZOS))
        durations.append(min(milliseconds, SECONDS * 1000 - sum(durations)))
    return frames, durations


def write(frames: list[Image.Image], durations: list[int], path: Path) -> None:
    """Write an animated WebP that repeats. Raises ValueError if it is larger than a page should load."""
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=75, method=6)
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes, more than {LARGEST:,}")


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.animation", __doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "app.webp", help="default docs/app.webp")
    args = parser.parse_args(argv)
    with running_server(*APP) as (port, _), sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        page = browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, locale=LOCALE).new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{port}/?__theme=light")
        page.wait_for_selector(CELLS)
        frames, durations = pictures(page)
        browser.close()
    write(frames, durations, args.out)
    print(f"{args.out.name}: {len(frames)} pictures, {sum(durations) / 1000:g} s, {args.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    run_program(main)

"""The explorer alone on a page, for the tests that drive it in a real browser."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
from playwright.sync_api import Page, TimeoutError

from model.trace.kinds import AttentionKind
from viz.questions import registry
from viz.questions.registry import Context
from viz.questions.traces import Traces
from viz.ui import explorer
from viz.ui.component import Component, serve_web_files
from viz.ui.header import Header
from viz.ui.rpc import told
from viz.ui.server import ask
from viz.ui.session import Selection, Session

NO_MODELS = SimpleNamespace(made=lambda digest: None)  # in the place of Translators: the traces are all there is
KEYS = {AttentionKind.CROSS: "1", AttentionKind.ENCODER_SELF: "2", AttentionKind.DECODER_SELF: "3"}
DRAWN = """() => {
  const plot = document.querySelector('.atlas-explorer .detail .plot');
  const texts = (kind) => [...document.querySelectorAll(`.atlas-explorer .detail .axis-label.${kind} bdi`)]
    .map((n) => n.textContent);
  const { z, zmin, zmax } = plot.data[0];
  return { z, limits: [zmin, zmax], rows: texts('row'), columns: texts('column'),
    heading: document.querySelector('.heading-line').textContent };
}"""

# Plotly draws another sentence's maps once their sketches are painted.
PLOTTED = """() => [...document.querySelectorAll('.atlas-explorer .plot')]
  .every((plot) => plot.data && plot.style.visibility !== 'hidden')"""

# Contents come to a component as JSON: those that say what is chosen, and nothing else.
NOTE_HEARD = """() => {
  const { parse } = JSON;
  window.__heard = [];
  JSON.parse = (...given) => {
    const found = parse(...given);
    if (found?.selection && Object.keys(found).length === 1) window.__heard.push(found.selection.head);
    return found;
  };
}"""

COUNT_DOWNLOADS = """() => {
  if (window.__handed !== undefined) return;
  const { click } = HTMLAnchorElement.prototype;
  window.__handed = 0;
  HTMLAnchorElement.prototype.click = function () {
    if (this.download) window.__handed += 1;
    return click.call(this);
  };
}"""


def page_of(*traces):
    """The explorer alone over these traces: a button moves on to the next one, another chooses the first head."""
    serve_web_files()
    with gr.Blocks(analytics_enabled=False) as demo:
        state, selection, count = gr.State(traces[0]), gr.State(Selection()), gr.State(0)
        text = gr.Textbox(label="Sentence", elem_id="text")
        result = Component("translation", None, events=("translate", "fill", "open"))
        chosen = gr.Textbox(label="Selection", elem_id="selection")
        following = gr.Button("Next", elem_id="next")
        gr.Button("Elsewhere", elem_id="elsewhere").click(lambda: Selection(), [], [selection])
        selection.change(lambda s: f"{s.kind.value} {s.layer} {s.head} {s.query} {s.key}", [selection], [chosen])

        context = Context(NO_MODELS, Traces(NO_MODELS))
        session = Session(state, selection, context.traces)
        explorer.build(None, Header(session, traces[0], Selection(), result, gr.Dropdown(visible=False), print))

        shown = next(one for one in demo.blocks.values() if one.elem_id == "explorer")

        def move_on(count: int, selected: Selection):
            trace = traces[(count + 1) % len(traces)]
            return trace, count + 1, told(**explorer.sent(None, trace, selected))

        def restore(selected: Selection, event: gr.EventData):
            trace = next(one for one in traces if one.source_text == event._data["text"])
            return event._data["text"], trace, told(**explorer.sent(None, trace, selected))

        following.click(move_on, [count, selection], [state, count, shown])
        result.translate(restore, [selection], [text, state, shown])
    for trace in traces:
        context.traces.add(trace)
    registry.load_all()
    ask.answer_from(demo, context)
    return demo


@pytest.fixture()
def serve_traces(serve):
    """A server that a page is still connected to waits for it for seconds: what asks for this one before a browser's
    page ends it after that."""
    demos = []

    def start(*traces) -> str:
        demos.append(page_of(*traces))
        return serve(demos[-1])

    yield start
    for demo in demos:
        demo.close(verbose=False)


@pytest.fixture()
def open_traces(serve_traces, open_page):
    def start(*traces, fragment: str = "", **options):
        page = open_page(serve_traces(*traces) + fragment, **options)
        page.wait_for_selector(".atlas-explorer .thumbnail")
        page.wait_for_selector(".atlas-explorer .detail .plot image")
        return page

    return start


def drawn(page) -> dict:
    page.wait_for_function(PLOTTED)
    found = page.evaluate(DRAWN)
    found["z"] = np.array([[np.nan if v is None else v for v in row] for row in found["z"]])
    return found


def status(page) -> str:
    return page.inner_text(".atlas-explorer .status").replace("\xa0", " ")


def view_options(page) -> None:
    """Open what is rarely asked for, where it is not open."""
    if page.locator(".atlas-explorer .view-options:not([open])").count():
        page.locator(".atlas-explorer .view-options summary").click()


def choose(page, label: str, value: str) -> None:
    view_options(page)
    page.locator(f".atlas-explorer .field:has(> span:text-is('{label}')) select").select_option(value)


def wait_for_heard(page: Page, *heads: int) -> None:
    """Until the explorer has been told that these heads are chosen, one after the other, since NOTE_HEARD ran."""
    page.wait_for_function("heads => JSON.stringify(window.__heard) === JSON.stringify(heads)", arg=list(heads))


def download(page: Page, name: str, folder: Path) -> bytes:
    """What the button of this name gives; the file is left in the folder.

    Chromium drops the eleventh file that a page hands to it within two seconds: a test asks for no more than ten. A
    busy one sometimes drops another (seen once in some forty runs). It may be asked once more, but only if the page did
    its part.
    """
    page.evaluate(COUNT_DOWNLOADS)
    for attempt in range(2):
        handed = page.evaluate("window.__handed")
        try:
            with page.expect_download(timeout=15000) as given:
                page.locator(".exports button", has_text=name).click()
            break
        except TimeoutError:
            assert attempt == 0 and page.evaluate("window.__handed") == handed + 1, page.inner_text(".status")
    path = folder / given.value.suggested_filename
    given.value.save_as(path)
    return path.read_bytes()

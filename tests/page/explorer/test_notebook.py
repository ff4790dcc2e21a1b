"""Explorers in the cells of a saved notebook, opened in a browser without a server."""

from __future__ import annotations

import pytest

from attention_atlas import viz
from tests.page.browser import no_violations

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_a_saved_notebook_opens_without_a_server(open_page, tiny_translator, tmp_path):
    traces = [tiny_translator.translate(text) for text in ("Der kleine Hund.", "Ich trinke Tee.")]
    first, other, both = (
        explorer._repr_html_()
        for explorer in (
            viz.explore(traces[0], viz.View("encoder_self", 1, 2)),
            viz.explore(traces[1]),
            viz.compare(*traces),
        )
    )
    path = tmp_path / "saved.html"
    path.write_text(
        '<!doctype html><meta charset="utf-8"><body style="background: #111">'
        + "".join(f"<div>{part}</div>" for part in (other, both, first)),
        encoding="utf-8",
    )
    page, requests = open_page("about:blank"), []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    drawn = [page.locator("iframe").nth(i).content_frame for i in range(3)]
    for inside in drawn:
        inside.locator(".detail .plot").first.wait_for(state="attached")
    size = drawn[2].locator(".detail .plot").evaluate("plot => [plot.height, plot.width]")
    assert tuple(size) == traces[0].encoder_self.weights[1, 2].shape
    assert drawn[1].locator(".compare-title").all_inner_texts() == [trace.source_text for trace in traces]
    assert all(inside.locator("body").get_attribute("class") == "dark" for inside in drawn), "as dark as the notebook"
    for inside in drawn:  # the frame is as high as its content
        tall = inside.locator("html").evaluate("node => [node.scrollHeight, innerHeight]")
        assert tall[0] <= tall[1], tall
    page.keyboard.press("m")  # a key pressed in the notebook must not reach an explorer
    assert drawn[1].locator(".compare-title").count() == 2
    assert not [url for url in requests if url.startswith(("http", "ws"))]


@pytest.mark.long
def test_a_comparison_saved_as_a_file_is_accessible(open_page, tiny_translator, tmp_path):
    traces = [tiny_translator.translate(text) for text in ("Der kleine Hund.", "Ich trinke Tee.")]
    viz.compare(*traces).save(tmp_path / "two.html")
    page = open_page((tmp_path / "two.html").as_uri())
    page.locator(".compare-title").nth(1).wait_for()
    assert page.locator("h1").count() == 2
    no_violations(page)

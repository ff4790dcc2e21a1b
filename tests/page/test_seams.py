"""What is added in one place is at work in the browser: an export format."""

from __future__ import annotations

import numpy as np
import pytest

from tests.page.explorer_page import choose, download
from viz.export.formats import FORMATS, Format, Scope
from viz.maps.reduce import View, score_map

pytestmark = pytest.mark.browser

RAW = Format("application/x-raw", "The numbers alone", map=Scope(
    lambda taken: taken.map.values.astype("<f4").tobytes(), lambda data: np.frombuffer(data, "<f4")))
COUNT = Format("text/plain", "How many tokens", trace=Scope(
    lambda taken: f"{len(taken.trace.source_ids)} to {len(taken.trace.target_ids)}".encode(), lambda data: {}))


def test_a_registered_format_has_its_button(open_traces, hand_made_trace, monkeypatch, tmp_path):
    monkeypatch.setitem(FORMATS, "raw", RAW)
    monkeypatch.setitem(FORMATS, "count", COUNT)
    page = open_traces(hand_made_trace)
    names = page.locator(".exports button").all_inner_texts()
    assert names == ["PNG", "SVG", *(name.upper() for name in FORMATS), "Copy link"] and "RAW" in names
    assert page.locator(".exports button", has_text="RAW").get_attribute("title") == "The numbers alone"
    assert download(page, "COUNT", tmp_path) == b"8 to 6"
    page.locator(".thumbnail[data-layer='2'][data-head='1']").click()
    choose(page, "Tokens", "words")
    choose(page, "Heads", "max")
    view = View("cross", 2, 1, combine="max", words=True, predicted=True)
    assert np.array_equal(RAW.map.read(download(page, "RAW", tmp_path)),
                          score_map(hand_made_trace, view).values.ravel())
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".count", ".raw"]

"""Each stop of each tour, opened by its link on a fresh page: its claim and its picture show the same number."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz.tours import guide
from attention_atlas.viz.tours.tour import Stop, tours
from tests.page.tour.test_tours import answer, at_stop, english_text
from tests.viz.tours.test_stops import SHOWN

pytestmark = pytest.mark.browser

EVERY = tours()
# Where each tab shows the number of a claim: the pinned cell, the cell of the selected head, the headline.
SEEN = {"explorer": ".atlas-explorer .status", "heads": ".survey .chosen", "why": "#why-question .headline"}


def numbers(text: str) -> list[float]:
    """Return all numbers in a text, percentages as shares."""
    matches = re.findall(r"([−-]?\d+(?:\.\d+)?)(\s?%)?", text.replace(",", ""))
    return [float(number.replace("−", "-")) / (100 if percent else 1) for number, percent in matches]


def compared(stop: Stop, claim: dict | None) -> tuple[str, ...]:
    """Return the names of a claim's values that the picture shows as numbers."""
    if not claim or not stop.pinned or stop.claim.measure not in SHOWN:
        return ()
    return () if stop.claim.measure == "without_head" and stop.open["tab"] == "explorer" else SHOWN[stop.claim.measure]


def texts(page: Page, tab: str, measure: str) -> list[str]:
    """Return the texts that show a claim's number; for a head that is switched off, the labels of the heads' cells."""
    if measure == "without_head":
        cells = page.locator("#panel-why-heads [role=gridcell], #panel-why-heads .cell")
        return cells.evaluate_all("nodes => nodes.map((node) => node.ariaLabel ?? node.title ?? '')")
    return page.locator(SEEN[tab]).locator("visible=true").all_inner_texts()


def contains(texts: list[str], value: str) -> bool:
    """Return whether one of the texts contains this number, up to rounding and sign."""
    (expected,) = numbers(value)
    return any(abs(abs(number) - abs(expected)) <= 0.0051 for text in texts for number in numbers(text))


EACH = [(name, direction) for name, tour in EVERY.items() for direction in tour.directions]
SAMPLE = {("heads", "de-en"), ("attention", "en-fr")}  # the others run in `make endure`


@pytest.mark.parametrize(
    ("name", "direction"),
    [pytest.param(*case, marks=pytest.mark.long if case in SAMPLE else pytest.mark.endure) for case in EACH],
)
def test_a_stop_and_its_picture_show_the_same_number(app_url, open_page, shipped_translators, name, direction):
    tour, count = EVERY[name], 0
    for number, stop in enumerate(tour.stops, 1):
        page = open_page(f"{app_url}#tour={name}&stop={number}&direction={direction}")
        payload = guide.stop_payload(shipped_translators, EVERY, {"tour": name, "stop": number, "direction": direction})
        if stop.ask:
            answer(page, payload["ask"], right=True)
        at_stop(page, number, len(tour.stops))
        if claim := payload["claim"]:
            expect(page.locator(".atlas-tour .claim:visible")).to_contain_text(english_text(claim["text"]))
        for value in compared(stop, claim):
            text, place = english_text(claim["text"].values[value]), (page, payload["open"]["tab"], stop.claim.measure)
            matches = (contains(texts(*place), text) or page.wait_for_timeout(500) for _ in range(40))
            assert any(matches), (stop.title, value, text, texts(*place))
            count += 1
    assert count or not any(compared(stop, {}) for stop in tour.stops)

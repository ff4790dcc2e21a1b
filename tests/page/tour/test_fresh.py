"""Each stop of each tour on a page of its own, as a link opens it: what it says and what stands there is one number."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz.tours import guide
from attention_atlas.viz.tours.tour import Stop, tours
from tests.page.tour.test_tours import answer, at_stop, shown
from tests.viz.tours.test_stops import SHOWN

pytestmark = pytest.mark.browser

EVERY = tours()
# Where the number that a stop is about is seen, by its tab: what is pinned, the cell of the chosen head, the headline.
SEEN = {"explorer": ".atlas-explorer .status", "heads": ".survey .chosen", "why": "#why-question .headline"}


def numbers(text: str) -> list[float]:
    """All that are written, percents as shares."""
    found = re.findall(r"([−-]?\d+(?:\.\d+)?)(\s?%)?", text.replace(",", ""))
    return [float(number.replace("−", "-")) / (100 if percent else 1) for number, percent in found]


def compared(stop: Stop, claim: dict | None) -> tuple[str, ...]:
    """The names of a claim's values that the picture shows as numbers."""
    if not claim or not stop.pinned or stop.claim.measure not in SHOWN:
        return ()
    return () if stop.claim.measure == "without_head" and stop.open["tab"] == "explorer" else SHOWN[stop.claim.measure]


def texts(page: Page, tab: str, measure: str) -> list[str]:
    """What is written there; of a head that is switched off, what its cell is called."""
    if measure == "without_head":
        cells = page.locator("#panel-why-heads [role=gridcell], #panel-why-heads .cell")
        return cells.evaluate_all("nodes => nodes.map((node) => node.ariaLabel ?? node.title ?? '')")
    return page.locator(SEEN[tab]).locator("visible=true").all_inner_texts()


def says(found: list[str], value: str) -> bool:
    (wanted,) = numbers(value)
    return any(abs(abs(one) - abs(wanted)) <= 0.0051 for text in found for one in numbers(text))


EACH = [(name, direction) for name, tour in EVERY.items() for direction in tour.directions]
SAMPLE = {("heads", "de-en"), ("attention", "en-fr")}  # the rest in make endure


@pytest.mark.parametrize(
    ("name", "direction"),
    [pytest.param(*one, marks=pytest.mark.long if one in SAMPLE else pytest.mark.endure) for one in EACH],
)
def test_a_stop_and_its_picture_say_one_number(app_url, open_page, shipped_translators, name, direction):
    tour, seen = EVERY[name], 0
    for number, stop in enumerate(tour.stops, 1):
        page = open_page(f"{app_url}#tour={name}&stop={number}&direction={direction}")
        found = guide.stop_payload(shipped_translators, EVERY, {"tour": name, "stop": number, "direction": direction})
        if stop.ask:
            answer(page, found["ask"], right=True)
        at_stop(page, number, len(tour.stops))
        if claim := found["claim"]:
            expect(page.locator(".atlas-tour .claim:visible")).to_contain_text(shown(claim["text"]))
        for value in compared(stop, claim):
            said, about = shown(claim["text"].values[value]), (page, found["open"]["tab"], stop.claim.measure)
            stands = (says(texts(*about), said) or page.wait_for_timeout(500) for _ in range(40))
            assert any(stands), (stop.title, value, said, texts(*about))
            seen += 1
    assert seen or not any(compared(stop, {}) for stop in tour.stops)

"""The panels on heads in a real browser: the survey of all heads, a head's card, word links, and taking a survey."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from attention_atlas.model.analysis.survey import run as surveys
from attention_atlas.model.trace.alignment import parse_links
from tests.page.browser import no_faults, no_violations, save_file, screenshot
from tests.page.lab.test_lab import open_panel

pytestmark = pytest.mark.browser

PARTS = (surveys.PAGE_LINKED + surveys.PAGE_SENTENCES) // surveys.PAGE_WINDOW + 1
HEADS = 96  # of the shipped models: 4 + 4 layers, 3 kinds of attention, 8 heads


@pytest.mark.long
def test_all_heads_by_the_keyboard_on_a_narrow_dark_page(app_url, open_app) -> None:
    page = open_app(app_url, width=390, dark=True)
    panel = open_panel(page, "More", "All heads")
    view = panel.get_by_label("show as")
    expect(panel.locator(".head-cell")).to_have_count(HEADS // 3)
    screenshot(page, "heads-grid-390-dark")
    panel.locator(".survey-controls select").nth(1).select_option("cross")  # for which "previous token" is not defined
    expect(panel.locator(".head-cell", has_text=re.compile(r"\d\.\d\d"))).to_have_count(HEADS // 3)
    view.select_option("scatter")
    expect(panel.locator("circle")).not_to_have_count(0)
    no_violations(page, "#panel-heads-survey")
    screenshot(page, "heads-scatter-390-dark")
    view.select_option("table")
    rows = panel.locator(".survey tbody tr")
    expect(rows).to_have_count(HEADS)
    column = panel.get_by_role("button", name=re.compile("^confidence"))
    column.press("Enter")
    scores = [float(text) for text in rows.locator("td:nth-child(3)").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    names = panel.get_by_label("heads named")
    for option in range(2, names.locator("option").count()):  # the first name that some heads have and others do not
        names.select_option(index=option)
        if 0 < (named := rows.count()) < HEADS:
            break
    expect(panel.locator(".survey .count")).to_have_text(f"{named} of {HEADS} heads")
    rows.first.get_by_role("button").press("Enter")
    expect(panel.get_by_role("columnheader", name="random rows")).to_be_visible()
    slider = panel.get_by_role("slider")
    slider.focus()
    slider.press("Home")  # threshold 0: all heads that differ from chance
    expect(rows.nth(named)).to_be_attached()
    no_faults(page, "#panel-heads-survey", name="heads-card-390-dark")
    card = panel.locator(".slot .text").first.inner_text()
    kind, layer, head = re.match(r"(.+), layer (\d+), head (\d+)", card).groups()
    panel.get_by_role("button", name="Open this head in the explorer").press("Enter")
    expect(page.locator("#explorer .heading-line")).to_have_text(f"Layer {layer} · Head {head}")
    expect(page.locator("#explorer .thumbnails")).to_have_attribute("aria-label", re.compile(f"^{kind}"))
    place = page.locator(f"#explorer .thumbnail[data-layer='{int(layer) - 1}'][data-head='{int(head) - 1}']")
    expect(place).to_have_attribute("aria-label", re.compile(r"; over 2,000 sentences: .* 0\.\d\d"))
    expect(place.locator(".mark")).to_contain_text(re.compile(r"\S"))
    page.locator("#explorer .help-button").click()
    expect(page.locator("dialog.help dl").last).to_contain_text(place.locator(".mark").text_content().split()[0])
    page.keyboard.press("Escape")
    screenshot(page, "heads-marks-390-dark")


@pytest.mark.long
def test_word_links_are_edited_saved_and_used_to_score_every_head(app_url, open_app) -> None:
    page = open_app(app_url)
    panel = open_panel(page, "More", "Word links")
    sides = [panel.get_by_role("group", name=name) for name in ("source", "target")]
    lines = panel.locator(".link-stage line")
    words = sides[1].get_by_role("button").count()
    expect(lines).to_have_count(words)
    panel.get_by_role("button", name="Clear links").press("Enter")
    expect(lines).to_have_count(0)
    for state in ("linked", "possibly linked"):
        for side in sides:
            side.get_by_role("button").first.press("Enter")
        expect(panel.get_by_role("status")).to_have_text(re.compile(f": {state}$"))
    for side in sides:
        side.get_by_role("button").nth(1).press("Enter")
    talp, pharaoh = (
        save_file(panel.get_by_role("button", name=name)).read_text(encoding="utf-8")
        for name in ("Save as hand-made links (talp)", "Save the links (Pharaoh)")
    )
    gold = parse_links(talp, first=1)
    assert (gold.sure, gold.possible) == ({(1, 1)}, {(0, 0), (1, 1)}) and parse_links(pharaoh).sure == {(1, 1)}
    panel.get_by_role("button", name="Score every head by these links").press("Enter")
    expect(panel.locator(".slot tbody tr")).to_have_count(10)
    expect(panel.locator(".slot .heatmap")).to_have_count(2)
    no_violations(page, "#panel-heads-links")
    screenshot(page, "heads-links-1280")
    source = page.get_by_role("combobox", name="Links from").locator("visible=true")
    for name, note in (("its layer's contributions", "(ALTI)"), ("the selected head, by length", "Length of weight")):
        source.select_option(label=name)
        expect(panel).to_contain_text(note)
    page.get_by_label("the token it writes").locator("visible=true").check()
    expect(panel).to_contain_text("Each row stands for the token written.")
    open_panel(page, "More", "Search by example")
    no_violations(page, "#panel-heads-search")


@pytest.mark.long
def test_a_survey_is_taken_stopped_and_taken_again(tiny_url, open_app) -> None:
    page = open_app(tiny_url)
    panel = open_panel(page, "More", "All heads")
    begin, stop = panel.locator(".take .begin"), panel.get_by_role("button", name="Stop")
    expect(begin).to_have_text(f"Survey {surveys.PAGE_SENTENCES} sentences")
    begin.press("Enter")
    expect(stop).to_be_focused()
    expect(panel.get_by_role("status")).to_contain_text(f"of {PARTS} parts")
    assert panel.get_by_role("progressbar").get_attribute("max") == str(PARTS)
    no_violations(page, "#panel-heads-survey")
    stop.press("Enter")
    expect(begin).to_be_focused()
    expect(panel.get_by_role("progressbar")).to_have_count(0)
    begin.press("Enter")
    expect(panel.locator(".head-cell").first).to_be_visible(timeout=60_000)
    expect(panel.get_by_text(f"{surveys.PAGE_SENTENCES} of this project's own sentences.")).to_be_visible()
    panel.locator(".head-cell").first.press("Enter")
    expect(panel.get_by_role("button", name="Open this head in the explorer")).to_be_visible()
    screenshot(page, "heads-own-survey-1280")

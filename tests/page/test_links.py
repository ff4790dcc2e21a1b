"""Links restore the survey of heads, the stepper's step and interventions; hostile links run nothing."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_atlas import viz
from attention_atlas.model.trace.edits import Add
from tests.page.browser import CLIPBOARD, ELEMENTS, FIELD, no_violations, screenshot, translate
from tests.page.test_stepper import act, idle, step, written

pytestmark = pytest.mark.browser

FIRST, SECOND = "Zwei Katzen sitzen auf dem Dach.", "Die alte Frau kauft frisches Brot."


def follow(page: Page, text: str, **fields: str) -> None:
    link = urlencode({"text": text, "direction": "de-en", "checkpoint": "de-en", **fields})
    page.evaluate("link => { location.hash = link; }", link)


def copy_link(page: Page, part: str) -> dict[str, str]:
    """Press "Copy link" in a part of the page, and return the fields of the link."""
    page.evaluate("navigator.clipboard.writeText('')")
    page.locator(part).get_by_role("button", name="Copy link").click()
    address = page.wait_for_function("navigator.clipboard.readText().then((text) => text)").json_value()
    return {name: value for name, (value,) in parse_qs(address.split("#")[1]).items()}


@pytest.mark.long
def test_a_link_restores_the_survey_and_the_step(app_url, open_page, shipped_translators) -> None:
    translator = shipped_translators["de-en"]
    survey = {
        "tab": "heads",
        "panel": "heads-survey",
        "kind": "encoder_self",
        "layer": "2",
        "head": "3",
        "statistic": "previous",
    }
    page = open_page(f"{app_url}#{urlencode({'text': FIRST, 'direction': 'de-en', **survey})}", **CLIPBOARD)
    panel = page.locator("#panel-heads-survey")
    card = panel.locator(".slot .text").first
    expect(card).to_contain_text("Encoder self-attention, layer 2, head 3")
    view, kind, statistic = (panel.locator(".survey-controls select").nth(i) for i in range(3))
    expect(kind).to_have_value("encoder_self")
    expect(statistic).to_have_value("previous")
    expect(panel.locator(".head-cell.chosen b")).to_have_text("2.3")
    view.select_option("table")
    panel.locator(".survey tbody button").first.click()
    place = re.search(r"(\d+)\.(\d+)$", panel.locator(".survey tbody button").first.inner_text()).groups()
    expect(card).to_contain_text("layer {}, head {}".format(*place))
    fields = copy_link(page, "#panel-heads-survey")
    assert {"text": FIRST, "checkpoint": "de-en", "statistic": "previous", "view": "table"}.items() <= fields.items()
    assert (fields["layer"], fields["head"]) == place

    follow(page, FIRST, **{**survey, "kind": "roof", "statistic": "roof", "head": "99", "view": "grid"})
    expect(panel.locator(".head-cell").first).to_be_visible()
    expect(statistic).to_have_value("previous")  # the link's statistic does not exist
    expect(card).to_contain_text("layer {}, head {}".format(*place))  # nor does its head
    expect(panel.locator("[aria-busy=true]")).to_have_count(0)  # busy parts are pale, and would fail on contrast
    no_violations(page, "#panel-heads-survey")
    screenshot(page, "links-survey-1280")

    follow(page, SECOND, tab="stepper", step="4")
    stepper = page.locator(".atlas-stepper")
    expect(stepper).to_have_attribute("data-step", "3")
    own = translator.translate(SECOND, "de-en")
    assert re.sub(r"\W", "", own.translation) in re.sub(r"\W", "", written(page))
    assert {"text": SECOND, "tab": "stepper", "step": "4"}.items() <= copy_link(page, ".atlas-stepper").items()
    follow(page, FIRST, tab="stepper", step="3")  # another sentence, which is translated first
    expect(stepper.locator(".sentences")).to_contain_text("Katze")
    expect(stepper).to_have_attribute("data-step", "2")
    idle(page)

    own = translator.translate(FIRST, "de-en")
    act(page, ".candidate", 1)
    expect(stepper.get_by_role("button", name="Copy link")).to_be_hidden()  # a link cannot hold a forced token
    assert step(page) == 3
    follow(page, FIRST, tab="stepper", step="2")
    expect(stepper).to_have_attribute("data-step", "1")
    idle(page)
    expect(stepper.get_by_role("button", name="Copy link")).to_be_visible()
    assert re.sub(r"\W", "", own.translation) in re.sub(r"\W", "", written(page))
    screenshot(page, "links-stepper-1280")
    follow(page, FIRST, tab="stepper", step="999")
    expect(stepper.locator("[data-move=next]")).to_be_disabled()


def test_a_link_restores_interventions(app_url, open_page, shipped_translators) -> None:
    """The link is made in Python. Its intervention survives a reload, and a link without one removes it."""
    translator = shipped_translators["de-en"]
    rng = np.random.default_rng(3)
    noise = {"encoder.1.resid_post": Add(rng.normal(size=translator.config.d_model), 10.0, positions=(0, 1))}
    with translator.edit(noise) as edited:
        trace = edited.translate(FIRST)
    plain = translator.translate(FIRST)
    assert trace.translation != plain.translation
    page = open_page(f"{viz.link(trace, app_url)}&tab=stepper&step=3", **CLIPBOARD)
    stepper, translation = page.locator(".atlas-stepper"), page.locator("#translation-text")
    expect(stepper).to_have_attribute("data-step", "2")
    expect(translation).to_have_text(trace.translation)
    fields = copy_link(page, ".atlas-stepper")
    assert fields["interventions"] == parse_qs(viz.link(trace).split("#")[1])["interventions"][0]
    page.reload()
    expect(translation).to_have_text(trace.translation)
    follow(page, FIRST, interventions="{")
    expect(page.locator(".atlas-translation .notice.error")).to_contain_text("JSON")
    follow(page, FIRST)
    expect(translation).to_have_text(plain.translation)


def test_the_address_follows_the_view_and_back_leads_to_the_sentence_before(app_url, open_page) -> None:
    page = open_page(app_url)
    source = page.locator(".atlas-translation .source")
    page.wait_for_selector(".atlas-explorer .detail .heatmaplayer image")
    opening = source.inner_text()
    assert "#" not in page.url
    page.locator(".thumbnail[data-layer='2'][data-head='4']").click()
    page.wait_for_function("location.hash.includes('layer=3&head=5')")
    steps = page.evaluate("history.length")
    for text in (FIRST, SECOND):
        translate(page, text)
        page.wait_for_function("text => new URLSearchParams(location.hash.slice(1)).get('text') === text", arg=text)
    page.locator("#tab-more-button").click()
    page.wait_for_function("location.hash.includes('tab=more')")
    assert page.evaluate("history.length") == min(steps + 2, 50)  # Chromium keeps at most 50 entries
    page.go_back()
    expect(source).to_have_text(FIRST)
    expect(page.locator(".heading-line")).to_have_text("Layer 3 · Head 5")
    page.go_forward()
    expect(source).to_have_text(SECOND)
    page.reload()
    expect(source).to_have_text(SECOND)
    assert page.evaluate("history.length") == min(steps + 2, 50)
    page.locator(".display summary").click()
    page.locator(".display select").nth(1).select_option("dark")
    for text in (FIRST, opening):  # earlier entries of the history name another theme
        page.go_back()
        expect(source).to_have_text(text)
        expect(page.locator(FIELD)).to_have_value(text)
        assert page.url.startswith(f"{app_url}?__theme=dark#")


LINKED = (
    *("text", "direction", "checkpoint", "tab", "panel", "kind", "layer", "head", "view", "heads", "words", "special"),
    *("colours", "range", "coverage", "query", "key", "compare", "changes", "step", "presents", "tour", "sheet"),
)


@pytest.mark.long
def test_hostile_links_and_session_storage_open_the_page_and_run_nothing(tiny_url, open_app) -> None:
    """`open_page` also fails on requests to other hosts, dialogs and console errors."""
    hostile = ("<img src=x onerror=window.hacked=1>", "javascript:window.hacked=1", "__proto__", "-1", "9" * 400, "%00")
    page = open_app(tiny_url)
    elements = page.evaluate(ELEMENTS)
    for number, field in enumerate(LINKED):
        for value in (hostile[number % len(hostile)], hostile[(number + 2) % len(hostile)], hostile[0]):
            follow(page, **{"text": FIRST, field: value})
            page.wait_for_timeout(50)
    page.evaluate("location.hash = '%E0%A4%A&=&&text=%&__proto__[a]=1&' + 'x'.repeat(100000)")
    hostile_state = '{"hash": "", "view": 5, "typed": [], "asked": {"text": "<img src=x onerror=hacked=1>"}}'
    for state in ('"x"', "{", hostile_state):
        page.evaluate("state => sessionStorage.setItem('atlas-left', state)", state)
        page.goto(f"{tiny_url}#{urlencode({'text': hostile[0], 'tab': hostile[1]})}")
        page.reload()
        page.wait_for_selector("#translation-text", state="attached")
        assert page.evaluate("window.hacked ?? null") is None
        assert page.evaluate("({}).a ?? null") is None
        assert page.evaluate(ELEMENTS) <= elements + 2
    follow(page, FIRST)
    expect(page.locator(".atlas-explorer")).to_be_visible()
    expect(page.locator(FIELD)).to_have_value(FIRST)

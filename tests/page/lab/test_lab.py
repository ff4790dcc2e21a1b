"""Open every panel in a real browser, with a shipped checkpoint, and compare some of them with the model."""

from __future__ import annotations

import json
import re

import pytest
import sacrebleu
from playwright.sync_api import Page, expect

from attention_atlas.model.trace.interventions import positions_off
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.positions.breaking import BREAKS
from tests.page.browser import no_violations, open_tab, screenshot

pytestmark = pytest.mark.browser

TABS = {str(tab.title): [str(panel.title) for panel in registry.PANELS[tab.name]] for tab in registry.TABS}
PAPERS = {
    (str(tab.title), str(panel.title)): panel.paper for tab in registry.TABS for panel in registry.PANELS[tab.name]
}
PLACES = {
    (str(tab.title), str(panel.title)): [
        (str(place.title), f"#{tab.name}-tabs"),
        *([(str(panel.title), f"#{tab.name}-{place.name}-tabs")] if place is not panel else []),
    ]
    for tab in registry.TABS
    for place, panels in tab.places()
    for panel in panels
}  # (tab, panel) -> the tabs to click, as (title, strip)
# Panels of the tab Inside: one for each kind of place, and all the others. Links name them, so these names stay.
OF_INSIDE = (
    "map space kernels residual",
    "embedding plain projections attention scale scoring masks heads race add-norm feed-forward logits",
)
DRAWN = """() => { const seen = [...document.querySelectorAll('.atlas-panel')].filter(p => p.offsetParent);
  return seen.length === 1 && Number(seen[0].dataset.drawn) > 0 && seen[0].getAttribute('aria-busy') === 'false'; }"""


# Turn the page dark or light as Gradio does, and wait until everything has been drawn in its colours.
TURN = """(dark) => new Promise((done) => {
  document.body.classList.toggle("dark", dark);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
    setTimeout(done, 0);
  }));
})"""


def open_panel(page: Page, tab: str, panel: str):
    """Open a panel, wait for its content and return its element."""
    open_tab(page, tab)
    if tab == "Why" and not page.locator("#why-tabs").is_visible():
        page.locator("#why-fold > summary").click()
        expect(page.locator("#why-tabs")).to_be_visible()
    for title, strip in PLACES[tab, panel]:
        open_tab(page, title, strip)
    page.wait_for_function(DRAWN)
    return page.locator(".atlas-panel:visible")


def start(open_page, url: str, **options) -> Page:
    page = open_page(url, **options)
    page.wait_for_selector("#translation-text")
    return page


# Read in one call, because a panel that arrives in parts may replace its table between two calls.
DISPLAYS = "(panel) => Array.from(panel.querySelectorAll('td, th'), (cell) => getComputedStyle(cell).display)"
# Which panels of a tab are opened.
WALKED = {"ends": lambda panels: [panels[0], panels[-1]], "between": lambda panels: panels[1:-1], "all": list}


@pytest.mark.long
@pytest.mark.parametrize(
    ("width", "dark", "walked"),
    [
        (390, True, "ends"),
        (390, True, "between"),
        (1280, False, "all"),
    ],
)
def test_every_panel_works_before_any_interaction(app_url, open_page, width, dark, walked) -> None:
    """axe-core checks each panel on a narrow dark page and on a wide light one, and the first panel of each tab in both
    colours."""
    page, explained = start(open_page, app_url, width=width, dark=dark), set()
    for tab, panels in TABS.items():
        for name in WALKED[walked](panels):
            panel = open_panel(page, tab, name)
            heading = page.locator("[role=tabpanel] .atlas-prose:visible")
            expect(heading.get_by_role("heading", level=2)).to_have_count(1)
            terms = heading.locator(".term").all()
            assert all(len(term.get_attribute("aria-description")) > 20 for term in terms)
            explained |= {term.inner_text() for term in terms}
            assert len(heading.inner_text()) > 60
            assert heading.locator("a").get_attribute("href") == PAPERS[tab, name]
            assert panel.locator(".failed").count() == 0
            words = panel.inner_text()
            for token in panel.locator(".token", has_text=re.compile("null|undefined")).all_inner_texts():
                words = words.replace(token, "")  # a piece of the vocabulary
            assert not re.search(r"undefined|\bNaN\b|\[object|null", words), f"{name}: {words[:200]}"
            lacks = panel.locator(":scope > *").count() == 1  # a need's words alone
            has_content = re.search(r"\d", words) or panel.locator("button").count() or lacks
            assert has_content, f"{name}: no number, nothing to click"
            for figure in panel.locator(".figure").all():
                expect(figure.locator(".main-svg").first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the page"
            displays = set(panel.evaluate(DISPLAYS))
            assert displays <= {"table-cell"}, f"{name}: {displays}"
            # The surroundings of a panel are the same in all of a tab: check them once.
            first = name == panels[0]
            part = None if first else panel.locator("xpath=ancestor::*[@role='tabpanel'][1]")
            for now_dark in (dark, not dark) if first else (dark,):
                page.evaluate(TURN, now_dark)
                no_violations(page, part, colours=now_dark != dark)
                screenshot(page, f"lab-{name.replace(' ', '-').lower()}-{'dark' if now_dark else 'light'}-{width}")
            page.evaluate(TURN, dark)
    no_violations(page, hidden=True)
    assert walked != "all" or {"query", "key", "value"} <= explained, "terms are explained where a text first uses them"


def test_figures_are_written_in_the_page_s_colour(app_url, open_page) -> None:
    """The colour changes when the page turns dark: one grey for both has a contrast of only 3.8 on white."""
    page = start(open_page, app_url)
    text = open_panel(page, "Positions", "Table").locator(".figure .xtick text").first
    for dark, colour in ((False, "rgb(86, 97, 116)"), (True, "rgb(163, 173, 189)")):
        page.evaluate(TURN, dark)
        expect(text).to_have_css("fill", colour)
    page.evaluate(TURN, False)


def test_panels_show_the_models_values(app_url, open_page, shipped_translators) -> None:
    page = start(open_page, app_url)
    translator = next(iter(shipped_translators.values()))
    trace = translator.translate(page.locator("#source-text textarea, #source-text input").first.input_value())

    boxes = open_panel(page, "Inside", "Map").locator(".station .shape").all_inner_texts()
    source, target, config = len(trace.source_ids), len(trace.target_ids), translator.config
    assert f"{config.num_heads} × {target} × {source}" in boxes
    assert f"{target} × {config.vocabulary_size:,}" in boxes

    panel = open_panel(page, "Positions", "Table")
    drawn = panel.locator(".figure").evaluate("e => Array.from(e._fullData[0].z, row => Array.from(row))")
    assert json.dumps(drawn[5]) == json.dumps([float(v) for v in translator.model.source_positions.table[5].tolist()])

    panel = open_panel(page, "Positions", "Break it")
    plain, broken = (translator.translate(BREAKS, interventions=change) for change in (None, positions_off()))
    assert panel.locator(".card p").all_inner_texts() == [plain.translation, broken.translation]
    assert panel.locator(".bar-row").count() == len(plain.target_ids)

    panel = open_panel(page, "Verify", "BLEU")
    reference = translator.examples[trace.direction][0].reference
    score = sacrebleu.sentence_bleu(trace.translation, [reference]).score
    assert panel.locator("dd").first.inner_text() == f"{score:.1f}"
    page.locator("#bleu-reference textarea, #bleu-reference input").first.fill("")
    expect(panel).to_contain_text("nothing to compare with")

    panel = open_panel(page, "Verify", "Verify")
    expect(panel.locator(".text.good")).to_contain_text("checks passed")
    # The panel was shown before, and checks again when it is shown again.
    expect(panel.locator(".verdict.no, .verdict.waiting")).to_have_count(0)


def test_a_box_of_the_map_opens_its_panel(app_url, open_page) -> None:
    page = start(open_page, app_url)
    panel = open_panel(page, "Inside", "Map")
    assert panel.locator(".way.memory").count() == 1 and panel.locator(".plus").count() == 5
    bottom = page.locator(".flow").evaluate("(node) => node.getBoundingClientRect().bottom + scrollY")
    assert bottom <= 800, "whole on the first screen of a laptop"
    panel.get_by_role("button", name="cross-attention").click()
    expect(page.locator("#panel-attention .text").first).to_contain_text("Cross-attention")
    open_tab(page, "Map", "#inside-tabs")
    panel.get_by_role("button", name="feed-forward").last.click()
    expect(page.locator("#panel-feed-forward")).to_be_visible()
    page.wait_for_function(DRAWN)
    assert "hidden units" in page.locator(".atlas-panel:visible").inner_text()
    assert page.locator("[role=tabpanel]:visible input[type=radio]:checked:visible").input_value() == "decoder"


@pytest.mark.parametrize("names", [OF_INSIDE[0], pytest.param(OF_INSIDE[1], marks=pytest.mark.long)])
def test_links_open_every_panel_of_the_tab_inside(app_url, open_page, names) -> None:
    page = start(open_page, f"{app_url}#tab=inside&panel=add-norm&side=decoder&sublayer=2")
    expect(page.locator("#panel-add-norm .formula").first).to_contain_text("decoder layer 2, f = cross-attention")
    places = page.locator("#inside-tabs > .strip [role=tab]:visible").all_inner_texts()
    assert places == ["Map", "Embedding", "Attention", "Masks", "Layer", "Logits", "Experiments"]
    for name in names.split():
        page.evaluate("(name) => { location.hash = `#tab=inside&panel=${name}` }", name)
        expect(page.locator(f"#panel-{name}")).to_be_visible()


def test_an_open_panel_follows_the_sentence_and_the_controls(app_url, open_page, shipped_translators) -> None:
    page = start(open_page, app_url)
    panel = open_panel(page, "Inside", "Logits")
    expect(panel.locator(".text").first).to_contain_text("Step 1 of")
    box = page.locator("#source-text textarea, #source-text input").first
    box.fill("Der Hund schläft.")
    box.press("Enter")
    trace = next(iter(shipped_translators.values())).translate("Der Hund schläft.")
    expect(panel.locator(".text").first).to_contain_text(f"Step 1 of {len(trace.target_ids)},")
    expect(panel.locator("tbody tr.marked .token")).to_have_text(trace.target_tokens[0])
    page.locator("[role=tabpanel]:visible input[type=number]:visible").first.fill("2")
    page.keyboard.press("Tab")
    expect(panel.locator(".text").first).to_contain_text(f"Step 2 of {len(trace.target_ids)},")
    expect(panel.locator("tbody tr.marked .token")).to_have_text(trace.target_tokens[1])

"""Open every panel in a real browser, with a shipped checkpoint, and compare some of them with the model."""

from __future__ import annotations

import json
import re

import pytest
import sacrebleu
from playwright.sync_api import Locator, Page, expect

from attention_atlas.model.trace.interventions import positions_off
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.positions.breaking import FRAGILE
from tests.page.browser import FIELD, no_violations, open_tab, plain_title, screenshot, submit

pytestmark = pytest.mark.browser

TABS = {str(tab.title): [plain_title(str(panel.title)) for panel in tab.panels] for tab in registry.TABS}
STRIPS = {str(tab.title): f"#{tab.name}-tabs" for tab in registry.TABS}
# Panels of the tab Inside: one for each kind of place, and all the others. Links name them, so these names stay.
OF_INSIDE = (
    "map space kernels residual",
    "embedding plain projections attention scale scoring masks heads race add-norm feed-forward logits",
)
# Whether one panel is visible, and has its whole content or an error.
DRAWN = """() => {
  const [panel, ...others] = [...document.querySelectorAll('.atlas-panel')].filter((node) => node.offsetParent);
  return panel && !others.length && panel.getAttribute('aria-busy') === 'false'
    && (Number(panel.dataset.drawn) > 0 || panel.querySelector('.failed')); }"""


# Turn the page dark or light as Gradio does, and wait until everything has been drawn in its colours.
TURN = """(dark) => new Promise((done) => {
  document.body.classList.toggle("dark", dark);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
    setTimeout(done, 0);
  }));
})"""


def open_strip(page: Page, tab: str) -> list[str]:
    """Open a tab, and return the titles of the panels in its strip."""
    open_tab(page, tab)
    strip = page.locator(STRIPS[tab])
    if tab == "Why" and not strip.is_visible():
        page.locator("#why-fold > summary").click()
    expect(strip).to_be_visible()
    titles = strip.locator(".strip [role=tab]:visible").all_inner_texts()
    return [title for title in titles if title in TABS[tab]]


def open_panel(page: Page, tab: str, panel: str) -> Locator:
    """Open a panel, wait for its content and return its element."""
    open_strip(page, tab)
    open_tab(page, panel, STRIPS[tab])
    return wait_for_panel(page)


def wait_for_panel(page: Page) -> Locator:
    """Wait for the content of the visible panel, and return its element. Fail if it shows an error."""
    page.wait_for_function(DRAWN, timeout=90_000)  # on a busy machine: panels opened before it are computed first
    panel = page.locator(".atlas-panel:visible")
    assert panel.locator(".failed").all_inner_texts() == []
    return panel


# Read in one call, because a panel that arrives in parts may replace its table between two calls.
DISPLAYS = "(panel) => Array.from(panel.querySelectorAll('td, th'), (cell) => getComputedStyle(cell).display)"


@pytest.mark.parametrize(
    ("width", "dark"),
    [pytest.param(390, True, marks=pytest.mark.long), pytest.param(1280, False, marks=pytest.mark.endure)],
)
def test_every_panel_works_before_any_interaction(app_url, open_app, shipped_translators, width, dark) -> None:
    """axe-core checks each panel, and its contrasts in both colours.

    dark: how the first panel opens. Each of the others opens as the one before it was left, because turning the page
    takes as long as checking a panel.
    """
    page, explained = open_app(app_url, width=width, dark=dark), set()
    translator = next(iter(shipped_translators.values()))
    lacking = {entry["name"] for entry in registry.lacking(translator.translate("Der Hund."), translator)}
    for tab in registry.TABS:
        panels = [panel for panel in tab.panels if panel.name not in lacking]
        assert open_strip(page, str(tab.title)) == [plain_title(str(panel.title)) for panel in panels]
        for described in panels:
            name = str(described.title)
            panel = open_panel(page, str(tab.title), name)
            heading = page.locator("[role=tabpanel] .atlas-prose:visible")
            expect(heading.get_by_role("heading", level=2)).to_have_count(1)
            terms = heading.locator(".term").all()
            explained |= {term.get_attribute("data-term") for term in terms}
            assert len(" ".join(heading.all_inner_texts())) > 40
            assert heading.locator("a").get_attribute("href") == described.paper
            words = panel.inner_text()
            for token in panel.locator(".token", has_text=re.compile("null|undefined")).all_inner_texts():
                words = words.replace(token, "")  # a piece of the vocabulary
            assert not re.search(r"undefined|\bNaN\b|\[object|null", words), f"{name}: {words[:200]}"
            assert re.search(r"\d", words) or panel.locator("button").count(), f"{name}: no number, nothing to click"
            for figure in panel.locator(".figure").all():
                expect(figure.locator(".main-svg").first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the page"
            displays = set(panel.evaluate(DISPLAYS))
            assert displays <= {"table-cell"}, f"{name}: {displays}"
            # The surroundings of a panel are the same in all of a tab: check them once.
            first = described is panels[0]
            part = None if first else panel.locator("xpath=ancestor::*[@role='tabpanel'][1]")
            for turned in (False, True):
                if turned:
                    dark = not dark
                    page.evaluate(TURN, dark)
                no_violations(page, part, colours=turned)
                screenshot(page, f"lab-{name.replace(' ', '-').lower()}-{'dark' if dark else 'light'}-{width}")
    no_violations(page, hidden=True)
    assert {"query", "key", "value"} <= explained, "terms are explained where a text first uses them"


def test_panels_show_the_models_values(app_url, open_app, shipped_translators) -> None:
    page = open_app(app_url)
    translator = next(iter(shipped_translators.values()))
    trace = translator.translate(page.locator(FIELD).input_value())

    panel = open_panel(page, "More", "Table")
    drawn = panel.locator(".figure").evaluate("e => Array.from(e._fullData[0].z, row => Array.from(row))")
    assert json.dumps(drawn[5]) == json.dumps([float(v) for v in translator.model.source_positions.table[5].tolist()])
    for dark, colour in ((True, "rgb(163, 173, 189)"), (False, "rgb(86, 97, 116)")):
        page.evaluate(TURN, dark)  # one grey for both would have a contrast of only 3.8 on white
        expect(panel.locator(".figure .xtick text").first).to_have_css("fill", colour)

    panel = open_panel(page, "More", "Break it")
    plain, broken = (translator.translate(FRAGILE, interventions=change) for change in (None, positions_off()))
    assert panel.locator(".card p").all_inner_texts() == [plain.translation, broken.translation]
    assert panel.locator(".bar-row").count() == len(plain.target_ids)

    panel = open_panel(page, "More", "BLEU")
    reference = translator.examples[trace.direction][0].reference
    score = sacrebleu.sentence_bleu(trace.translation, [reference]).score
    assert panel.locator("dd").first.inner_text() == f"{score:.1f}"
    page.locator("#bleu-reference :is(textarea, input)").fill("")
    expect(panel).to_contain_text("To compare, type")

    panel = open_panel(page, "More", "Verify")
    expect(panel.locator(".text.good")).to_contain_text("checks passed")
    # The panel was shown before, and checks again when it is shown again.
    expect(panel.locator(".verdict.no, .verdict.waiting")).to_have_count(0)


@pytest.mark.parametrize("names", [OF_INSIDE[0], pytest.param(OF_INSIDE[1], marks=pytest.mark.long)])
def test_links_open_every_panel_of_the_tab_inside(app_url, open_page, names) -> None:
    page = open_page(f"{app_url}#tab=inside&panel=add-norm&side=decoder&sublayer=2")
    expect(page.locator("#panel-add-norm .formula").first).to_contain_text("decoder layer 2, f = cross-attention")
    for name in names.split():
        page.evaluate("(name) => { location.hash = `#tab=inside&panel=${name}` }", name)
        expect(page.locator(f"#panel-{name}")).to_be_visible()


def test_an_open_panel_follows_the_sentence_and_the_controls(app_url, open_app, shipped_translators) -> None:
    page = open_app(app_url)
    panel = open_panel(page, "Inside", "Logits")
    expect(panel.locator(".text").first).to_contain_text("Step 1 of")
    submit(page, "Der Hund schläft.")
    trace = next(iter(shipped_translators.values())).translate("Der Hund schläft.")
    expect(panel.locator(".text").first).to_contain_text(f"Step 1 of {len(trace.target_ids)},")
    expect(panel.locator("tbody tr.marked .token")).to_have_text(trace.target_tokens[0])
    page.locator("[role=tabpanel]:visible input[type=number]:visible").first.fill("2")
    page.keyboard.press("Tab")
    expect(panel.locator(".text").first).to_contain_text(f"Step 2 of {len(trace.target_ids)},")
    expect(panel.locator("tbody tr.marked .token")).to_have_text(trace.target_tokens[1])

"""The controls of a panel, set by pointer, keyboard, links and the server's answers."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import no_violations, open_tab, pick_example
from tests.page.lab.test_lab import open_panel

pytestmark = pytest.mark.browser

CONTROLS = """() => {
  window.events = [];
  const declared = {
    layer: { type: "slider", label: "Layer", info: "0: as selected", low: 0, high: 12, step: 1, start: 3 },
    side: { type: "choice", label: "Side", options: [["encoder", "reads"], ["decoder", "writes"]], start: "encoder" },
    kind: { type: "choice", label: "Kind", options: [["", "any"], ["cross", "Cross"]], start: "", folded: true },
    word: { type: "text", label: "Word", start: "", known: true, id: "a-word" },
  };
  window.controls = atlas.createControls("panel", declared, { label: "Go", id: "go" }, {
    onMove: () => events.push(controls.values()), onPress: () => events.push("pressed"),
  });
  document.body.append(controls.element);
}"""
SENTENCE = {"text": "Ein Hund.", "direction": "de-en", "digest": "1"}


@pytest.fixture()
def controls(open_modules) -> Page:
    page = open_modules("lab/controls.js", "store/store.js")
    page.evaluate("address => atlas.store.set({ address })", SENTENCE)
    page.evaluate(CONTROLS)
    return page


def values(page: Page) -> dict:
    return page.evaluate("controls.values()")


def test_controls_have_names_and_report_their_values(controls) -> None:
    assert values(controls) == {"layer": 3, "side": "encoder", "kind": ""}, "the server fills in the text"
    slider, number = (controls.get_by_role(role, name="Layer") for role in ("slider", "spinbutton"))
    slider.press("ArrowRight")
    expect(number).to_have_value("4")
    for text, value in (("99", 12), ("-1", 0), ("7", 7), ("", 3)):
        number.fill(text)
        number.press("Tab")
        assert values(controls)["layer"] == value == int(slider.input_value())
    controls.get_by_role("radiogroup", name="Side").get_by_label("writes").check()
    controls.get_by_role("combobox", name="Kind").select_option(label="Cross")
    controls.get_by_role("textbox", name="Word").fill("Boot")
    assert values(controls) == {"layer": 3, "side": "decoder", "kind": "cross", "word": "Boot"}
    assert controls.evaluate("events").pop() == values(controls)
    controls.get_by_role("button", name="Go").click()
    controls.get_by_role("textbox", name="Word").press("Enter")
    assert controls.evaluate("events").pop() == "pressed" == controls.evaluate("events.at(-2)")


def test_a_link_sets_controls_within_their_bounds_without_a_request(controls) -> None:
    assert not controls.evaluate("controls.set({ panel: 'x', text: 'y' })")
    assert controls.evaluate("controls.set({ layer: '5', side: 'decoder', kind: 'cross', word: '<b>Boot' })")
    assert values(controls) == {"layer": 5, "side": "decoder", "kind": "cross", "word": "<b>Boot"}
    controls.evaluate("controls.set({ layer: '9e99', side: 'roof', kind: '__proto__', word: '' })")
    assert values(controls) == {"layer": 12, "side": "decoder", "kind": "cross", "word": ""}
    assert controls.evaluate("events") == []


def test_an_answer_sets_the_ends_of_sliders_and_the_text_for_a_new_sentence(controls) -> None:
    word = controls.get_by_role("textbox", name="Word")
    controls.evaluate("controls.update({ controls: { layer: 3, word: 'Hund' }, ends: { layer: 2 } })")
    expect(word).to_have_value("Hund")
    assert values(controls)["layer"] == 2
    expect(controls.get_by_role("slider")).to_have_attribute("max", "2")
    word.fill("Boot")
    controls.evaluate("controls.update({ controls: { word: 'Hund' }, ends: { layer: 5 } })")
    expect(word).to_have_value("Boot")  # typed by the visitor
    controls.evaluate("address => atlas.store.set({ address })", {**SENTENCE, "target_ids": [1, 2]})
    assert values(controls)["word"] == "Boot", "another translation of the same sentence"
    controls.evaluate("address => atlas.store.set({ address })", {**SENTENCE, "text": "Eine Katze."})
    assert "word" not in values(controls)
    controls.evaluate("controls.update({ controls: { word: 'Katze' }, ends: {} })")
    expect(word).to_have_value("Katze")
    controls.evaluate("controls.update({ suggested: { word: 'Hund' } })")
    expect(word).to_have_attribute("placeholder", "Hund")
    word.fill("Boot")
    expect(word).to_have_attribute("placeholder", "")
    controls.evaluate("controls.update({ lacks: true })")
    expect(controls.locator("form")).to_be_hidden()


def test_a_link_sets_the_controls_of_its_panel(app_url, open_page) -> None:
    page = open_page(f"{app_url}#tab=inside&panel=feed-forward&side=decoder&layer=3")
    panel = page.locator("#panel-feed-forward .atlas-panel")
    expect(panel).to_contain_text("ayer 3")
    expect(page.get_by_role("radio", name="decoder (writes the target)")).to_be_checked()
    slider = page.get_by_role("slider", name="Layer")
    expect(slider).to_have_value("3")
    slider.press("ArrowLeft")
    expect(panel).to_contain_text("ayer 2")
    page.evaluate("location.hash = 'tab=inside&panel=feed-forward&side=encoder&layer=4'")
    expect(slider).to_have_value("4")
    expect(page.get_by_role("radio", name="encoder (reads the source)")).to_be_checked()
    expect(panel).to_contain_text("ayer 4")
    no_violations(page, "#tab-inside")


def test_a_panels_text_comes_from_its_link_and_then_follows_the_sentence(app_url, open_page) -> None:
    link = "text=Guten+Tag.&direction=de-en&tab=inside&panel=steer&towards=Ich+lese.&away=Ich+esse.&strength=100"
    page = open_page(f"{app_url}#{link}")
    expect(page.locator(".atlas-translation .source")).to_have_text("Guten Tag.")
    towards = page.get_by_role("textbox", name="Towards")
    expect(page.locator("#panel-steer .atlas-panel")).to_have_attribute("aria-busy", "false")
    expect(towards).to_have_value("Ich lese.")
    expect(page.get_by_role("slider", name="Strength in %")).to_have_value("100")
    pick_example(page, 1)
    expect(towards).not_to_have_value("Ich lese.")


def test_a_panel_shows_its_translation_in_all_tabs(app_url, open_app) -> None:
    page = open_app(app_url)
    panel = open_panel(page, "Inside", "Steering")
    steered = panel.locator(".card p").nth(1).inner_text()
    assert steered != page.locator("#translation-text").inner_text()
    panel.get_by_role("button", name="Show on every tab").click()
    expect(page.locator("#translation-text")).to_have_text(steered)
    open_tab(page, "Attention")
    expect(page.locator(".field.history select option")).to_have_count(2)

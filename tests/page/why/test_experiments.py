"""Experiments in a real browser: switching heads off, patching from a second sentence, cutting edges and circuits."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browser import no_faults, no_violations, submit
from tests.page.explorer.page import choose
from tests.page.lab.test_lab import open_panel

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_selected_heads_are_switched_off_for_every_tab(open_app, tiny_url) -> None:
    """By the keyboard alone, on a narrow and dark page."""
    page = open_app(tiny_url, width=390, dark=True)
    open_panel(page, "Why", "Heads")
    panel = page.locator("#panel-why-heads")
    cells = panel.locator("button.cell")
    expect(panel.get_by_text("Switched off one at a time")).to_be_visible()  # the end of the stream
    expect(cells).to_have_count(32)
    expect(panel.locator("button.cell.estimated")).to_have_count(0)
    cells.first.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(cells.nth(5)).to_have_attribute("aria-pressed", "true")
    expect(cells.nth(5)).to_be_focused()
    expect(panel.get_by_text("Together")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(panel.get_by_text("Sum of the single effects")).to_be_visible()
    no_faults(page, "#panel-why-heads", name="why-heads-390-dark")
    panel.get_by_role("button", name="Translate without these").press("Enter")
    back = panel.get_by_role("button", name="Back to the unchanged model's translation")
    expect(back).to_be_visible()
    expect(page.locator(".atlas-translation .facts")).to_contain_text("with a change to the model: ")
    back.press("Enter")
    expect(back).to_have_count(0)
    expect(page.locator(".atlas-translation .facts")).not_to_contain_text("with a change")


@pytest.mark.long
def test_the_smallest_set_and_a_second_sentence(open_app, tiny_url) -> None:
    page = open_app(tiny_url, width=390)
    open_panel(page, "Why", "Smallest set")
    panel = page.locator("#panel-why-smallest")
    expect(panel.get_by_role("button", name="heads alone")).to_be_visible()
    expect(panel.get_by_text("Order 3")).to_be_visible()
    expect(panel.get_by_role("button", name="Stop")).to_have_count(0)
    expect(panel.locator("[aria-busy=true]")).to_have_count(0)  # busy parts are pale, and would fail on contrast
    no_violations(page, "#panel-why-smallest")
    open_panel(page, "Why", "Patch")
    panel = page.locator("#panel-why-patch")
    panel.locator(".words button").nth(1).click()
    typed = page.get_by_label("Second sentence").locator("visible=true")
    expect(typed).not_to_have_value("")
    expect(panel.get_by_text("The second sentence, after the same words")).to_be_visible()
    expect(panel.get_by_role("grid")).to_be_visible()
    expect(panel.locator("[aria-busy=true]")).to_have_count(0)
    no_faults(page, "#panel-why-patch", name="why-patch-390")
    # Another sentence clears the second one, and the header is busy meanwhile.
    page.evaluate("""() => {
      const root = document.querySelector(".atlas-translation");
      window.states = [];
      new MutationObserver(() => states.push(root.getAttribute("aria-busy"))).observe(root, {
        attributeFilter: ["aria-busy"],
      });
    }""")
    submit(page, "Der Hund schläft.")
    expect(typed).to_have_value("")
    expect(panel.get_by_role("grid")).to_have_count(0)
    page.wait_for_function("window.states[0] === 'true' && window.states.at(-1) === 'false'")


def test_a_pinned_edge_is_cut_and_a_map_shows_the_effect_of_each_cut(open_page, tiny_url) -> None:
    page = open_page(tiny_url)
    page.wait_for_selector("#explorer .thumbnails")
    cut = page.locator("#explorer .cut")
    expect(cut).to_be_hidden()
    page.locator("#explorer .detail").focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    cut.get_by_label("What happens to the edge's weight").select_option("zero")
    cut.get_by_role("button", name="Cut this edge").press("Enter")
    expect(cut.get_by_text("With the same words written so far")).to_be_visible()
    choose(page, "Measure", "effect_if_cut")
    expect(page.locator("#explorer .heading-line")).to_contain_text("effect if cut")
    expect(page.locator("#explorer .status")).to_contain_text("nats, if cut")
    no_faults(page, "#explorer", name="explorer-cut")


@pytest.mark.long
def test_a_circuit_is_upright_on_a_phone_and_measured_by_keyboard(open_app, tiny_url) -> None:
    page = open_app(tiny_url, width=390, dark=True)
    open_panel(page, "Why", "Circuit")
    panel = page.locator("#panel-why-circuit")
    panel.locator(".words button").nth(1).click()
    picture, measured = panel.get_by_role("application"), panel.locator("[data-slot=measured]")
    expect(picture).to_have_attribute("data-upright", "true")
    expect(measured.locator(".facts")).to_be_visible()  # the largest edge is measured first
    largest = measured.locator(".text").inner_text()
    picture.focus()
    page.keyboard.press("ArrowRight")
    expect(panel.locator(".pictured [role=status]")).to_contain_text(largest.split(":")[0])
    page.keyboard.press("ArrowRight")
    expect(measured.locator(".text")).not_to_have_text(largest)
    expect(measured).to_have_attribute("aria-busy", "false")
    no_faults(page, "#panel-why-circuit", name="why-circuit-390-dark")
    panel.get_by_role("button", name="Cut all other edges and translate").press("Enter")
    expect(panel.locator(".cards .card")).to_have_count(3)
    panel.locator("summary").first.press("Enter")
    expect(panel.get_by_role("button", name="Measure").first).to_be_visible()
    no_violations(page, "#panel-why-circuit")

    page.set_viewport_size({"width": 1280, "height": 900})
    expect(picture).to_have_attribute("data-upright", "false")
    picture.focus()
    page.keyboard.press("ArrowLeft")  # the last of its nodes: a head
    page.keyboard.press("Enter")
    expect(page.locator("#tabs > .tab-wrapper").get_by_role("tab", name="Attention")).to_have_attribute(
        "aria-selected", "true"
    )


def test_a_circuit_is_pointed_at_and_asks_where_the_translations_part(open_app, tiny_url) -> None:
    page = open_app(tiny_url)
    open_panel(page, "Why", "Circuit")
    panel = page.locator("#panel-why-circuit")
    panel.locator(".words button").nth(1).click()
    picture, measured = panel.get_by_role("application"), panel.locator("[data-slot=measured]")
    expect(measured.locator(".facts")).to_be_visible()
    largest = measured.locator(".text").inner_text()
    picture.scroll_into_view_if_needed()
    x, y = page.evaluate(
        """() => {
          const [, , , point] = document.querySelectorAll("#panel-why-circuit .figure .points path");
          const { x, y, width, height } = point.getBoundingClientRect();
          return [x + width / 2, y + height / 2];
        }"""
    )
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)
    expect(measured.locator(".text")).not_to_have_text(largest)
    ask = panel.get_by_role("button", name="Ask about these")
    if ask.count():  # the panel suggests a question about another step
        ask.click()
        expect(ask).to_have_count(0)
        expect(picture).to_be_visible()

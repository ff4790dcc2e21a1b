"""The tab "Train" in a real browser: train, stop, resume and compare small models, and open one in the other tabs."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.page.browser import FIELD, choose_direction, no_faults, no_violations, open_tab, submit, translate

pytestmark = pytest.mark.browser
AT_LEAST = "n => Number(document.querySelector('.atlas-train').dataset.update) >= n"


def open_train(open_page, url: str, **options) -> Page:
    page = open_page(f"{url}#tab=train", **options)
    expect(page.locator("#train-corpus")).to_be_visible()
    return page


def press(page: Page, name: str) -> None:
    page.locator("#train").get_by_role("button", name=name, exact=True).click()


@pytest.mark.long
def test_two_setups_are_compared_and_the_first_opens_in_the_other_tabs(tiny_url, open_page):
    page = open_train(open_page, tiny_url)
    press(page, "Word order")
    press(page, "Compare with another setting")
    page.locator("#train-a-layers").select_option("1")
    page.locator("#train-b-network").select_option("gru")
    expect(page.locator("#train-b-heads")).to_be_disabled()
    press(page, "Train")
    page.wait_for_function(AT_LEAST, arg=30)
    press(page, "Stop")
    expect(page.locator("#train .status")).to_contain_text("Stopped at update")
    expect(page.locator("#train table tbody tr")).to_have_count(8)
    assert page.locator("#train .side.a canvas").count() == 4, "one layer of four heads"
    page.locator("#train-kind").select_option("alignment")
    assert page.locator("#train .side.b canvas").count() == 1
    page.locator("#train-kind").select_option("cross")
    assert page.locator("#train .side.b canvas").count() == 1, "its alignment is shown in place of cross-attention"
    expect(page.locator("#train .side.b h3")).to_have_text("Alignment")
    expect(page.locator("#train .chart .main-svg").first).to_be_visible()
    latest = page.locator("#train td").all_inner_texts()
    page.locator("#train-update").focus()
    page.keyboard.press("Home")
    expect(page.locator("#train output")).to_have_text("0")
    assert page.locator("#train td").all_inner_texts() != latest
    no_faults(page, "#train", name="train-light-1280")
    before = int(page.locator(".atlas-train").get_attribute("data-update"))
    press(page, "Resume")
    page.wait_for_function(AT_LEAST, arg=before + 1)
    press(page, "Stop")
    press(page, "Open setting A in the other tabs")
    expect(page.locator("#train .status")).to_contain_text("Links and files do not contain it")
    expect(page.locator(FIELD)).to_have_value("hund beißt mann")
    expect(page.locator("#direction input")).to_have_value("Your toy")
    submit(page, "hund beißt bier")
    expect(page.locator("#translation .notice.error")).to_contain_text("'bier' is not one of them")
    open_tab(page, "Attention")
    expect(page.locator("#explorer")).to_contain_text("Layer 1 · Head 1")
    translate(page, "mann beißt hund")
    expect(page.locator("#translation .notice.error")).to_have_count(0)
    open_tab(page, "Step by step")
    expect(page.locator("#stepper")).to_contain_text("mann")
    page.reload()
    expect(page.locator("#translation .source")).to_contain_text("mann beißt hund")
    expect(page.locator("#direction input")).to_have_value("Your toy")


@pytest.mark.long
def test_selecting_the_toy_before_training_says_that_there_is_none(tiny_url, open_app):
    page = open_app(tiny_url)
    choose_direction(page, "Your toy")
    expect(page.locator("#translation .notice.error")).to_contain_text("You have not opened one yet")
    submit(page, "hund")
    expect(page.locator("#translation .notice.error")).to_contain_text("You have not opened one yet")


@pytest.mark.long
def test_an_invalid_corpus_is_refused_on_a_narrow_dark_page(tiny_url, open_page):
    page = open_train(open_page, tiny_url, width=390, dark=True)
    page.locator("#train-corpus").fill("nur eine Seite")
    press(page, "Train")
    expect(page.locator("#train .failed")).to_contain_text("Line 1 is not a pair")
    page.locator("#train-corpus").fill("<b>x</b> ja | &amp; {{value}}")
    press(page, "Train")
    page.wait_for_function(AT_LEAST, arg=1)
    press(page, "Stop")
    expect(page.locator("#train tbody th")).to_have_text("<b>x</b> ja")
    no_faults(page, "#train", name="train-dark-390")


@pytest.mark.long
def test_a_classifier_and_a_next_word_model_show_the_maps_that_they_have(tiny_url, open_page):
    page = open_train(open_page, tiny_url)
    for corpus, network, kind, first in (
        ("Good or bad", "encoder", "encoder_self", "good"),
        ("Next word", "decoder", "decoder_self", "sleeps on the sofa"),
    ):
        press(page, corpus)
        expect(page.locator("#train-a-network")).to_have_value(network)
        press(page, "Train")
        expect(page.locator("#train td.right", has_text=first).first).to_be_visible(timeout=60_000)
        # The run may have ended by itself: the button is disabled then.
        page.locator("#train").get_by_role("button", name="Stop", exact=True).evaluate("button => button.click()")
        assert page.locator("#train-kind option").evaluate_all("nodes => nodes.map(n => n.value)") == [kind]
        assert page.locator("#train .side.a canvas").count() == 2 * 4
        press(page, "Open setting A in the other tabs")
        expect(page.locator("#train .failed")).to_contain_text("does not translate")
        expect(page.locator("#train .failed")).to_be_visible()
    press(page, "Word order")
    expect(page.locator("#train-a-network")).to_have_value("transformer")
    no_faults(page, "#train", name="train-corpora-1280")


@pytest.mark.long
def test_a_corpus_of_a_course_sets_its_network(tiny_url, open_page):
    page = open_train(open_page, tiny_url)
    press(page, "Beer and cola")
    values = {"d_model": "512", "layers": "6", "heads": "8", "optimizer": "sgd"}
    for name, value in values.items():
        expect(page.locator(f"#train-a-{name}")).to_have_value(value)
    assert page.locator("#train-a-rate").input_value() == "0.01"
    press(page, "Four looks at once")
    expect(page.locator("#train .corpus tbody tr")).to_have_count(4)
    expect(page.locator("#train-a-d_model")).to_have_value("64")


@pytest.mark.long
def test_the_loss_without_smoothing_stands_beside_the_minimised_one(tiny_url, open_page):
    page = open_train(open_page, tiny_url)
    page.locator("#train-a-label_smoothing").select_option("0.1")
    press(page, "Train")
    page.wait_for_function(AT_LEAST, arg=60)
    # The run may have ended by itself: the button is disabled then.
    page.locator("#train").get_by_role("button", name="Stop", exact=True).evaluate("button => button.click()")
    losses = page.locator("#train .losses")
    expect(losses).to_contain_text("cross-entropy")
    pattern = r"update ([\d,]+): training loss ([\d.]+\d); cross-entropy ([\d.]+\d)"
    update, minimised, plain = re.search(pattern, losses.inner_text()).groups()
    assert int(update.replace(",", "")) >= 50 and float(minimised) > float(plain) > 0
    expect(page.locator("#train .chart .legendtext", has_text="A: training loss")).to_have_count(1)


def test_the_drawer_of_switches_does_not_cover_the_actions(tiny_url, open_page):
    page = open_train(open_page, tiny_url)
    summary, drawer = page.locator("#train summary").first, page.locator("#train .drawer").first
    summary.click()
    expect(drawer).to_be_visible()
    box, actions = drawer.bounding_box(), page.locator("#train .actions").bounding_box()
    assert (box["y"], box["height"]) == (0, page.viewport_size["height"])
    assert actions["x"] + actions["width"] <= box["x"] + 1
    assert page.evaluate("document.documentElement.scrollHeight") < 1600
    no_violations(page, "#train")
    drawer.locator("select").first.focus()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(summary).to_be_focused()


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.endure)])
def test_a_check_box_shows_whether_it_is_on(tiny_url, open_page, dark):
    page = open_train(open_page, tiny_url, dark=dark)
    page.locator("#train details").first.evaluate("node => node.open = true")
    box = page.locator("#train input[type=checkbox]").first
    colours = {}
    for on in (False, True):
        box.evaluate("(box, on) => { box.checked = on; box.blur(); }", on)
        picture = Image.open(io.BytesIO(box.screenshot())).convert("RGB")
        inside = picture.crop((4, 4, picture.width - 4, picture.height - 4))
        colours[on] = np.asarray(inside, float).mean((0, 1))
    assert np.abs(colours[True] - colours[False]).max() > 40, colours

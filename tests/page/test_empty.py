"""A page that opens without a translation, and the BLEU reference of each sentence, in a real browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from attention_atlas.model import checkpoint
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from tests.page.browser import FIELD, no_faults, open_more, open_tab, pick_example, settle, translate
from tests.page.test_stepper import act, idle

pytestmark = pytest.mark.browser

INVITATION = "Nothing is translated yet. Type a sentence above and press Enter."
REFERENCE = "#bleu-reference :is(textarea, input)"


@pytest.fixture(scope="module")
def empty_url(serve, tiny_checkpoint: Path, tmp_path_factory) -> str:
    """Serve a checkpoint whose language has no examples; its name sorts before all others, so it is opened first."""
    folder = tmp_path_factory.mktemp("without") / "cs-en"
    shutil.copytree(tiny_checkpoint, folder, ignore=shutil.ignore_patterns(checkpoint.EXAMPLES))
    config = json.loads((folder / checkpoint.CONFIG).read_text(encoding="utf-8"))
    checkpoint.write_json(folder / checkpoint.CONFIG, {**config, "directions": ["cs-en"]})
    shutil.copytree(tiny_checkpoint, folder.parent / "tiny")
    return serve(shell.build(Translators.load(folder.parent, device="cpu")))


@pytest.mark.parametrize(("width", "dark"), [pytest.param(1280, False, marks=pytest.mark.long), (390, True)])
def test_every_tab_invites_until_there_is_a_sentence(empty_url, open_page, width, dark) -> None:
    page = open_page(empty_url, width=width, dark=dark)
    page.wait_for_selector(".atlas-translation .more")
    expect(page.locator(".atlas-translation .invitation")).to_have_text(INVITATION)
    expect(page.locator(".atlas-examples .example")).to_have_count(0)
    expect(page.locator(".atlas-explorer .invitation")).to_have_text(INVITATION)
    assert not page.locator(".atlas-explorer .panes").is_visible()
    page.evaluate("document.activeElement.blur()")
    for key in ("3", "ArrowDown", "l", "?"):  # no error without a map
        page.keyboard.press(key)
    no_faults(page, name=f"empty-{width}")
    if width < 600:
        return
    open_tab(page, "Step by step")
    expect(page.locator(".atlas-stepper .invitation")).to_have_text(INVITATION)
    open_tab(page, "Inside")
    expect(page.locator(".atlas-panel:visible")).to_have_text(INVITATION)
    open_more(page, "Verify")
    expect(page.locator(".atlas-panel:visible")).to_have_text(INVITATION)
    translate(page, "Der Hund.")
    expect(page.locator(".atlas-panel:visible .verdict.yes").first).to_be_visible()
    open_tab(page, "Step by step")
    expect(page.locator(".atlas-stepper .counter")).to_contain_text("Step 1")
    open_tab(page, "Attention")
    expect(page.locator(".atlas-explorer .panes")).to_be_visible()
    expect(page.locator(".atlas-explorer .thumbnail canvas").first).to_be_visible()
    assert page.locator(".invitation").count() == 0


def test_a_link_translates_its_sentence_on_an_empty_page(empty_url, open_page) -> None:
    page = open_page(f"{empty_url}#text=Der%20Hund.&direction=de-en&checkpoint=tiny&kind=cross&layer=2&head=3")
    expect(page.locator(".atlas-explorer .heading-line")).to_contain_text("Layer 2 · Head 3")
    assert page.locator(FIELD).input_value() == "Der Hund."


@pytest.mark.long
def test_bleu_compares_with_the_reference_of_its_own_sentence(tiny_url, open_page, tiny_translator) -> None:
    first, second = tiny_translator.examples["de-en"]
    assert first.reference and not second.reference
    page = open_page(f"{tiny_url}#tab=verify&panel=bleu")
    field, panel = page.locator(REFERENCE), page.locator("#panel-bleu .atlas-panel")
    expect(field).to_have_value(first.reference)
    expect(panel.locator(".card p").nth(1)).to_have_text(first.reference)
    pick_example(page, 1)
    expect(field).to_have_value("")
    expect(panel).to_contain_text("To compare, type")
    field.fill("A boat.")
    expect(panel.locator(".card p").nth(1)).to_have_text("A boat.")
    pick_example(page, 0)
    expect(field).to_have_value(first.reference)
    expect(panel.locator(".card p").nth(1)).to_have_text(first.reference)
    translate(page, "Der Hund.")
    expect(field).to_have_value("")
    expect(panel).to_contain_text("To compare, type")
    field.fill("A dog.")
    open_tab(page, "Step by step")
    idle(page)
    act(page, ".candidate", 2)  # another translation of the same sentence
    settle(page)
    open_tab(page, "More")
    expect(field).to_have_value("A dog.")

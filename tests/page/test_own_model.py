"""Imported models on the page, in a real browser: a small OPUS-MT model trained for seconds, and an NLLB model.

OPUS-MT's architecture differs from this project's: post-norm, sines before cosines in the position table, SiLU, a bias
on the logits, and a decoder that starts from the padding token. NLLB has 202 languages.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.trace import storage
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.export import standalone, table
from tests.conftest import SENTENCES
from tests.model.families import theirs
from tests.model.families.test_real_weights import taught, trained_marian
from tests.page.browser import choose_direction, no_faults, no_violations, screenshot, submit
from tests.page.explorer.page import download
from tests.page.lab.test_lab import TABS, open_panel, open_strip
from tests.page.test_stepper import act, idle

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("own model")]

TEXT = SENTENCES[0]
LINK = "#text={text}&direction=de-en&checkpoint=opus-mt-de-en&beam=5&kind=cross&layer=3&head=2"


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> Translators:
    folder = tmp_path_factory.mktemp("own")
    trained_marian(folder / "opus-mt-de-en")
    (folder / "opus-mt-de-en" / "README.md").write_text("---\nlicense: cc-by-4.0 <b>\n---\n", encoding="utf-8")
    theirs.nllb(folder / "nllb").save_pretrained(folder / "nllb")
    return Translators([Translator.load(folder / name, "cpu") for name in ("opus-mt-de-en", "nllb")])


@pytest.fixture(scope="module")
def url(imported, serve) -> str:
    return serve(shell.build(imported))


def passes_every_check(page: Page) -> None:
    panel = open_panel(page, "More", "Verify")
    expect(panel.locator(".text.good")).to_contain_text("checks passed", timeout=60_000)
    assert panel.locator(".verdict.no, .verdict.waiting").count() == 0


def test_an_opus_model_translates_and_names_its_decoding_and_licence(url, imported, open_page) -> None:
    translator = imported.all[0]
    page = open_page(url)
    expect(page.locator(".atlas-translation .invitation")).to_be_visible()  # it has no examples
    page.locator(".atlas-translation .more").click()  # the details
    page.locator("#decoding").select_option("5")
    submit(page, TEXT)
    expect(page.locator("#translation-text")).to_have_text(SENTENCES[1])  # its training target
    assert translator.translate(TEXT, beam=5).translation == SENTENCES[1]
    expect(page.locator(".atlas-translation .facts").first).to_contain_text("beam 5, ")
    expect(page.locator(".atlas-explorer .decoded")).to_have_text("Decoding: beam 5.")
    expect(page.locator(".atlas-translation .about")).to_contain_text(
        "Third-party model: opus-mt-de-en. Licence according to its model card: cc-by-4.0 <b>."
    )
    no_violations(page)
    passes_every_check(page)
    panel = open_panel(page, "Inside", "Whole model")
    expect(panel).to_contain_text("post-norm")
    expect(open_panel(page, "Inside", "Logits").locator(".formula")).to_contain_text("E·x+b")
    screenshot(page, "own-model")


def test_a_link_restores_the_model_the_beam_width_and_the_head(url, imported, open_page) -> None:
    page = open_page(url + LINK.format(text=TEXT.replace(" ", "+")))
    expect(page.locator(".atlas-explorer .heading-line")).to_have_text("Layer 3 · Head 2")
    expect(page.locator(".atlas-explorer .decoded")).to_have_text("Decoding: beam 5.")
    expect(page.locator("#decoding")).to_have_value("5")


def test_any_two_of_many_languages_are_selected_by_name(url, open_page) -> None:
    page = open_page(url)
    page.wait_for_selector(".atlas-translation .more")
    assert page.locator("#languages input").count() == 0
    choose_direction(page, "nllb")
    source, target = (page.locator(f"#languages input[data-side={side}]") for side in ("source", "target"))
    expect(source).to_have_value("English")
    expect(page.locator("#atlas-target option")).to_have_count(202)
    target.fill("zulu")  # in lower case
    target.press("Enter")
    expect(target).to_have_value("Zulu")
    page.locator("#languages .swap").click()
    expect(source).to_have_value("Zulu")
    source.fill("deu_Latn")
    source.press("Tab")
    expect(source).to_have_value("German")
    target.fill("no such language")
    target.press("Tab")
    expect(target).to_have_value("English")
    submit(page, "Der Hund")
    chips = page.locator(".atlas-translation .row")
    expect(chips.first.locator(".chip").first).to_have_text("deu_Latn")
    expect(chips.nth(1).locator(".chip").first).to_have_text("eng_Latn")
    page.set_viewport_size({"width": 390, "height": 900})
    no_faults(page, "#languages", name="languages-390")
    choose_direction(page, "German → English")
    expect(page.locator("#languages input")).to_have_count(0)


# Architecture -> how to make the model, changes to its configuration, and a word to force as the next token.
FORMS = {
    "opus": (theirs.marian, {}, "castle"),
    "t5": (theirs.t5, {"own_head": True, "feed_forward_proj": "gated-gelu"}, "the"),
    "bart": (theirs.bart, {"decoder_attention_heads": 2, "decoder_ffn_dim": 64}, "castle"),  # decoder unlike encoder
}


def models_of(form: str, imported: Translators, folder: Path) -> Translators:
    """Return the models for a page. The first has this architecture, and translates TEXT as it was trained to."""
    if form == "opus":
        models = imported
    else:
        make, changes, _ = FORMS[form]
        models = Translators([Translator.load(taught(folder / form, make, **changes), "cpu")])
    assert models.all[0].translate(TEXT).translation == SENTENCES[1]
    return models


# T5 is the least like ours, and runs in `make test-all`; the others run in `make endure`.
@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.long if form == "t5" else pytest.mark.endure) for form in FORMS]
)
def test_the_explorer_and_the_stepper_work_with_an_imported_model(form, imported, serve, open_page, tmp_path) -> None:
    models, forced = models_of(form, imported, tmp_path), FORMS[form][2]
    trace = models.all[0].translate(TEXT)
    page = open_page(serve(shell.build(models)))
    page.wait_for_selector(".atlas-translation .more")
    submit(page, TEXT)
    expect(page.locator("#translation-text")).to_have_text(trace.translation)

    for kind in ("2", "3", "1"):
        page.locator(".atlas-explorer .thumbnail").first.press(kind)
        for view in ("lines", "text", "compare", "map"):
            page.locator(f".atlas-explorer .segmented button[data-value={view}]").click()
    no_violations(page, ".atlas-explorer")
    from_npz = storage.from_npz(download(page, "NPZ", tmp_path))
    from_json = storage.from_json(download(page, "JSON", tmp_path).decode())
    from_html = standalone.from_html(download(page, "HTML", tmp_path).decode())
    for kind in trace.kinds:
        for weights in (from_npz.maps(kind).weights, from_json.maps(kind).weights, from_html[kind]):
            np.testing.assert_allclose(weights, trace.maps(kind).weights, atol=1e-6)
    assert from_npz.decoding == trace.decoding and from_json.decoded_by == "greedy"
    page.get_by_role("button", name="Show the model's pieces").click()
    rows, columns, values = table.from_csv(download(page, "CSV", tmp_path).decode())
    assert values.shape == (len(trace.target_ids), len(trace.source_ids)) == (len(rows), len(columns))
    for name in ("PNG", "SVG"):
        assert len(download(page, name, tmp_path)) > 1000

    page.locator("#tab-stepper-button").click()
    idle(page)
    act(page, ".candidate", 1)  # another first token
    assert page.locator(".atlas-stepper .tree .branch").count() == 2
    expect(page.locator(".atlas-stepper")).to_contain_text("Decoding: 1 token given, then greedy.")
    page.locator(".atlas-stepper .force input[type=text]").fill(forced)
    act(page, ".force [type=submit]")
    for name, part in (("compare", ".compared .pair"), ("lens", ".lens td")):
        page.locator(f"[data-panel={name}]").click()
        page.wait_for_selector(f".atlas-stepper {part}")
    page.locator("[data-panel=beam]").click()
    page.locator(".atlas-stepper .settings [type=submit]").click()
    page.wait_for_selector(".atlas-stepper .node.kept")
    act(page, ".node.kept", 2)
    page.locator("[data-panel=own]").click()
    page.locator(".atlas-stepper .own textarea").fill("The small dog sleeps.")
    act(page, ".own [type=submit]")
    expect(page.locator(".atlas-stepper")).to_contain_text("Decoding: chosen by you, not by the model.")
    no_violations(page)


# tests/viz/panels/test_lab.py tests what the panels contain for each family.
@pytest.mark.endure
@pytest.mark.parametrize("form", FORMS)
def test_every_panel_works_with_an_imported_model(form, imported, serve, open_page, tmp_path: Path) -> None:
    page = open_page(serve(shell.build(models_of(form, imported, tmp_path))))
    page.wait_for_selector(".atlas-translation .more")
    submit(page, TEXT)
    expect(page.locator("#translation-text")).to_have_text(SENTENCES[1])
    page.set_default_timeout(240_000)  # average heads are measured first, over a hundred sentences or so
    for tab in TABS:
        for name in open_strip(page, tab):
            text = open_panel(page, tab, name).inner_text()
            assert "undefined" not in text and "NaN" not in text, f"{tab}: {name}"
    passes_every_check(page)

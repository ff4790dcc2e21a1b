"""All panels without a browser: plain JSON, needs, controls, and values that agree with the model."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from attention_atlas.model.analysis.formulas.stages import dropped
from attention_atlas.model.analysis.positions import geometry
from attention_atlas.model.checks.verify import CHECKS
from attention_atlas.model.config import Activation, PositionCode
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.interventions import Interventions, heads_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from attention_atlas.viz.assets import WEB
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.panels import inside, menus, registry
from attention_atlas.viz.panels.formulas import last_pair, model_table
from attention_atlas.viz.panels.inside import attention
from attention_atlas.viz.panels.menus import SIDES
from attention_atlas.viz.panels.panel import Choice, Panel, Slider, Text
from attention_atlas.viz.panels.positions import breaking, table
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.panels.verify import checks
from attention_atlas.viz.questions.panels import page_panel, page_panel_translate, scene_of
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.codecs import ROOT
from attention_atlas.viz.words import for_page, say
from tests.conftest import build_tiny_model, make_translator
from tests.model.families import theirs
from tests.viz.panels import panels

TEXTS = (
    "Der kleine Hund schläft.",
    "</s> <img src=x onerror=alert(1)> ${alert(1)} {{value}} 😀 &amp;",
    " ".join(["Boot"] * 14),
)


@pytest.fixture(scope="module", params=TEXTS)
def scene(request, tiny_translator) -> Scene:
    return Scene(
        tiny_translator.translate(request.param), Selection(AttentionKind.DECODER_SELF, 2, 3, 1), tiny_translator
    )


def drawn_types() -> set[str]:
    """Return the types of blocks for which the page has a function, by the text of its script."""
    table = (WEB / "lab" / "blocks.js").read_text(encoding="utf-8").partition("export const BLOCKS = {")[2]
    return {*re.findall(r"(?m)^  (\w+)[:,]", table.partition("\n};")[0])}


DRAWN = drawn_types()
UNMEASURED = {"heads-phenomena"}  # needs a file of measurements, see test_trust.py
UNAVAILABLE = {"position-bias", *UNMEASURED}  # needs relative positions, see test_families.py


@pytest.fixture(scope="module", params=[TEXTS[0], *(pytest.param(text, marks=pytest.mark.long) for text in TEXTS[1:])])
def one_scene(request, tiny_translator) -> Scene:
    """A scene for tests that do not depend on the sentence."""
    return Scene(tiny_translator.translate(request.param), Selection(), tiny_translator)


def texts(content: object) -> list[str]:
    """Return every string inside blocks, except in figures."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, dict):
        return [text for key, value in content.items() if key != "figure" for text in texts(value)]
    return [text for value in content for text in texts(value)] if isinstance(content, (list, tuple)) else []


@pytest.mark.parametrize(
    ("scene", "every"),
    [
        (TEXTS[0], True),
        (TEXTS[1], False),
        (TEXTS[2], False),
        pytest.param(TEXTS[1], True, marks=pytest.mark.long),
        pytest.param(TEXTS[2], True, marks=pytest.mark.endure),
    ],
    indirect=["scene"],
)
@pytest.mark.parametrize("panel", panels.EVERY, ids=lambda panel: panel.name)
def test_every_panel_is_plain_json(few_sentences, scene, panel, every) -> None:
    """Try all settings of its controls; for a strange text a plain run tries only the first settings."""
    assert bool(panel.unmet_needs(scene)) == (panel.name in UNAVAILABLE)
    if panel.unmet_needs(scene):
        return
    settings = panels.settings(panel, scene)
    for values in settings if every else islice(settings, 1):
        try:
            content = panels.contents(panel, scene, *values)[-1]
        except ValueError:  # a typed text may be refused, or a sentence that cannot be shuffled
            assert any(isinstance(control, Text) for control in panel.controls), values
            continue
        written = json.dumps(content, allow_nan=False)  # NaN and infinity would break the page
        assert len(written) < 700_000
        assert {block["type"] for block in content} <= DRAWN
        assert not any("nan" in text.split() for text in texts(content))
        drawn = {data["type"] for block in content if block["type"] == "figure" for data in block["figure"]["data"]}
        assert drawn <= {"scatter", "heatmap"}


def test_values_of_controls_are_integers_within_the_models_bounds(scene) -> None:
    requested = []
    panel = Panel(
        "dummy",
        "Map",
        "look",
        say("section"),
        lambda scene, *values: requested.append(values),
        controls=(
            Slider("pair", 0, last_pair, 8),
            Slider("base", 2, 20, 4),
            Choice("side", SIDES, "encoder"),
            Text("words"),
        ),
    )
    for values in ((99, 7.0, "decoder", "  a boat "), (None, None, "encoder", None), (-5, -5, "encoder", "")):
        panel.content(scene, *values)
    assert requested == [(15, 7, "decoder", "a boat"), (8, 4, "encoder", ""), (0, 2, "encoder", "")]
    assert all(type(value) is int for values in requested for value in values[:2])
    with pytest.raises(ValueError, match="'roof' is none of the choices: encoder, decoder"):
        panel.content(scene, 1, 2, "roof", "")


WANTING = ("This model", "This network", "There are no example sentences", "No contrastive pairs")
LEARNED = {"position-rotation", "position-bias", "heads-units"}  # unavailable with learned positions
TABLES = {"position-table", "position-curves", "position-similarity", "position-rotation"}  # need added positions


@pytest.mark.parametrize(
    ("family", "direction", "cannot"),
    [
        ("marian", "de-en", {"position-bias"}),
        pytest.param("m2m100", "de-en", {"position-bias"}, marks=pytest.mark.endure),
        pytest.param("mbart", "de_DE-en_XX", LEARNED, marks=pytest.mark.long),
        pytest.param("bart", "source-target", LEARNED, marks=pytest.mark.endure),
        pytest.param("bart, unequal sides", "source-target", LEARNED, marks=pytest.mark.long),
        pytest.param("t5", "en-de", {*TABLES, "scale", "scoring"}, marks=pytest.mark.long),
    ],
)
def test_panels_serve_each_family_or_say_why_not(few_sentences, tmp_path, family, direction, cannot) -> None:
    """The families cover post-norm and pre-norm, SiLU and ReLU, two layouts of sinusoids, learned and relative
    positions, a norm of the embeddings, biases, suppressed and forced tokens, and a text prefix."""
    name, _, unequal = family.partition(", ")
    changes = {"decoder_attention_heads": 2, "decoder_ffn_dim": 64, "max_position_embeddings": 200} if unequal else {}
    theirs.FAMILIES[name](tmp_path / family, **changes).save_pretrained(tmp_path / family)
    translator = Translator.load(tmp_path / family, "cpu")
    other = Scene(translator.translate("Der Hund schläft 漢.", direction), Selection(), translator)
    for panel in panels.EVERY:
        missing = panel.unmet_needs(other)
        assert bool(missing) == (panel.name in {*cannot, *UNMEASURED}), panel.name
        if missing:
            assert missing[0].message.startswith(WANTING)
        else:
            content = panels.contents(panel, other, *next(panels.settings(panel, other)))
            assert content and json.dumps(for_page(content[-1]), allow_nan=False)


@pytest.mark.parametrize(
    ("changes", "phrases"),
    [
        ({"shared_embeddings": False}, ("E_source[token]", "logits = E_target · x,", "another for target and output")),
        ({"tied_output": False, "logits_bias": True}, ("logits = W · x + b,", "another matrix for the output")),
        ({"norm_embedding": True, "scale_embedding": False}, ("s = E[token] + PE(pos),  x = norm(s)",)),
        ({"norm_first": False, "activation": Activation.GELU}, ("norm(x + f(x))", "GELU(x W₁ + b₁)", "post-norm")),
        ({"position_code": PositionCode.FAIRSEQ, "position_offset": 2}, ("(pos + 2) / base^(i/(d_model/2 − 1))",)),
        ({"position_code": PositionCode.LEARNED}, ("row pos of a learned table", "a row of numbers for each position")),
    ],
)
def test_formulas_follow_the_models_configuration(tokenizer, changes, phrases) -> None:
    translator = make_translator(build_tiny_model(tokenizer, **changes), tokenizer)
    other = Scene(translator.translate(TEXTS[0]), Selection(), translator)
    values = []
    for panel in map(panels.named, ("map", "embedding", "feed-forward", "logits", "add-norm", "position-table")):
        values += texts(panels.contents(panel, other, *next(panels.settings(panel, other)))[-1])
    for words in phrases:
        assert any(words in text for text in values), words


def test_a_panel_is_a_file_in_a_folder_of_its_tab(tmp_path, monkeypatch) -> None:
    (tmp_path / "dummy.py").write_text("""
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.words import for_page, say
PANEL = Panel("a-dummy", "Map", "look", say("section"), lambda scene: [])
""")
    monkeypatch.setattr(inside, "__path__", [*inside.__path__, str(tmp_path)])
    tab = next(tab for tab in registry.TABS if tab.name == "inside")
    before = [panel.name for panel in tab.panels]
    monkeypatch.setitem(registry.PANELS, "inside", registry.load_panels("inside"))
    assert [panel.name for panel in tab.panels] == [*before, "a-dummy"]


def test_panel_names_are_unique() -> None:
    names = [panel.name for panel in panels.EVERY]
    assert len(set(names)) == len(names)


def test_attention_panel_shows_the_selected_head(scene) -> None:
    content = attention.attention(scene, "", 0, 0, 0)
    weights = scene.trace.decoder_self.weights[2, 3, 1]
    assert "Decoder self-attention, layer 3, head 4, query 2: reads " in panels.block_of(content, "text")["text"]
    rows = panels.block_of(content, "table")["rows"][1:]
    assert [row[7]["share"] for row in rows] == [pytest.approx(float(w), abs=1e-4) for w in weights]
    assert [row[5] == "masked" for row in rows] == [key > 1 for key in range(len(weights))]
    other = panels.block_of(attention.attention(scene, "cross", 1, 2, 2), "table")
    cross = scene.trace.cross.weights[0, 1, 1]
    assert [row[7]["share"] for row in other["rows"][1:]] == [pytest.approx(float(w), abs=1e-4) for w in cross]


def test_dropout_of_one_query_is_off_by_default_and_changes_the_output(scene) -> None:
    at = {"kind": "decoder_self", "layer": 1, "head": 1, "query": 3}
    record = scene.output.attention(AttentionKind.DECODER_SELF, 0)
    weights, values = (x[0, 0].double().numpy() for x in (record.weights[:, :, 2], record.values))
    (content,) = panels.contents(panels.named("attention"), scene, *at.values(), None)
    plain = panels.block_of(content, "table")
    assert "after dropout" not in plain["columns"] and plain["foot"][-2]["text"] == "1.00"
    np.testing.assert_allclose(plain["foot"][-1]["values"], weights @ values, rtol=1e-3, atol=1e-5)
    used = dropped(weights, 0.5)
    table = panels.block_of(attention.attention(scene, *at.values(), 50), "table")
    column = table["columns"].index("after dropout")
    assert [float(row[column]["text"]) for row in table["rows"][1:]] == pytest.approx(list(used), rel=1e-2)
    for share, value, row in zip(used, values, table["rows"][1:]):
        np.testing.assert_allclose(row[column + 1]["values"], share * value, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(table["foot"][-1]["values"], used @ values, rtol=1e-3, atol=1e-5)


def test_menus_stay_inside_the_trace(scene) -> None:
    kind, layer, head, query = menus.resolve(scene, "encoder_self", 3, 4, 64)
    maps = scene.trace.maps(kind)
    assert (layer, head, query) == (1, 3, len(maps.query_tokens) - 1)
    assert menus.resolve(scene, "", 0, 0) == (AttentionKind.DECODER_SELF, 2, 3, 1)


def test_breaking_a_head_equals_a_run_without_it(scene) -> None:
    content = breaking.break_model(scene, breaking.HEAD, 0, "", "")
    expected = scene.translator.translate(
        scene.trace.source_text, interventions=heads_off(AttentionKind.DECODER_SELF, 2, (3,))
    )
    assert content[0]["items"][1][1] == (expected.translation or "(nothing)")
    assert content[0]["items"][1][0] == "Decoder self-attention, layer 3, head 4: off"
    assert content[0]["items"][0][1] == (scene.trace.translation or "(nothing)")


def test_each_break_makes_its_interventions(scene) -> None:
    assert breaking.change_of(scene, breaking.PLAIN_SHUFFLE, 3)[1] == Interventions()
    assert len(breaking.change_of(scene, breaking.LAYER, 0)[1].heads_off) == 4
    assert breaking.change_of(scene, breaking.SHIFT, 7)[1].source_positions.shift == 7


def test_shuffling_needs_the_same_words(tiny_translator) -> None:
    scene = Scene(tiny_translator.translate("Ich bin dein Vater."), Selection(), tiny_translator)
    content = breaking.break_model(scene, breaking.PLAIN_SHUFFLE, 0, "Bin ich dein vater", "")
    assert "reads: bin Ich dein Vater." in content[0]["items"][1][2]
    with pytest.raises(ValueError, match="not a word of the sentence"):
        breaking.break_model(scene, breaking.PLAIN_SHUFFLE, 0, "bin ich dein Onkel", "")


def test_the_suggested_order_is_that_of_an_empty_field(tiny_translator) -> None:
    scene = Scene(tiny_translator.translate("Ich bin dein Vater."), Selection(), tiny_translator)
    for sentence in ("", "Ein Hund bellt."):
        suggested = breaking.suggest_order(scene, breaking.PLAIN_SHUFFLE, 0, "", sentence)
        words = sorted((sentence or scene.trace.source_text)[:-1].split())
        assert sorted(suggested[:-1].split()) == words and suggested.endswith(".")
        empty, typed = (
            breaking.break_model(scene, breaking.PLAIN_SHUFFLE, 0, order, sentence) for order in ("", suggested)
        )
        assert empty == typed
    assert breaking.suggest_order(scene, breaking.PLAIN_SHUFFLE, 0, "", "Hund") == ""


def test_a_typed_sentence_replaces_the_pages(scene) -> None:
    content = breaking.break_model(scene, breaking.OFF, 0, "", "Ein Hund.")
    expected = scene.translator.translate("Ein Hund.", scene.trace.direction)
    assert content[0]["items"][0][1] == (expected.translation or "(nothing)")
    (chart,) = content[1]["charts"]
    assert [shares[0] for _, shares, _ in chart["rows"]] == pytest.approx(np.exp(expected.log_probability), abs=1e-3)
    assert breaking.initial_sentence(scene.trace, scene.translator) == "", "the page shows somebody's own sentence"


def drawn(scene: Scene) -> Scene:
    """The scene, with what an honest page says that it draws."""
    trace = scene.trace
    layers = {kind.value: [ROOT.encode(layer) for layer in trace.maps(kind).weights] for kind in trace.kinds}
    return replace(scene, drawn={"key": trace.key, "layers": layers})


def test_verify_reports_progress_and_passes(scene) -> None:
    pictures = list(checks.check_all(drawn(scene)))
    verdict, table = pictures[-1][0]["blocks"]
    assert verdict["tone"] == "good" and f"All {len(table['rows'])} checks passed" in verdict["text"]
    assert len(table["rows"]) == len(CHECKS) + 4 + len(FORMATS)
    assert all(row[1]["passed"] is True for row in table["rows"])
    json.dumps(pictures, allow_nan=False)


def test_a_failing_check_is_shown_as_failing(one_scene, monkeypatch) -> None:
    honest = checks.readback.drawn_maps

    def swapped(trace):
        return {kind: np.roll(weights, 1, axis=1) for kind, weights in honest(trace).items()}

    monkeypatch.setattr(checks.readback, "drawn_maps", swapped)
    verdict, table = list(checks.check_all(drawn(one_scene)))[-1][0]["blocks"]
    assert verdict["tone"] == "bad" and "Notebook grid = trace" in verdict["text"]
    failing = {row[0]: row[1]["passed"] for row in table["rows"]}
    assert failing["Notebook grid = trace"] is False and sum(not passed for passed in failing.values()) == 1


def test_an_invalid_report_of_drawn_maps_fails_its_check(one_scene) -> None:
    """test_drawn.py, of the page, tries all kinds of reports."""
    last = list(checks.check_all(replace(one_scene, drawn={"key": one_scene.trace.key, "layers": None})))[-1]
    row = next(row for row in panels.block_of(last, "table")["rows"] if row[0] == "Drawn on the page = trace")
    assert row[1]["passed"] is False and "not drawn this translation yet" in row[6]


def test_the_models_table_is_drawn(scene) -> None:
    positions = model_table(scene, 20)
    np.testing.assert_array_equal(positions, scene.translator.model.source_positions.table[:20].numpy())
    rows = table.sentence_rows(scene, 200)
    assert len(rows) == 200 and rows[0] == "0  <2en>" and rows[-1] == "199"


def test_wrong_input_becomes_words_and_a_lost_checkpoint_too(context, tiny_translator) -> None:
    trace, beyond = tiny_translator.translate("Der Hund"), {"kind": "encoder_self", "layer": 9, "head": 9}
    assert scene_of(context, Address.of(trace), {"selection": beyond}).selection.layer == 1
    with pytest.raises(ValueError, match="translate again"):
        page_panel(context, replace(Address.of(trace), digest="gone"), {"panel": "attention"})


def test_an_answer_holds_the_ends_of_sliders_and_the_texts_of_this_sentence(context, tiny_translator) -> None:
    trace = tiny_translator.translate("Der Hund")
    answer = page_panel(context, Address.of(trace), {"panel": "attention"})
    longer = max(len(trace.source_tokens), len(trace.target_tokens))
    assert answer["ends"] == {"set2": 3, "set3": 4, "set4": min(64, longer), "set5": 50}
    assert answer["controls"] == {"kind": "", "set2": 0, "set3": 0, "set4": 0, "set5": 0}
    first = tiny_translator.examples["de-en"][0]
    example = Address.of(tiny_translator.translate(first.text, "de-en"))
    for typed, text in (({}, first.reference), ({"set1": ""}, ""), ({"set1": " A boat. "}, "A boat.")):
        assert page_panel(context, example, {"panel": "bleu", "controls": typed})["controls"]["set1"] == text


def test_the_page_gets_a_panels_picture_before_its_numbers_and_formulas(context, tiny_translator) -> None:
    address = Address.of(tiny_translator.translate("Der Hund"))
    answer = page_panel(context, address, {"panel": "projections"})
    names = [block["type"] for block in answer["blocks"]]
    assert names.index("maps") < names.index("facts") < names.index("formula")
    parts = page_panel(context, address, {"panel": "verify"})
    assert [block["type"] for block in next(parts)["blocks"]] == ["stack"]


def test_a_translation_for_every_tab_is_an_address_and_what_is_asked_about_it(context, tiny_translator) -> None:
    trace = tiny_translator.translate("Der Hund")
    fields = {"panel": "why-heads", "data": {"heads": [["cross", 0, 1]], "step": 1, "token": 7, "more": "x"}}
    answer = page_panel_translate(context, Address.of(trace), fields)
    opened = context.traces.find(Address.from_plain(json.loads(json.dumps(answer["opens"]))))
    assert opened.interventions == heads_off(AttentionKind.CROSS, 0, (1,))
    assert answer["asks"] == {"step": 1, "token": 7}
    for name in ("logits", "roof"):
        with pytest.raises(ValueError, match=name):
            page_panel_translate(context, Address.of(trace), {"panel": name})


def test_what_the_page_is_told_of_a_tab_is_all_of_its_panels_and_json(tiny_translator) -> None:
    for tab in registry.TABS:
        payload = json.loads(json.dumps(for_page(registry.describe_tab(tab, [tiny_translator.config]))))
        values = [panel for group in payload["groups"] for panel in group["panels"]]
        assert [panel["name"] for panel in values] == [panel.name for panel in tab.panels]
        for panel in values:
            assert list(panel["controls"]) == panels.named(panel["name"]).fields
            for control in panel["controls"].values():
                assert control["type"] != "slider" or control["low"] <= control["start"] <= control["high"]
                assert control["type"] != "choice" or control["start"] in dict(control["options"])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (5, "5"),
        (np.int64(1200), "1\u202f200"),
        (0.957, "0.957"),
        (-12.34, "−12.3"),
        (58470.2, "58\u202f470"),
        (2.4e-7, "2.4·10⁻⁷"),
        (-3.0e8, "−3.0·10⁸"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
        (999.6, "1\u202f000"),
    ],
)
def test_numbers_are_written_as_people_do(value, shown) -> None:
    assert blocks.compact(value) == shown


def test_a_strip_has_no_numbers_where_there_are_none() -> None:
    cell = blocks.strip(np.array([1.0, -np.inf, 0.123456]))
    assert cell["values"] == [1.0, None, 0.1235] and cell["limit"] == 1.0
    assert blocks.strip(np.zeros(2))["limit"] == 1.0
    with pytest.raises(AssertionError):
        blocks.table(("a", "b"), [["only one"]])


def test_curves_show_the_rates_of_the_models_waves_and_of_the_papers(scene):
    panel = panels.named("position-curves")
    payload = json.dumps(for_page(list(panel.content(scene, "sines", 0, 1, 64))))
    waves = geometry.waves_of(scene.translator.config)
    for rate in (*waves.rates[:4], 0.9647, 0.9306, 0.8977, 0.8660, 0.9734):
        assert f'"{blocks.compact(float(rate), 4)}"' in payload

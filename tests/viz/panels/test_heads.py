"""The panels on heads agree with the survey and the trace."""

from __future__ import annotations

import json
from collections import OrderedDict
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from attention_atlas.model.analysis.alignment.links import find_linking_heads, word_maps
from attention_atlas.model.analysis.survey import run as surveys
from attention_atlas.model.analysis.survey.corpus import Corpus
from attention_atlas.model.analysis.survey.run import SurveyRun
from attention_atlas.model.trace.alignment import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import Estimate, Survey, to_json
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.explorer import explorer
from attention_atlas.viz.panels.heads import alignment, match, search, survey
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.wire.survey import MARKS
from attention_atlas.viz.words import for_page
from tests.conftest import SENTENCES
from tests.viz.panels.panels import begin, block_of, numbers_of

ENCODER = AttentionKind.ENCODER_SELF


@pytest.fixture(scope="module")
def surveyed(tiny_translator):
    """The tiny translator with a survey of a few sentences."""
    run = SurveyRun(
        tiny_translator, "de-en", Corpus("few", lambda: ((line, "") for line in SENTENCES[0:10:2]), own=True)
    )
    return with_survey(tiny_translator, run.result(run.work()))


@pytest.fixture(scope="module")
def scene(surveyed) -> Scene:
    return Scene(surveyed.translate(SENTENCES[0], "de-en"), Selection(ENCODER, 1, 2, 3, 3), surveyed)


def test_the_overview_has_every_statistic(scene, surveyed):
    sent, *_ = survey.overview(scene)
    kinds = surveyed.survey.directions["de-en"].kinds
    assert [kind["kind"] for kind in sent["kinds"]] == [kind.value for kind in kinds]
    for kind, k in zip(sent["kinds"], kinds.values()):
        for name, e in k.statistics.items():
            np.testing.assert_allclose(kind["statistics"][name]["low"], e.low.reshape(-1), atol=1e-3)


def test_the_explorer_gets_the_head_names_of_these_weights_only(scene, surveyed, tiny_translator):
    direction = surveyed.survey.directions["de-en"]

    def bold_two(estimate: Estimate) -> Estimate:
        """Let the two highest values differ from chance."""
        low = np.where(estimate.value >= np.sort(estimate.value, axis=None)[-2], 1.0, 0.0)
        return replace(estimate, low=low, adjusted=0 * estimate.adjusted)

    kinds = {
        kind: replace(k, statistics={name: bold_two(e) for name, e in k.statistics.items()})
        for kind, k in direction.kinds.items()
    }
    bold = replace(direction, kinds=kinds)
    payload = explorer.explorer_payload(Translators([with_survey(surveyed, bold)]), scene.trace, Selection())["marks"]
    expected = {
        (kind.value, str(STATISTICS[name].title), layer, head, round(float(k.statistics[name].value[layer, head]), 2))
        for kind, k in bold.kinds.items()
        for layer, row in enumerate(k.head_names())
        for head, names in enumerate(row)
        for name in names
    }
    named = {(name["kind"], str(name["title"]), *head) for name in payload["named"] for head in name["heads"]}
    assert named == expected
    assert expected and payload["sentences"] == direction.sentences
    for translators in (Translators([tiny_translator]), None):
        assert explorer.explorer_payload(translators, scene.trace, Selection())["marks"] == {}
    assert set(MARKS) == {name for name, statistic in STATISTICS.items() if statistic.threshold is not None}
    assert len(json.dumps(for_page(payload))) < 100 + 150 * len(STATISTICS) + 16 * len(expected)


def with_survey(translator, direction_survey):
    """Return a copy of a translator with this survey of its weights."""
    surveyed = copy(translator)
    surveyed.survey = Survey("tiny", translator.digest, {"de-en": direction_survey})
    return surveyed


def test_a_card_has_its_heads_statistics_here_and_in_the_survey(scene, surveyed):
    title, button, row, counted = survey.card(scene, {"kind": "encoder_self", "layer": 1, "head": 2})
    table, beside = row["blocks"]
    assert title["text"].startswith("Encoder self-attention, layer 2, head 3: ")
    k = surveyed.survey.directions["de-en"].kinds[ENCODER]
    values = {str(cells[0]): cells for cells in table["rows"]}
    assert values["own position"][1]["text"] == f"{k.statistics['itself'].value[1, 2]:.3f}"
    maps = scene.trace.encoder_self.weights[1, 2]
    words = [i for i, token in enumerate(scene.trace.source_tokens) if not is_symbol(token)]
    assert values["own position"][5] == f"{np.mean([maps[t, t] for t in words]):.3f}"
    assert button["to"]["look"] == {"kind": "encoder_self", "layer": 1, "head": 2} and len(beside["blocks"]) == 2
    assert [str(cells[0]) for cells in counted["blocks"][0]["rows"]] == list(values)
    for wrong in (
        {"kind": "encoder_self", "layer": 2, "head": 0},
        {"kind": "encoder_self", "layer": 0, "head": "1"},
        {"kind": "sideways", "layer": 0, "head": 0},
    ):
        with pytest.raises(ValueError, match=r"encoder_self has no layer|sideways"):
            survey.card(scene, wrong)


def test_a_head_that_is_only_named_for_induction_has_a_card(scene, surveyed):
    direction = surveyed.survey.directions["de-en"]
    encoder = direction.kinds[ENCODER]
    statistics = {name: replace(e, adjusted=np.ones_like(e.adjusted)) for name, e in encoder.statistics.items()}
    induction = statistics["induction"]
    statistics["induction"] = replace(
        induction, low=np.ones_like(induction.low), adjusted=np.zeros_like(induction.adjusted)
    )
    named = replace(encoder, statistics=statistics)
    assert named.head_names()[1][2] == ("induction",) and "induction" not in named.examples
    kinds = {**direction.kinds, ENCODER: named}
    changed = replace(scene, made_by=with_survey(surveyed, replace(direction, kinds=kinds)))
    *_, row, _ = survey.card(changed, {"kind": "encoder_self", "layer": 1, "head": 2})
    examples, similar = row["blocks"][1]["blocks"]
    assert examples["rows"] and len(similar["rows"]) == survey.NUM_SIMILAR


def test_word_links_start_with_the_row_that_aligns_best(scene, surveyed):
    direction = surveyed.survey.directions["de-en"]
    cross = direction.kinds[AttentionKind.CROSS]
    read = cross.statistics["diagonal"]  # any statistic
    better = np.where(np.arange(read.value.size).reshape(read.value.shape) % 2, 0.5, -0.5)  # at every other head

    def scene_of(layer: int, head: int) -> Scene:
        written = replace(read, value=read.value + better)
        statistics = {**cross.statistics, "alignment_read": read, "alignment_predicted": written}
        kinds = {**direction.kinds, AttentionKind.CROSS: replace(cross, statistics=statistics)}
        selection = Selection(AttentionKind.CROSS, layer, head)
        return Scene(scene.trace, selection, with_survey(surveyed, replace(direction, kinds=kinds)))

    assert alignment.PANEL.controls[1].start == alignment.MEASURED
    for head, row, words in (
        (1, RowToken.PREDICTED, "stands for the token written"),
        (2, RowToken.READ, "stands for the token read"),
    ):
        example = scene_of(1, head)
        assert alignment.measured_row(example, alignment.SELECTED) is row
        note, sent, _ = alignment.alignment(example, alignment.SELECTED, alignment.MEASURED)
        assert words in note["text"]
        assert sent == alignment.alignment(example, alignment.SELECTED, row.value)[1]
    unmeasured = replace(scene, made_by=with_survey(surveyed, replace(direction, kinds={})))
    assert alignment.measured_row(unmeasured, alignment.ALL) is RowToken.READ


def test_a_pinned_cell_ranks_heads_by_the_pattern_it_shows(scene, surveyed):
    content = search.search(scene)
    assert "The pinned cell" in block_of(content, "text")["text"]
    ranking = block_of(content, "table")
    assert str(ranking["columns"][1]) == "own position"
    values = surveyed.survey.directions["de-en"].kinds[ENCODER].statistics["itself"].value
    layer, head = np.unravel_index(values.argmax(), values.shape)
    assert str(ranking["rows"][0][0]) == f"layer {layer + 1}, head {head + 1}"


def test_a_heads_own_links_give_it_an_error_of_zero(scene):
    maps = word_maps(scene.translator, scene.trace)[0][RowToken.READ, False]
    links = [list(link) for link in sorted(alignment.link_by_rows(maps[2, 1]))]
    data = {"sure": links, "possible": links[:1]}
    _, both = alignment.score_heads(scene, data, alignment.SELECTED, RowToken.READ.value)
    grids, table = both["blocks"]
    perfect = {str(row[0]) for row in table["rows"] if row[2]["text"] == "0.000" and str(row[1]) == "token read"}
    assert "layer 3, head 2" in perfect
    rates = numbers_of(grids["maps"][0])
    gold = set(map(tuple, links))
    expected = [
        [1 - 2 * len(alignment.link_by_rows(head) & gold) / (len(head) + len(gold)) for head in layer] for layer in maps
    ]
    np.testing.assert_allclose(rates, expected, atol=1e-6)
    for wrong in ([[0, 999]], [[0]], [["0", 0]], [[-1, 0]]):
        for name in data:
            with pytest.raises(ValueError, match="asked for something unknown"):
                alignment.score_heads(scene, {**data, name: wrong}, alignment.SELECTED, RowToken.READ.value)


def test_a_possible_link_is_neither_required_nor_wrong(scene):
    maps = word_maps(scene.translator, scene.trace)[0][RowToken.PREDICTED, False]
    links = [list(link) for link in sorted(alignment.link_by_rows(maps[0, 3]))]
    _, both = alignment.score_heads(
        scene, {"sure": links[1:], "possible": links[:1]}, alignment.SELECTED, RowToken.READ.value
    )
    rates = {(str(row[0]), str(row[1])): row[2]["text"] for row in both["blocks"][1]["rows"]}
    assert rates["layer 1, head 4", "token written"] == "0.000"


def test_links_are_read_from_every_source(scene, surveyed):
    rates = {}
    for source in alignment.PANEL.controls[0].options:
        for row in RowToken:
            note, *rest = alignment.alignment(scene, source, row.value)
            rates[source, row] = note["text"], rest and rest[0]["scores"]
    assert "This model has no alignment heads yet" in rates[alignment.CHOSEN, RowToken.READ][0]
    assert len({text for text, _ in rates.values()}) == len(rates) - 1
    voters = (Voter(0, 2, RowToken.READ, False), Voter(2, 1, RowToken.PREDICTED, False))
    linked = with_survey(surveyed, replace(surveyed.survey.directions["de-en"], linked_by=voters))
    note, sent, _ = alignment.alignment(
        Scene(scene.trace, scene.selection, linked), alignment.CHOSEN, RowToken.READ.value
    )
    assert "layer 1, head 3; layer 3, head 2" in note["text"]
    maps, _ = word_maps(linked, scene.trace)
    first, second = maps[RowToken.READ, False][0, 2], maps[RowToken.PREDICTED, False][2, 1]
    mean = sum(weights / weights.sum(-1, keepdims=True) for weights in (first, second)) / 2
    np.testing.assert_allclose(sent["scores"], mean, atol=6e-4)


def test_a_model_compared_with_itself_matches_every_head(scene, surveyed, tiny_translator, monkeypatch):
    monkeypatch.setitem(vars(tiny_translator), "_results_of_work", OrderedDict())  # no survey from another test
    model_copy = with_survey(surveyed, surveyed.survey.directions["de-en"])
    model_copy.name, model_copy.digest = "twin", "1" * 16
    model_copy.survey = replace(model_copy.survey, digest=model_copy.digest)
    scene_of_two = replace(scene, served=Translators([surveyed, model_copy]))
    (slot,) = match.side_by_side(scene_of_two, ENCODER.value)
    table = block_of(slot["blocks"], "table")
    assert "de-en of twin" in str(slot["blocks"])
    assert len(table["rows"]) == 8  # 2 layers of 4
    for row in table["rows"]:
        assert row[0] == row[1] and row[2]["text"] == "0.00" and str(row[3]) == "yes" and row[4]["text"] == "1.00"
    for wrong in ({"option": 1}, {"option": "0"}, {}):
        with pytest.raises(ValueError, match="option"):
            match.compare_with(scene_of_two, wrong, ENCODER.value)
    (alone,) = match.side_by_side(scene, ENCODER.value)
    assert "No other model" in alone["text"]
    (nothing,) = match.side_by_side(replace(scene, made_by=tiny_translator), ENCODER.value)
    assert "Survey 200 sentences in the All heads panel" in nothing["text"]


def test_a_survey_taken_on_the_page_is_used_by_all_panels(tiny_translator, monkeypatch):
    monkeypatch.setattr(surveys, "source_sentences", lambda direction: SENTENCES[0:10:2])
    monkeypatch.setattr(surveys, "PAGE_WINDOW", 3)
    monkeypatch.setitem(vars(tiny_translator), "_results_of_work", OrderedDict())
    scene = Scene(tiny_translator.translate(SENTENCES[0], "de-en"), Selection(), tiny_translator)
    (take,) = survey.overview(scene)
    begun, parts = begin(survey.PANEL, scene, take)
    assert parts == sorted(parts) and parts[-1] == (5, 5)  # heads are chosen in two parts, as sentences are measured
    assert survey.overview(scene)[0]["type"] == survey.overview(begun)[0]["type"] == "survey"
    with monkeypatch.context() as patch:
        patch.setattr(type(tiny_translator.tokenizer), "encode", None)  # no sentence may be read again
        survey_work = surveys.find_survey(tiny_translator, "de-en")
    assert survey_work.linked_by == find_linking_heads(tiny_translator, "de-en", SENTENCES[0:10:2]) != ()
    assert "alignment_read" in survey_work.kinds[AttentionKind.CROSS].statistics
    linked = alignment.alignment(scene, alignment.CHOSEN, "read")
    assert linked[0]["type"] == "text" and linked[1]["type"] == "links"


def test_another_process_takes_the_same_survey(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(surveys, "source_sentences", lambda direction: SENTENCES[0:10:2])
    works = [surveys.survey_work(Translator.load(tiny_checkpoint, "cpu"), "de-en") for _ in range(2)]
    assert works[0].key == works[1].key
    for work in works:
        list(work.run())
    first, second = (to_json(Survey("", "", {"de-en": work.result()})) for work in works)
    assert first == second


def test_a_survey_of_empty_translations_selects_no_linking_heads(tiny_translator, monkeypatch):
    monkeypatch.setattr(surveys, "source_sentences", lambda direction: SENTENCES[0:10:2])
    monkeypatch.setattr(Translator, "translate_batch", lambda translator, texts, direction: [""] * len(texts))
    monkeypatch.setitem(vars(tiny_translator), "_results_of_work", OrderedDict())
    work = surveys.survey_work(tiny_translator, "de-en")
    list(work.run())
    study = work.result()
    assert study.linked_by == () and "alignment_read" not in study.kinds[AttentionKind.CROSS].statistics

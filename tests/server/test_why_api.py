"""Tests of the endpoints that run experiments, against the library and against the model itself."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis import circuits, why
from attention_atlas.model.analysis.why import questions
from attention_atlas.model.analysis.why.experiments.patching import HeadGrid, PatchMode
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.why.effects import Replacement
from tests.conftest import SENTENCES
from tests.server.test_api import ask, refused

TEXT, SECOND = SENTENCES[0], SENTENCES[2]


@pytest.fixture(scope="module")
def trace(tiny_translator):
    return tiny_translator.translate(TEXT, "de-en")


def values(answer: dict, evidence: str = "measured") -> np.ndarray:
    return np.array(
        [
            [np.nan if value is None else value for value in row["values"]]
            for row in answer["rows"]
            if row["evidence"] == evidence
        ]
    )


def test_why_answers_as_the_library(client, tiny_translator, trace):
    expected = why.attribute(tiny_translator, trace, step=2)
    answer = ask(client, "why", TEXT, step=2)
    assert answer["question"]["token_id"] == trace.target_ids[2] and answer["columns"] == list(expected.columns.labels)
    assert answer["metric"] == pytest.approx(expected.metric, abs=1e-5)
    assert [row["method"] for row in answer["rows"]] == [row.method for row in expected.rows]
    for row, expected_row in zip(answer["rows"], expected.rows):
        assert row["evidence"] == expected_row.evidence.value and (row["sum"] is None) == (expected_row.sum is None)
        numbers = [np.nan if value is None else value for value in row["values"]]
        np.testing.assert_allclose(numbers, expected_row.values, atol=1e-4)
    assert answer["parts"]["sum"]["holds"] and "encoder_self" not in answer["parts"]["heads"]
    sums = why.split_logit(tiny_translator, trace, step=2).sum
    assert answer["parts"]["sum"]["found"] == pytest.approx(sums.found, abs=1e-4)
    by_mask = ask(client, "why", TEXT, contrast="boat", methods=["occlusion by mask"])
    question = questions.make_question(tiny_translator, trace, contrast="boat")  # in place of the whole word
    assert [(row["method"], row["title"]) for row in by_mask["rows"]] == [("occlusion_by_mask", "occlusion by mask")]
    assert by_mask["question"]["step"] == question.step


@pytest.mark.parametrize("replacement", [Replacement.ZERO, Replacement.RESAMPLE])
def test_effects_of_heads_are_those_of_the_library(client, tiny_translator, trace, replacement):
    answer = ask(client, "why_heads", TEXT, step=2, instead=replacement.value)
    expected = why.measure_heads(tiny_translator, trace, step=2, replacement=replacement)
    np.testing.assert_allclose(values(answer), np.concatenate(list(expected.effects.values())), atol=1e-4)
    flips = [row["flips"] for row in answer["rows"] if row["evidence"] == "measured"]
    assert flips == np.concatenate(list(expected.flips.values())).tolist()
    assert values(answer, "proxy").shape == values(answer).shape and answer["draws"] == expected.draws


@pytest.mark.parametrize("way", list(PatchMode))
def test_patches_are_those_of_the_library(client, tiny_translator, trace, way):
    answer = ask(client, "why_patch", TEXT, SECOND, step=2, way=way.value)
    expected = why.patch(tiny_translator, trace, SECOND, step=2, direction=way)
    np.testing.assert_allclose(values(answer), expected.metrics, atol=1e-4)
    assert (answer["base"], answer["other"]) == pytest.approx((expected.base, expected.other), abs=1e-4)
    assert len(answer["columns"]) == 3 and (answer["recovered"] is None) == (expected.recovered is None)
    heads = ask(client, "why_patch", TEXT, SECOND, step=2, way=way.value, place="cross heads")
    expected = why.patch(tiny_translator, trace, SECOND, step=2, direction=way, grid=HeadGrid(AttentionKind.CROSS))
    np.testing.assert_allclose(values(heads), expected.metrics, atol=1e-4)


def test_a_circuit_is_that_of_the_library(client, tiny_translator):
    text, second = "Der kleine Hund schläft unter dem Tisch.", "Der kleine Tisch schläft unter dem Hund."
    answer = ask(client, "why_circuit", text, second, step=2, edges=9)
    trace = tiny_translator.translate(text)
    question = answer["question"]
    pair = circuits.Pair(
        tuple(trace.source_ids),
        tuple(tiny_translator.encode(second)),
        trace.decoder_ids[:3],
        question["token_id"],
        question["contrast_id"],
    )
    circuit = circuits.find_circuit(tiny_translator, [pair])
    assert [(edge["sender"], edge["receiver"]) for edge in answer["edges"]] == [
        (edge.sender, edge.receiver) for edge, _ in circuit.top_edges(9)
    ]
    assert [edge["nats"] for edge in answer["edges"]] == pytest.approx(
        [-score for _, score in circuit.top_edges(9)], abs=1e-4
    )
    assert (answer["metric"], answer["other"]) == pytest.approx((circuit.metric, circuit.changed), abs=1e-3)


def test_lens_of_a_model_without_fitted_lenses_translates_from_each_layer(client, tiny_translator, trace):
    answer = ask(client, "lens", TEXT)
    assert answer["pieces"] is None and answer["shares"] is None
    assert answer["translations"][-1] == trace.translation and len(answer["translations"]) == 3


def test_smallest_sets_are_those_of_the_library(client, tiny_translator, trace):
    answer = ask(client, "why_smallest", TEXT, orders=2)
    first, second = answer["sets"]
    assert first["verified"] and second["verified"] and answer["translation"] == trace.translation
    heads = {(AttentionKind(kind), layer, head) for kind, layer, head in first["kept"]}
    assert heads == why.find_smallest_set(tiny_translator, trace).kept and len(heads) < first["heads"]
    assert values(answer).sum() == len(first["kept"]) + len(second["kept"])


@pytest.mark.parametrize(
    ("endpoint", "arguments", "words"),
    [
        ("why", ("Hund", 999), "There is no step 999"),
        ("why", ("Hund", -1, " ", []), "There is no text"),
        ("why", ("Hund", 0, "", ["guess"]), "There is no method 'guess'"),
        ("why_heads", ("Hund", 0, "", "loud"), "Unknown instead 'loud': there are zero, mean, resample"),
        ("why_heads", ("Hund", 0, "", "mean"), "There are no averages"),
        ("why_patch", ("Hund", "Hund"), "The second sentence is the same"),
        ("why_patch", ("Hund", ""), "The text is empty"),
        ("why_patch", ("Hund", 5), "second must be a string"),
        ("why_patch", ("Hund", "Katze", 0, "", "roof"), "Unknown place 'roof'"),
        ("why_patch", ("Hund", "Katze", 0, "", "encoder stream", "up"), "Unknown way 'up': there are denoise, noise"),
        ("why_circuit", ("Hund", "Hund"), "The two sentences are the same"),
        ("why_circuit", ("Hund", "Hund", 0, "", 0), "edges must be 1 to 500, found 0"),
        ("lens", ("Hund", 11), "words must be 1 to 10, found 11"),
        ("why_smallest", ("Hund", "resample"), 'found "resample"'),
        ("why_smallest", ("Hund", "zero", 9), "orders must be 1 to 3, found 9"),
    ],
)
def test_invalid_fields_are_refused_in_words(client, endpoint, arguments, words):
    assert words in refused(client, endpoint, *arguments)

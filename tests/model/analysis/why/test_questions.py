"""Tests of the choice of the question, and of attribute() as a whole."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from attention_atlas.model.analysis.why import questions
from attention_atlas.model.analysis.why.attribution import attribute
from attention_atlas.model.analysis.why.case import open_case
from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.analysis.why.split import split_case
from attention_atlas.model.trace.interventions import Edge, Interventions, Positions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import tokens_from_spelling
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.trace.words import word_groups

TEXT = "Der kleine Hund schläft unter dem Tisch."


@pytest.fixture(scope="module")
def trace(tiny_translator):
    """The translation that a person would give, forced: the tiny model's own is noise."""
    ids = tiny_translator.tokenizer.encode("The small dog sleeps under the table.")
    return tiny_translator.trace(TEXT, "de-en", target=[*ids, tiny_translator.tokenizer.end_id])


def spelled(tokens, groups) -> list[str]:
    return ["".join(tokens[i] for i in group).replace("▁", "") for group in groups]


def test_default_step_is_the_least_certain_content_word(trace):
    words = spelled(trace.target_tokens, questions.content_words(trace))
    assert words == ["small", "dog", "sleeps", "table"]
    pieces = [step for group in questions.content_words(trace) for step in group]
    step = questions.default_step(trace)
    assert step in pieces and trace.log_probability[step] == trace.log_probability[pieces].min()


def test_default_step_is_the_least_certain_piece():
    trace = SimpleNamespace(
        direction="de-en",
        target_tokens=tokens_from_spelling(["▁The", "▁Now", "ak", "ow", "▁lives", "."]),
        log_probability=np.log([0.1, 0.9, 0.3, 0.8, 0.5, 0.2]),
    )
    assert questions.default_step(trace) == 2


@pytest.mark.parametrize(
    ("target", "direction", "expected"),
    [
        ("I'd say they don’t know and won't: the dog's friend isn't here", "de-en", ["say", "know", "dog's", "friend"]),
        ("j'ai vu l'homme", "en-fr", ["vu", "l'homme"]),
    ],
)
def test_contractions_of_function_words_are_function_words(target, direction, expected):
    tokens = tokens_from_spelling(re.findall("▁?[^▁'’:]+|['’:]", "▁" + target.replace(" ", "▁")))
    groups = questions.content_words(SimpleNamespace(direction=direction, target_tokens=tokens))
    assert spelled(tokens, groups) == expected


def test_one_method_runs_no_other(tiny_translator, trace, monkeypatch):
    def never(_):
        raise AssertionError("nobody asked for an occlusion")

    others = {name: replace(method, compute=never) for name, method in METHODS.items() if name != "cross_attention"}
    monkeypatch.setattr("attention_atlas.model.analysis.why.attribution.METHODS", METHODS | others)
    why = attribute(tiny_translator, trace, step=3, methods=["cross_attention"])
    assert [row.method for row in why.rows] == ["cross_attention"] and why.agreement == {"cross_attention": None}


def test_runner_up_is_the_most_probable_other_token(tiny_translator, trace):
    for step, written in enumerate(trace.target_ids):
        question = questions.make_question(tiny_translator, trace, step)
        logits = tiny_translator.inspect(trace).logits[0, step].clone()
        logits[written] = -np.inf
        assert question.contrast_id == int(logits.argmax()) and question.token_id == written
    contrasts = questions.list_contrasts(trace, 0)
    assert len(contrasts) == 5 and trace.target_ids[0] not in contrasts


def test_typed_contrast_counts_from_its_first_different_piece(tiny_translator, trace):
    tokenizer = tiny_translator.tokenizer
    for word in word_groups(trace.target_tokens)[:7]:
        for text in ("castle", "boat", "dogs", "tableau", "Xylophon"):
            ids = tokenizer.encode(text)
            written = trace.target_ids[word[0] :]
            same = next((i for i, (a, b) in enumerate(zip(ids, written)) if a != b), None)
            if same is None:
                continue
            for step in word:
                question = questions.make_question(tiny_translator, trace, step, text)
                assert question.step == word[0] + same and question.contrast_id == ids[same]
                assert question.token_id == written[same]
                assert (f"piece {same + 1}" in question.note) == (len(ids) > 1)


@pytest.mark.parametrize(
    "contrast, message",
    [
        ("", "no text"),
        ("  ", "no text"),
        ("small", "type a different word"),
        (10**6, "no token 1000000"),
        (-1, "no token -1"),
    ],
)
def test_unusable_contrasts_raise(tiny_translator, trace, contrast, message):
    groups = word_groups(trace.target_tokens)
    step = groups[spelled(trace.target_tokens, groups).index("small")][0]
    with pytest.raises(ValueError, match=message):
        questions.make_question(tiny_translator, trace, step, contrast)


def test_unknown_steps_tokens_methods_and_layers_raise(tiny_translator, trace):
    for options, message in (
        ({"step": 99}, "no step 99"),
        ({"step": 0, "contrast": trace.target_ids[0]}, "compared with itself"),
        ({"methods": ("guess",)}, "no method 'guess'"),
        ({"cross_layer": 3}, "layers 0 to 2, found 3"),
    ):
        with pytest.raises(ValueError, match=message):
            attribute(tiny_translator, trace, **options)


@pytest.mark.parametrize("contrast", [Against.RUNNER_UP, Against.NOTHING, "castle", 5])
@pytest.mark.parametrize("words", [True, False])
def test_every_method_has_a_value_for_every_source_column(tiny_translator, trace, contrast, words):
    why = attribute(tiny_translator, trace, step=3, contrast=contrast, words=words)
    assert [row.method for row in why.rows] == list(METHODS)
    assert len(why.columns.labels) == len(why.columns) == len(why.columns.special)
    for row in why.rows:
        assert row.values.shape == (len(why.columns),) and row.values.dtype == np.float64
        assert (row.evidence is Evidence.EXACT_SPLIT) <= (row.sum is not None)
        assert not np.isnan(row.values[: len(why.columns.source)]).any()
        assert why.agreement[row.method] is None or -1 <= why.agreement[row.method] <= 1
    if contrast is Against.NOTHING:
        assert why.metric == pytest.approx(float(trace.log_probability[3]), abs=1e-4)


def test_first_and_last_steps_can_be_asked_about(tiny_translator, trace):
    """The first token, </s>, a sentence of one word, and a translation that was stopped."""
    last = len(trace.target_ids) - 1
    for of, step in (
        (trace, 0),
        (trace, last),
        (tiny_translator.translate("Hund"), None),
        (tiny_translator.trace(TEXT, target=trace.target_ids[:-1]), last - 1),
    ):
        why = attribute(tiny_translator, of, step=step)
        assert all(np.isfinite(row.values[: len(why.columns.source)]).all() for row in why.rows)


def test_traces_of_other_weights_raise(tiny_translator, hand_made_trace):
    with pytest.raises(ValueError, match="other weights"):
        attribute(tiny_translator, hand_made_trace)


def test_interventions_of_the_trace_hold_in_every_run(tiny_translator, trace):
    """Heads off, edges cut and positions shifted hold in every run; patches and old prose cannot be run again."""
    changes = Interventions(
        heads_off={("cross", 1, 2)},
        target_positions=Positions(shift=1),
        zeroed_edges={Edge("decoder_self", 2, 1)},
        cut_edges={Edge("cross", 2, 3)},
    )
    broken = tiny_translator.trace(TEXT, "de-en", target=trace.target_ids, interventions=changes)
    for step in (2, 4):
        why = attribute(tiny_translator, broken, step=step, contrast=Against.NOTHING)
        assert why.metric == pytest.approx(float(broken.log_probability[step]), abs=1e-4)
        assert abs(why.metric - float(trace.log_probability[step])) > 1e-4
        parts = split_case(open_case(tiny_translator, broken, why.question))
        assert parts.sum.holds and parts.heads(AttentionKind.CROSS)[1, 2] == 0
    with pytest.raises(ValueError, match="cannot be run again"):
        attribute(tiny_translator, replace(trace, interventions=Interventions(in_words="a head off")))


def test_class_agnostic_rows_ignore_the_contrast(tiny_translator, trace):
    one, other = (attribute(tiny_translator, trace, step=4, contrast=c) for c in (5, 9))
    for a, b in zip(one.rows, other.rows):
        assert METHODS[a.method].class_agnostic == np.array_equal(a.values, b.values, equal_nan=True)

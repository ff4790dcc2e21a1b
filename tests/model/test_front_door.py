"""Translator.trace(): of source ids, forced along a target, and continued from a prefix."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from tests.model.nets.test_interventions import EVERY_KIND

TEXT = "Zwei Kinder bauen eine Burg aus Sand."


@pytest.fixture(scope="module")
def reference(tiny_translator):
    return tiny_translator.translate(TEXT)


def test_forcing_the_models_own_target_reproduces_its_trace(tiny_translator, reference):
    trace = tiny_translator.trace(TEXT, target=reference.target_ids)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(trace.maps(kind).weights, reference.maps(kind).weights, atol=1e-5, rtol=0)
    for name in ("log_probability", "top_probabilities", "entropy"):
        np.testing.assert_allclose(getattr(trace, name), getattr(reference, name), atol=1e-5, rtol=0)
    for name in ("source_ids", "decoder_ids", "target_ids", "finished", "translation", "direction", "digest"):
        assert getattr(trace, name) == getattr(reference, name)
    assert (trace.source_tokens, trace.target_tokens) == (reference.source_tokens, reference.target_tokens)


@pytest.mark.parametrize(
    "text", ["Zwei Kinder bauen\neine Burg aus Sand.\n", "Zwei Kinder\r\n  bauen\u2028eine Burg aus Sand."]
)
def test_pasted_lines_are_one_sentence(tiny_translator, reference, text):
    trace = tiny_translator.translate(text)
    assert (trace.source_text, trace.source_ids, trace.target_ids) == (TEXT, reference.source_ids, reference.target_ids)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_interventions_hold_for_a_forced_target_and_a_prefix(tiny_translator, name):
    text = "Zwei Kinder bauen."
    broken = tiny_translator.translate(text, interventions=EVERY_KIND[name])
    followed = tiny_translator.trace(text, target=broken.target_ids, interventions=broken.interventions)
    assert followed.interventions == EVERY_KIND[name]
    for kind in broken.kinds:
        np.testing.assert_allclose(followed.maps(kind).weights, broken.maps(kind).weights, atol=1e-5, rtol=0)
    np.testing.assert_allclose(followed.log_probability, broken.log_probability, atol=1e-5, rtol=0)
    completed = tiny_translator.trace(text, prefix=broken.target_ids[:2], interventions=broken.interventions)
    assert completed.target_ids == broken.target_ids and completed.interventions == broken.interventions
    if name != "nothing":
        plain = tiny_translator.trace(text, target=broken.target_ids)
        assert not np.allclose(plain.log_probability, followed.log_probability, atol=1e-4)


@pytest.mark.parametrize("length", [1, 4])
def test_a_prefix_is_the_beginning_of_its_trace_and_unfinished(tiny_translator, reference, length):
    trace = tiny_translator.trace(TEXT, target=reference.target_ids[:length])
    assert not trace.finished
    assert trace.cross.weights.shape[2] == length
    np.testing.assert_allclose(trace.cross.weights, reference.cross.weights[:, :, :length], atol=1e-5, rtol=0)


def test_a_forced_target_may_be_improbable_and_finished(tiny_translator):
    end = tiny_translator.tokenizer.end_id
    ids = [*tiny_translator.encode_typed("Two children", joined=False), end]
    trace = tiny_translator.trace(TEXT, target=ids)
    assert trace.finished and trace.translation == "Two children"
    assert (trace.chosen_rank > 1).any()


def test_decoding_continues_greedily_from_a_prefix(tiny_translator, reference):
    other = int(reference.top_ids[2, 3])
    prefix_ids = [*reference.target_ids[:2], other]
    trace = tiny_translator.trace(TEXT, prefix=prefix_ids)
    assert list(trace.target_ids[:3]) == prefix_ids and len(trace.target_ids) > 3
    assert (trace.chosen_rank[3:] == 1).all(), "what follows is greedy"
    followed = tiny_translator.trace(TEXT, target=trace.target_ids)
    np.testing.assert_allclose(trace.cross.weights, followed.cross.weights, atol=1e-5, rtol=0)
    ended = (7, tiny_translator.tokenizer.end_id)
    assert tiny_translator.trace(TEXT, prefix=ended).target_ids == ended


def test_a_prefix_up_to_the_limit_is_completed_as_far_as_the_model_reaches(tiny_translator):
    limit = tiny_translator.config.max_length - 1
    assert len(tiny_translator.trace(TEXT, prefix=[9] * (limit - 2)).target_ids) <= limit
    assert tiny_translator.trace(TEXT, prefix=[9] * limit).target_ids == (9,) * limit


def test_typed_text_with_and_without_a_space(tiny_translator):
    tokenizer = tiny_translator.tokenizer
    apart, joined = (tiny_translator.encode_typed("boat", joined=j) for j in (False, True))
    assert tokenizer.tokens(apart)[0].startswith("\u2581")
    assert "".join(tokenizer.tokens(joined)) == "boat"
    dog = tokenizer.encode("dog")
    assert tokenizer.decode([*dog, *joined]) == "dogboat"
    assert tokenizer.decode([*dog, *apart]) == "dog boat"
    assert tokenizer.decode([*dog, *tokenizer.encode_joined("\u2581 ß😀")]) == "dog\u2581 ß😀"
    with pytest.raises(ValueError, match="no text"):
        tiny_translator.encode_typed("  ", joined=False)


def test_source_ids_give_the_trace_of_their_text(tiny_translator, reference):
    trace = tiny_translator.trace(source_ids=reference.source_ids)
    assert trace.source_text == TEXT and trace.decoding == reference.decoding
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_array_equal(trace.maps(kind).weights, reference.maps(kind).weights)
    other = [*reference.source_ids[:2], *reference.source_ids[3:]]
    named = tiny_translator.trace(TEXT, source_ids=other, target=reference.target_ids)
    assert named.source_text == TEXT and list(named.source_ids) == other


def test_a_target_and_a_prefix_are_texts_as_well_as_ids(tiny_translator):
    whole, begun = (tiny_translator.trace(TEXT, **{name: "Two children"}) for name in ("target", "prefix"))
    assert whole.translation == "Two children" and whole.finished
    written = len(whole.target_ids) - 1
    assert begun.target_ids[:written] == whole.target_ids[:-1] and begun.decoding == Decoding(given=written)


def test_a_beam_search_continues_from_a_prefix(tiny_translator):
    ids = tiny_translator.encode_typed("Two")
    trace = tiny_translator.trace(TEXT, prefix=ids, beam=3)
    (searched,) = tiny_translator.beam([tiny_translator.encode(TEXT)], width=3, prefix=ids)
    assert trace.target_ids == searched.hypotheses[0].ids and trace.decoding == Decoding(3, given=len(ids))
    assert trace.target_ids[: len(ids)] == tuple(ids)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "text is empty"),
        ({"text": ""}, "text is empty"),
        ({"source_ids": []}, "text is empty"),
        ({"source_ids": [5.0, 2]}, "token ids must be whole numbers"),
        ({"source_ids": [9999]}, "no token 9999"),
        ({"source_ids": [9] * 65}, "65 tokens long; the limit is 64"),
        ({"text": TEXT, "target": " "}, "no text"),
        ({"text": TEXT, "target": []}, "empty"),
        ({"text": TEXT, "target": [9] * 64}, "64 tokens long; the limit is 63"),
        ({"text": TEXT, "target": [-1]}, "no token -1"),
        ({"text": TEXT, "target": [2, 9]}, "Nothing can follow the end"),
        ({"text": TEXT, "prefix": [2.5]}, "token ids must be whole numbers"),
        ({"text": TEXT, "target": [9], "prefix": [9]}, "without prefix"),
        ({"text": TEXT, "target": [9], "beam": 5}, "without prefix, beam"),
    ],
)
def test_invalid_arguments_are_refused(tiny_translator, arguments, words):
    with pytest.raises(ValueError, match=words):
        tiny_translator.trace(**arguments)

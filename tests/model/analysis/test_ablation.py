"""Tests of ablation: comparisons with a broken model, shuffled words and order blindness."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from attention_atlas.model.analysis import ablation
from attention_atlas.model.analysis.ablation import match_token_order, measure_order_blindness, shuffle_words
from attention_atlas.model.trace.interventions import Interventions, heads_off, positions_off, positions_shifted
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.maps import jensen_shannon_bits
from attention_atlas.model.trace.tokens import tokens_from_spelling

TEXT = "Zwei Kinder bauen eine Burg aus Sand."


@pytest.fixture(scope="module")
def trace(tiny_translator):
    return tiny_translator.translate(TEXT)


def test_no_intervention_changes_nothing(tiny_translator, trace) -> None:
    comparison = ablation.compare(tiny_translator, trace, Interventions())
    assert comparison.altered.target_ids == trace.target_ids
    np.testing.assert_array_equal(comparison.altered.cross.weights, trace.cross.weights)
    np.testing.assert_array_equal(comparison.forced_log_probability, trace.log_probability)
    assert all((change == 0).all() for change in comparison.changes.values())
    assert {k: len(c) for k, c in comparison.changes.items()} == tiny_translator.model.num_layers
    assert {c.shape[1:] for c in comparison.changes.values()} == {(4,)}


def test_changes_match_scipys_divergence(tiny_translator, trace) -> None:
    off = positions_off()
    comparison = ablation.compare(tiny_translator, trace, off)
    output = tiny_translator.inspect(trace, interventions=off)
    broken = output.decoder_records[2].cross_attention.weights[0, 1].numpy()
    expected = np.mean([jensenshannon(p, q, base=2) ** 2 for p, q in zip(trace.cross.weights[2, 1], broken)])
    assert comparison.changes[AttentionKind.CROSS][2, 1] == pytest.approx(expected, abs=1e-6)
    assert comparison.altered.interventions == off and expected > 1e-4


def test_heads_off_reach_later_layers_only(tiny_translator, trace) -> None:
    broken = heads_off(AttentionKind.DECODER_SELF, 1, (0, 2))
    changes = ablation.compare(tiny_translator, trace, broken).changes
    assert (changes[AttentionKind.ENCODER_SELF] == 0).all()
    assert (changes[AttentionKind.DECODER_SELF][:2] == 0).all() and (changes[AttentionKind.DECODER_SELF][2] > 0).all()
    assert (changes[AttentionKind.CROSS][0] == 0).all() and (changes[AttentionKind.CROSS][1:] > 0).all()
    with pytest.raises(ValueError, match="found 9"):
        ablation.compare(tiny_translator, trace, heads_off(AttentionKind.CROSS, 0, (9,)))


def test_shifted_positions_move_both_sides(tiny_translator, trace) -> None:
    comparison = ablation.compare(tiny_translator, trace, positions_shifted(5))
    assert "shifted by 5" in comparison.altered.interventions.describe()
    assert comparison.changes[AttentionKind.ENCODER_SELF].max() > 1e-5


def test_shuffled_words_without_positions_change_no_map(tiny_translator, trace) -> None:
    text = shuffle_words(TEXT, seed=3)
    off = positions_off()
    straight = ablation.compare(tiny_translator, trace, off)
    mixed = ablation.compare(tiny_translator, trace, off, text=text)
    for kind in TRANSFORMER_KINDS:  # put back in order, the maps are those of the unshuffled sentence
        np.testing.assert_allclose(mixed.changes[kind], straight.changes[kind], atol=1e-5)
    np.testing.assert_allclose(mixed.forced_log_probability, straight.forced_log_probability, atol=1e-4)
    with_positions = ablation.compare(tiny_translator, trace, Interventions(), text=text)
    assert with_positions.changes[AttentionKind.ENCODER_SELF].max() > 1e-3


def test_shuffle_words_keeps_the_words() -> None:
    mixed = shuffle_words("a b c d", seed=1)
    assert sorted(mixed.split()) == list("abcd") and mixed != "a b c d"
    assert mixed == shuffle_words("a b c d", seed=1)
    assert shuffle_words("Ist er da?", seed=1).endswith("?")
    assert shuffle_words("a b ...", seed=1) != "a b ..."
    for text in ("word", "no no no", "", "...", "Nein!"):
        with pytest.raises(ValueError, match="nothing to shuffle"):
            shuffle_words(text, seed=1)


def test_match_token_order_keeps_words_whole() -> None:
    old = tokens_from_spelling(("<2en>", "▁ich", "▁bin", "▁dein", "▁Va", "ter", "</s>"))
    new = tokens_from_spelling(("<2en>", "▁bin", "▁Va", "ter", "▁ich", "▁dein", "</s>"))
    order = match_token_order(old, new)
    assert [old[i] for i in order] == list(new)
    twice = tokens_from_spelling(("<2en>", "▁a", "▁a", "▁b", "</s>"))
    assert list(match_token_order(twice, tokens_from_spelling(("<2en>", "▁b", "▁a", "▁a", "</s>")))) == [0, 3, 1, 2, 4]
    with pytest.raises(ValueError, match="'Haus' is not a word"):
        match_token_order(old, tokens_from_spelling(("<2en>", "▁Haus", "</s>")))
    with pytest.raises(ValueError, match="'ich' occurs more often"):
        match_token_order(old, tokens_from_spelling(("<2en>", "▁ich", "▁ich", "</s>")))
    with pytest.raises(ValueError, match="'bin' is missing: use every word as often"):
        match_token_order(old, tokens_from_spelling(("<2en>", "▁ich", "</s>")))


def test_the_order_ignores_capitals_and_marks() -> None:
    old = tokens_from_spelling(("<2en>", "▁Va", "ter", ",", "▁wo", "▁bist", "▁du", "?", "</s>"))
    typed = tokens_from_spelling(("<2en>", "▁wo", "▁DU", "▁bist", "▁va", "ter", ".", "</s>"))
    assert [old[i] for i in match_token_order(old, typed)] == [
        *("<2en>", "▁wo", "▁du", "▁bist", "▁Va", "ter", ",", "?", "</s>")
    ]
    twice = tokens_from_spelling(("▁Die", "▁die", "▁Ente"))
    for typed, order in ((("▁die", "▁Ente", "▁Die"), [1, 2, 0]), (("▁die", "▁ente", "▁die"), [1, 2, 0])):
        assert list(match_token_order(twice, tokens_from_spelling(typed))) == order


@pytest.mark.parametrize("typed", ["aus sand bauen zwei kinder eine burg", "Aus Sand bauen zwei Kinder eine Burg!"])
def test_a_typed_order_is_read_with_the_sentences_own_tokens(tiny_translator, trace, typed) -> None:
    altered = ablation.compare(tiny_translator, trace, Interventions(), text=typed).altered
    assert sorted(altered.source_ids) == sorted(trace.source_ids)
    assert altered.source_text == "aus Sand bauen Zwei Kinder eine Burg."


@pytest.mark.parametrize("text", [TEXT, "Hund", "nein nein nein nein"], ids=["plain", "short", "repeated"])
def test_only_a_causal_decoder_sees_order_without_positions(tiny_translator, text) -> None:
    trace = tiny_translator.trace(text, target=text)
    for seed in range(5):
        blindness = measure_order_blindness(tiny_translator, trace, seed=seed)
        assert blindness.encoder_on > 1e-2 and blindness.decoder_causal > 1e-2
        assert blindness.encoder_off < 1e-5 and blindness.decoder_unmasked < 1e-4 < blindness.scale


def test_one_token_has_no_other_order(tiny_translator) -> None:
    empty = tiny_translator.trace(TEXT, target=(tiny_translator.tokenizer.end_id,))
    with pytest.raises(ValueError, match="no other order"):
        measure_order_blindness(tiny_translator, empty)


def test_divergence_of_rows_made_by_hand() -> None:
    assert jensen_shannon_bits(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(1.0)
    assert jensen_shannon_bits(np.array([0.5, 0.5]), np.array([0.5, 0.5])) == 0.0
    assert jensen_shannon_bits(np.array([0.5, 0.5]), np.array([0.500001, 0.499999])) == 0.0  # rounded, no difference
    assert jensen_shannon_bits(np.array([0.5, 0.5]), np.array([0.50001, 0.49999])) > 0.0

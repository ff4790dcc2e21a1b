"""Each reduction against a reference in plain loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.maps import labels, patterns, reduce
from attention_atlas.viz.maps.reduce import Combine, Special, View, score_map

KINDS = TRANSFORMER_KINDS


def test_one_head_is_shown_unchanged(hand_made_trace):
    for kind in KINDS:
        maps = hand_made_trace.maps(kind)
        for layer, head in product(range(maps.num_layers), range(maps.num_heads)):
            scores = score_map(hand_made_trace, View(kind, layer, head))
            assert np.array_equal(scores.values, maps.weights[layer, head])
            assert scores.rows == tuple(map(labels.display, maps.query_tokens))
            assert scores.columns == tuple(map(labels.display, maps.key_tokens))
            assert scores.attention and scores.unit == "attention weight" and scores.hidden is None


@pytest.mark.parametrize("kind", KINDS)
def test_mean_and_maximum_over_heads(hand_made_trace, kind):
    heads = ((0, 1), (1, 0), (1, 3))
    weights = hand_made_trace.maps(kind).weights.astype(np.float64)
    queries, keys = weights.shape[2:]
    mean, largest = np.zeros((queries, keys)), np.zeros((queries, keys))
    for q, k in product(range(queries), range(keys)):
        cells = [weights[layer, head, q, k] for layer, head in heads]
        mean[q, k], largest[q, k] = sum(cells) / 3, max(cells)
    scores = score_map(hand_made_trace, View(kind, heads=heads, combine="mean"))
    assert np.allclose(scores.values, mean, atol=1e-7) and scores.attention
    assert np.allclose(scores.values.sum(1), 1, atol=1e-6)
    scores = score_map(hand_made_trace, View(kind, heads=heads, combine="max"))
    assert np.array_equal(scores.values, largest.astype(np.float32))
    assert not scores.attention and "score, not attention" in scores.unit
    layer = score_map(hand_made_trace, View(kind, layer=1, combine="mean"))
    assert np.allclose(layer.values, weights[1].mean(0), atol=1e-7)


def test_rollout_of_the_encoder(hand_made_trace):
    flow = np.eye(8)
    for layer in range(2):
        mixed = np.zeros((8, 8))
        for head in range(4):
            mixed += hand_made_trace.encoder_self.weights[layer, head] / 4
        flow = (0.5 * mixed + 0.5 * np.eye(8)).dot(flow)
        scores = score_map(hand_made_trace, View("encoder_self", layer=layer, combine="rollout"))
        assert np.allclose(scores.values, flow, atol=1e-6)
    assert np.allclose(scores.values.sum(1), 1, atol=1e-6)


@pytest.mark.parametrize("kind", ["cross", "decoder_self"])
def test_joint_rollout_of_the_decoder(hand_made_trace, kind):
    """Compare with the flow on one graph of all nodes: source tokens, then target tokens."""
    encoder = np.eye(8)
    for layer in hand_made_trace.encoder_self.weights.mean(1):
        encoder = (layer + np.eye(8)) / 2 @ encoder
    state = np.eye(14)  # row: node now, column: input node
    state[:8, :8] = encoder
    for layer in range(3):
        within, across = np.eye(14), np.eye(14)
        within[8:, 8:] = (hand_made_trace.decoder_self.weights[layer].mean(0) + np.eye(6)) / 2
        across[8:, :8] = hand_made_trace.cross.weights[layer].mean(0) / 2
        across[8:, 8:] = np.eye(6) / 2
        state = across @ within @ state
        scores = score_map(hand_made_trace, View(kind, layer=layer, combine="rollout"))
        assert scores.values.shape == (6, 14)
        assert np.allclose(scores.values, state[8:], atol=1e-6)
        assert np.allclose(scores.values.sum(1), 1, atol=1e-6)
    assert scores.columns[:2] == ("<2en>", "▁der") and scores.columns[8:10] == ("<s>", "▁the")
    assert np.all(np.triu(scores.values[:, 8:], 1) == 0)  # nothing flows back from later tokens


def test_words_sum_keys_and_average_queries(hand_made_trace):
    weights = hand_made_trace.cross.weights[2, 1].astype(np.float64)
    queries, keys = word_groups(hand_made_trace.target_tokens), word_groups(hand_made_trace.source_tokens)
    assert any(len(group) > 1 for group in queries) and any(len(group) > 1 for group in keys)
    expected = np.array(
        [[np.mean([sum(weights[q, k] for k in key) for q in query]) for key in keys] for query in queries]
    )
    scores = score_map(hand_made_trace, View("cross", 2, 1, words=True, predicted=True))
    assert np.allclose(scores.values, expected, atol=1e-6)
    assert np.allclose(scores.values.sum(1), 1, atol=1e-6)
    assert scores.row_positions == queries and scores.column_positions == keys


@pytest.mark.parametrize(("predicted", "special"), list(product((False, True), (Special.HIDE, Special.RENORMALISE))))
def test_hiding_special_tokens(hand_made_trace, predicted, special):
    for kind in KINDS:
        weights = hand_made_trace.maps(kind).weights[1, 2].astype(np.float64)
        row_names = labels.row_tokens(hand_made_trace, kind, predicted=predicted)
        rows = [i for i, token in enumerate(row_names) if not is_symbol(token)]
        columns = [i for i, token in enumerate(hand_made_trace.maps(kind).key_tokens) if not is_symbol(token)]
        scores = score_map(hand_made_trace, View(kind, 1, 2, special=special, predicted=predicted))
        hidden = []
        for i, row in enumerate(rows):
            left = np.array([weights[row, column] for column in columns])
            hidden.append(1 - left.sum() / weights[row].sum())
            if left.sum() == 0:
                assert np.isnan(scores.values[i]).all()
            else:
                expected = left / left.sum() if special == Special.RENORMALISE else left
                assert np.allclose(scores.values[i], expected, atol=1e-6)
        assert scores.hidden == pytest.approx(np.mean(hidden), abs=1e-9)
        assert scores.row_positions == tuple((i,) for i in rows)


def test_rows_without_mass_are_blank_also_in_words(hand_made_trace):
    # The first decoder row attends only to <s>. It is labelled by the token it predicts, so it is not hidden.
    view = View("decoder_self", 0, 0, special="renormalise", predicted=True)
    assert np.isnan(score_map(hand_made_trace, view).values[0]).all()
    merged = reduce.merge_words(np.array([[np.nan, np.nan], [0.25, 0.75], [np.nan, np.nan]]), ((0, 1), (2,)), ((0, 1),))
    assert merged[0, 0] == 1.0 and np.isnan(merged[1, 0])


def test_a_maximum_is_never_rescaled_into_attention(hand_made_trace):
    hidden = score_map(hand_made_trace, View("cross", combine="max", special="hide"))
    rescaled = score_map(hand_made_trace, View("cross", combine="max", special="renormalise"))
    assert np.array_equal(hidden.values, rescaled.values) and rescaled.hidden is None


def test_rows_sum_to_one_for_every_combination_of_options(hand_made_trace):
    for kind, combine, words, special, predicted in product(KINDS, Combine, (False, True), Special, (False, True)):
        view = View(kind, 1, 3, combine=combine, words=words, special=special, predicted=predicted)
        scores = score_map(hand_made_trace, view)
        assert scores.values.dtype == np.float32
        blank = np.isnan(scores.values).any(1)
        assert np.isnan(scores.values[blank]).all()
        if scores.attention and special != Special.HIDE:
            assert np.allclose(scores.values[~blank].sum(1), 1, atol=1e-5), view


def test_missing_heads_are_named(hand_made_trace):
    with pytest.raises(ValueError, match="layer 2, head 0"):
        score_map(hand_made_trace, View("encoder_self", layer=2))
    with pytest.raises(ValueError, match="head 4"):
        score_map(hand_made_trace, View("cross", combine="mean", heads=((0, 4),)))
    with pytest.raises(ValueError, match="sideways"):
        View("sideways")


def test_entropy_against_closed_forms():
    assert patterns.entropy_bits(np.full((1, 8), 1 / 8)) == pytest.approx([3.0])
    assert patterns.entropy_bits(np.eye(3)).tolist() == [0, 0, 0]
    p = np.array([0.7, 0.2, 0.1])
    assert patterns.entropy_bits(p[None])[0] == pytest.approx(-sum(x * np.log2(x) for x in p))


def _trace_with(trace, **weights):
    """Return a trace in which all heads of some kinds have the same weights."""
    changed = {}
    for kind, matrix in weights.items():
        maps = trace.maps(AttentionKind(kind))
        full = np.broadcast_to(matrix, maps.weights.shape).astype(np.float32)
        changed[kind] = AttentionMaps(full.copy(), maps.query_tokens, maps.key_tokens)
    return replace(trace, **changed)


def test_patterns_of_constructed_heads(hand_made_trace):
    def reading(kind, matrix):
        trace = _trace_with(hand_made_trace, **{kind: matrix})
        return patterns.head_patterns(trace, AttentionKind(kind))[1][2]

    previous = np.eye(6, k=-1)
    previous[0, 0] = 1
    pattern = reading("decoder_self", 0.8 * previous + 0.2 * np.eye(6))
    assert pattern.name == "previous token" and pattern.share == pytest.approx(0.8)
    assert pattern.reading == "mostly previous token (80% of its weight)"
    sink = np.full((8, 8), 0.1 / 7)
    sink[:, -1] = 0.9
    assert reading("encoder_self", sink).reading == "mostly end-of-sentence sink (90% of its weight)"
    assert reading("encoder_self", np.eye(8)).name == "own position"
    assert reading("encoder_self", np.full((8, 8), 1 / 8)).reading == "spread evenly: 3.00 of at most 3.00 bits"
    diagonal = np.zeros((6, 8))
    diagonal[range(6), [round(q * 7 / 5) for q in range(6)]] = 1
    assert reading("cross", diagonal).name == "diagonal"
    language = np.zeros((6, 8))
    language[:, 0] = 1
    assert reading("cross", language).name == "language-symbol sink"
    point = np.full((6, 8), 0.3 / 7)
    point[range(6), [6, 5, 6, 1, 2, 2]] = 0.7
    assert reading("cross", point).name == "pointed"


def test_words_of_a_maximum_take_the_largest(hand_made_trace):
    scores = score_map(hand_made_trace, View("cross", 2, combine="max", words=True))
    largest = hand_made_trace.cross.weights[2].max(axis=0)
    for i, rows in enumerate(scores.row_positions):
        for j, columns in enumerate(scores.column_positions):
            assert scores.values[i, j] == largest[np.ix_(rows, columns)].max()

"""Traces and maps refuse arrays that do not fit together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps


def uniform(queries: int, keys: int, dtype=np.float32) -> np.ndarray:
    return np.full((2, 3, queries, keys), 1 / keys, dtype)


def test_the_row_that_does_not_sum_to_one_is_named():
    weights = uniform(2, 4)
    weights[1, 2, 0, 3] += 0.01
    with pytest.raises(ValueError, match=r"row 0 of layer 1, head 2 .*1\.00e-02"):
        AttentionMaps(weights, ("a", "b"), ("c",) * 4)


@pytest.mark.parametrize(
    "weights, message",
    [
        (uniform(2, 4, np.float64), "float64"),
        (uniform(2, 4)[0], "3, 2, 4"),
        (uniform(2, 3), r"\(2, 3\).*\(2, 4\)"),
        (np.full((1, 1, 2, 4), np.nan, np.float32), "finite"),
        (np.tile(np.array([1.5, -0.5, 0, 0], np.float32), (1, 1, 2, 1)), "negative"),
    ],
)
def test_damaged_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        AttentionMaps(weights, ("a", "b"), ("c",) * 4)


@pytest.mark.parametrize(
    "field, value",
    [
        ("decoder_inputs", ("<s>",)),
        ("target_tokens", ("</s>",)),
        ("decoder_ids", ()),
        ("source_tokens", ()),
        ("top_ids", np.zeros((2, 10), np.int32)),
        ("top_tokens", ()),
        ("chosen_rank", np.ones(5, np.int32)),
        ("entropy", np.zeros(7, np.float32)),
        ("log_probability", np.zeros(0, np.float32)),
        ("top_probabilities", np.zeros((1, 10), np.float32)),
    ],
)
def test_lengths_that_disagree_are_named(hand_made_trace, field, value):
    with pytest.raises(ValueError, match=field.split("_")[0]):
        replace(hand_made_trace, **{field: value})


def test_swapped_token_lists_are_refused(hand_made_trace):
    """Cross-attention labelled with the tokens predicted instead of those read: the well-known off-by-one."""
    shifted = AttentionMaps(hand_made_trace.cross.weights, hand_made_trace.target_tokens, hand_made_trace.source_tokens)
    with pytest.raises(ValueError, match="cross maps"):
        replace(hand_made_trace, cross=shifted)


def test_maps_are_selected_by_kind_and_traces_hash_by_identity(hand_made_trace):
    assert hand_made_trace.maps(AttentionKind.CROSS) is hand_made_trace.cross
    assert hand_made_trace.maps("encoder_self") is hand_made_trace.encoder_self
    assert len({hand_made_trace, replace(hand_made_trace)}) == 2
    with pytest.raises(ValueError, match="sideways"):
        hand_made_trace.maps("sideways")

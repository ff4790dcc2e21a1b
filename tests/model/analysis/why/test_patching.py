"""Tests of activation patching at its extremes, of its two modes, and of cut edges against single passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.experiments import cutting, patching
from attention_atlas.model.analysis.why.experiments.patching import (
    HeadGrid,
    PatchEffects,
    PatchMode,
    StreamGrid,
    SubLayerGrid,
)
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.kinds import Side, SubLayerName
from tests.model.analysis.why.cases import CROSS, DECODER, ENCODER, TARGET, case_of

CLEAN, SAME_LENGTH, LONGER = [4, 20, 31, 45, 2], [4, 20, 77, 45, 2], [4, 20, 77, 78, 79, 45, 2]
GRIDS = (
    StreamGrid(Side.ENCODER),
    StreamGrid(Side.DECODER),
    SubLayerGrid(Side.ENCODER, SubLayerName.FEED_FORWARD),
    SubLayerGrid(Side.DECODER, SubLayerName.CROSS_ATTENTION),
    HeadGrid(DECODER),
    HeadGrid(CROSS),
)


@pytest.fixture()
def clean(model) -> Case:
    return case_of(model, CLEAN, TARGET)


@pytest.mark.parametrize("other", [SAME_LENGTH, LONGER], ids=["same length", "longer"])
def test_patching_the_last_stream_recovers_everything(clean, other):
    corrupt = patching.replace_source(clean, other)
    effects = patching.patch_grid(clean, corrupt, StreamGrid(Side.DECODER), PatchMode.DENOISE)
    assert effects.metrics.shape == (3, 4) and effects.base == pytest.approx(corrupt.metric(), abs=1e-9)
    assert effects.metrics[-1, -1] == pytest.approx(clean.metric(), abs=1e-5)
    np.testing.assert_allclose(effects.metrics[-1, :-1], corrupt.metric(), atol=1e-5)  # no later layer reads them


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_patching_a_run_into_itself_changes_nothing(clean, grid):
    effects = patching.patch_grid(clean, clean, grid, PatchMode.NOISE)
    np.testing.assert_allclose(effects.metrics, clean.metric(), atol=1e-5)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_denoising_equals_noising_with_runs_swapped(clean, grid):
    corrupt = patching.replace_source(clean, SAME_LENGTH)
    denoised = patching.patch_grid(clean, corrupt, grid, PatchMode.DENOISE)
    noised = patching.patch_grid(corrupt, clean, grid, PatchMode.NOISE)
    np.testing.assert_allclose(denoised.metrics, noised.metrics, atol=1e-9)
    assert not np.allclose(denoised.metrics, denoised.base, atol=1e-4)


def test_patching_all_encoder_positions(clean):
    """The encoder's last stream at all positions one by one adds nothing where the sources agree in everything but one
    token, and a layer's patch is what a pass with that stream gives."""
    corrupt = patching.replace_source(clean, SAME_LENGTH)
    effects = patching.patch_grid(clean, corrupt, StreamGrid(Side.ENCODER), PatchMode.DENOISE)
    giving, receiving = (case.output.layers(Side.ENCODER)[-1].after.clone() for case in (clean, corrupt))
    receiving[:, 2] = giving[:, 2]
    with torch.inference_mode():
        encoded = corrupt.model.repeat_source(corrupt.output, 1)
        memory = replace(encoded, memory=clean.model.encoder.norm(receiving), projected={})
        expected = float(corrupt.measure(corrupt.decode(corrupt.target_rows, memory))[0])
    assert effects.metrics[-1, 2] == pytest.approx(expected, abs=1e-5)


def test_sentences_of_unequal_length_pair_equal_tokens(clean):
    corrupt = patching.replace_source(clean, LONGER)
    effects = patching.patch_grid(clean, corrupt, StreamGrid(Side.ENCODER), PatchMode.DENOISE)
    assert effects.pairs == (0, 1, -1, -1, -1, 3, 4)
    np.testing.assert_array_equal(np.isnan(effects.metrics[0]), [False, False, True, True, True, False, False])
    with pytest.raises(ValueError, match="7 and 5 tokens"):
        patching.patch_grid(clean, corrupt, HeadGrid(ENCODER), PatchMode.DENOISE)


def test_recovered_is_none_for_a_small_gap():
    effects = PatchEffects(HeadGrid(CROSS), PatchMode.NOISE, np.array([[1.0]]), base=0.0, other=0.9)
    assert effects.recovered is None
    wide = PatchEffects(HeadGrid(CROSS), PatchMode.NOISE, np.array([[1.0, 4.0]]), base=0.0, other=2.0)
    np.testing.assert_array_equal(wide.recovered, [[0.5, 2.0]])


@pytest.mark.parametrize("kind, layer, head", [(ENCODER, 1, 2), (DECODER, 0, 3), (CROSS, 2, 1)])
def test_measure_edges_matches_single_cuts(clean, kind, layer, head):
    """Against a pass of its own with the intervention on that edge, for every cell."""
    effects = cutting.measure_edges(clean, kind, layer, head)
    queries = 5 if kind is ENCODER else 4
    assert effects.shape == (queries, 4 if kind is DECODER else 5)
    for query, key in np.ndindex(effects.shape):
        only = kind is DECODER and (key > query or query == 0)
        assert np.isnan(effects[query, key]) == only
        if only:
            continue
        changes = Interventions(cut_edges=frozenset({Edge(kind, query, key, layer, head)}))
        with torch.inference_mode():
            logits = clean.model(clean.source_ids, clean.decoder_ids, interventions=changes).logits[0, -1].double()
        assert effects[query, key] == pytest.approx(clean.metric() - float(logits[40] - logits[50]), abs=2e-5)


def test_unknown_head_raises(clean):
    with pytest.raises(ValueError, match="heads are 0 to 3, found 4"):
        cutting.measure_edges(clean, CROSS, 0, 4)
    with pytest.raises(ValueError, match="layers 0 to 2, found 3"):
        cutting.measure_edges(clean, CROSS, 3, 0)

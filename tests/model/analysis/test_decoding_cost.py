"""Decoding with and without the cache, and dropout of weights."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis.decoding_cost import MAX_STEPS, measure_cost
from attention_atlas.model.analysis.formulas.stages import dropped
from attention_atlas.model.trace.interventions import Interventions, positions_shifted


@pytest.mark.parametrize("interventions", [Interventions(), positions_shifted(2)])
def test_both_compute_the_same_logits_and_count_their_rows(tiny_translator, interventions):
    trace = tiny_translator.translate("Der kleine Hund schläft unter dem Tisch.", interventions=interventions)
    cost = measure_cost(tiny_translator, trace)
    steps = min(MAX_STEPS, len(trace.target_ids))
    assert len(cost.uncached) == len(cost.cached) == steps and cost.error < 1e-4
    assert cost.rows == (sum(range(1, steps + 1)), steps)
    assert (cost.uncached > 0).all() and (cost.cached > 0).all()
    assert len(measure_cost(tiny_translator, trace, max_steps=3).uncached) == min(3, steps)


def test_the_cache_saves_time_on_a_long_text(shipped_translators):
    translator = shipped_translators["de-en"]
    trace = translator.translate("Ein kleiner Hund rennt über die grüne Wiese. " * 6, "de-en")
    cost = measure_cost(translator, trace)
    assert cost.error < 1e-3 and cost.uncached[-8:].sum() > cost.cached[-8:].sum()


def test_dropped_weights_are_the_weights_on_average():
    weights = np.random.default_rng(1).dirichlet(np.ones(9))
    draws = np.stack([dropped(weights, 0.3, seed=seed) for seed in range(4000)])
    np.testing.assert_allclose(draws.mean(0), weights, atol=0.02)
    is_kept = draws > 0
    np.testing.assert_allclose(draws[is_kept], np.broadcast_to(weights / 0.7, draws.shape)[is_kept])
    assert is_kept.mean() == pytest.approx(0.7, abs=0.01) and np.array_equal(dropped(weights, 0.0), weights)

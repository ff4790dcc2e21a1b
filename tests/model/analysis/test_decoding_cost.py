"""What the cache saves: both ways compute the same, and one of them far fewer rows."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis.dissection import dropped
from attention_atlas.model.analysis.formulas.decoding_cost import MOST, measure
from attention_atlas.model.trace.interventions import Interventions, positions_shifted


@pytest.mark.parametrize("interventions", [Interventions(), positions_shifted(2)])
def test_both_ways_write_the_same_and_count_their_rows(tiny_translator, interventions):
    trace = tiny_translator.translate("Der kleine Hund schläft unter dem Tisch.", interventions=interventions)
    found = measure(tiny_translator, trace)
    steps = min(MOST, len(trace.target_ids))
    assert len(found.whole) == len(found.cached) == steps and found.error < 1e-4
    assert found.rows == (sum(range(1, steps + 1)), steps)
    assert (found.whole > 0).all() and (found.cached > 0).all()
    assert len(measure(tiny_translator, trace, most=3).whole) == min(3, steps)


def test_of_a_long_text_the_cache_takes_less_time(shipped_translators):
    translator = shipped_translators["de-en"]
    trace = translator.translate("Ein kleiner Hund rennt über die grüne Wiese. " * 6, "de-en")
    found = measure(translator, trace)
    assert found.error < 1e-3 and found.whole[-8:].sum() > found.cached[-8:].sum()


def test_dropped_weights_are_the_weights_on_average():
    weights = np.random.default_rng(1).dirichlet(np.ones(9))
    draws = np.stack([dropped(weights, 0.3, seed=seed) for seed in range(4000)])
    np.testing.assert_allclose(draws.mean(0), weights, atol=0.02)
    kept = draws > 0
    np.testing.assert_allclose(draws[kept], np.broadcast_to(weights / 0.7, draws.shape)[kept])
    assert kept.mean() == pytest.approx(0.7, abs=0.01) and np.array_equal(dropped(weights, 0.0), weights)

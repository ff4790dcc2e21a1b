"""This sentence's loss: plain and smoothed as torch has them, and no less than labels that are smoothed allow."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.analysis.training_batch import SMOOTHING, min_smoothed_loss
from attention_atlas.viz.panels.scene import Scene
from tests.viz.panels import panels


@pytest.mark.parametrize("checkpoint", ["de-en", "gru-de-en"])
def test_both_losses_are_torchs_and_the_least_is_a_bound(shipped_translators, checkpoint):
    translator = shipped_translators[shipped_translators.find("de-en", checkpoint).label]
    trace = translator.translate("Mein Bruder hat gestern einen roten Apfel gegessen.", "de-en")
    facts, table = panels.named("surprise").content(Scene(trace, made_by=translator))[1:3]
    logits = translator.inspect(trace.source_ids, trace.target_ids).logits[0].double()
    taken, size = torch.tensor(trace.target_ids), logits.shape[-1]
    for row, column, smoothing in ((0, 2, 0.0), (1, 3, SMOOTHING)):
        each = F.cross_entropy(logits, taken, label_smoothing=smoothing, reduction="none")
        assert float(facts["items"][row][1]) == pytest.approx(each.mean().item(), abs=6e-4)
        values = [float(line[column]["text"]) for line in table["rows"]]
        assert values == pytest.approx(each.tolist(), abs=6e-4)
    smoothed = torch.full((size,), SMOOTHING / size).double()
    smoothed[0] += 1 - SMOOTHING
    assert min_smoothed_loss(size) == pytest.approx(torch.distributions.Categorical(smoothed).entropy().item())
    assert f"{min_smoothed_loss(size):.2f}" == "1.22" and float(facts["items"][1][1]) > min_smoothed_loss(size)

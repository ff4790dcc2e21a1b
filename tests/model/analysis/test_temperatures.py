"""The logit lens, and temperature over the whole vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis import temperatures
from attention_atlas.model.analysis.lenses.read import streams_of
from attention_atlas.model.trace.kinds import Side

TEXT = "Zwei Kinder bauen eine Burg aus Sand."


def test_the_first_row_of_the_lens_reads_the_input(tiny_model):
    ids = torch.tensor([[1, 30, 41]])
    with torch.inference_mode():
        output = tiny_model(torch.tensor([[4, 20, 2]]), ids, record=True)
        expected = tiny_model.embed(ids, decoder=True)
    torch.testing.assert_close(streams_of(output, Side.DECODER)[0], expected, atol=1e-5, rtol=0)


def test_a_lens_needs_records(tiny_model):
    with torch.inference_mode():
        output = tiny_model(torch.tensor([[4, 20, 2]]), torch.tensor([[1, 30]]))
    with pytest.raises(ValueError, match="record=True"):
        streams_of(output, Side.DECODER)


def test_temperature_is_over_the_whole_vocabulary(tiny_translator):
    own = tiny_translator.translate(TEXT)
    details = temperatures.compute_details(tiny_translator, own.source_ids, own.target_ids)
    logits = tiny_translator.inspect(own.source_ids, own.target_ids).logits[0].double()
    for at, temperature in enumerate(temperatures.TEMPERATURES):
        p = (logits / temperature).softmax(-1).numpy()
        scaled = np.log(own.top_probabilities.astype(float)) / temperature - details.log_normalisers[at][:, None]
        expected = np.take_along_axis(p, own.top_ids.astype(int), -1)
        np.testing.assert_allclose(np.exp(scaled), expected, atol=1e-5, rtol=1e-3)
        np.testing.assert_allclose(details.entropies[at], -(p * np.log2(p.clip(1e-300))).sum(-1), atol=1e-4)
    index = temperatures.TEMPERATURES.index(1.0)
    np.testing.assert_allclose(details.log_normalisers[index], 0.0, atol=1e-5)
    np.testing.assert_allclose(details.entropies[index], own.entropy, atol=1e-4)

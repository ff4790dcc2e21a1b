"""The logit lens, and temperature over the whole vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis import temperatures
from attention_atlas.model.analysis.lenses.decoder import decoder_lens, streams_of
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.trace.kinds import Side
from tests.conftest import build_tiny_model

TEXT = "Zwei Kinder bauen eine Burg aus Sand."


@pytest.fixture(scope="module")
def own(tiny_translator):
    return tiny_translator.translate(TEXT)


def test_a_branch_stepped_with_the_cache_is_a_full_pass(tiny_translator, own):
    """Logits to 1e-4, and the weights that the cached steps record to 1e-5, after another choice."""
    model = tiny_translator.model
    with torch.inference_mode():
        source = model.encode(torch.tensor([own.source_ids]))
        decoder = StepDecoder(model, source, torch.tensor([own.decoder_ids[:3]]), record=True)
        ids = [*own.decoder_ids[:3], int(own.top_ids[2, 4])]
        decoder.append(torch.tensor(ids[-1:]))
        full = model(torch.tensor([own.source_ids]), torch.tensor([ids]), record=True)
    torch.testing.assert_close(decoder.logits, full.logits[:, -1], atol=1e-4, rtol=0)
    for stepped, whole in zip(decoder.records, full.decoder_records):
        for name in ("self_attention", "cross_attention"):
            torch.testing.assert_close(
                getattr(stepped, name).weights, getattr(whole, name).weights[:, :, -1:], atol=1e-5, rtol=0
            )


@pytest.mark.parametrize("changes", [{}, {"norm_first": False}])
def test_the_last_row_of_the_lens_is_the_models_own_distribution(tokenizer, changes):
    model = build_tiny_model(tokenizer, **changes)
    target = [30, 41, 52, 60]
    with torch.inference_mode():
        output = model(torch.tensor([[4, 20, 31, 2]]), torch.tensor([[1, *target[:-1]]]), record=True)
        logits = model.project(model.decoder.norm(streams_of(output, Side.DECODER)))
        assert logits.shape == (4, 1, 4, len(tokenizer))
        torch.testing.assert_close(logits[-1].softmax(-1), output.logits.softmax(-1), atol=1e-6, rtol=0)
        own = output.logits[0].softmax(-1)
    lens = decoder_lens(model, output, target)
    assert lens.top_ids.shape == lens.chosen_ranks.shape == (4, 4)
    for step, token in enumerate(target):
        assert lens.top_ids[-1, step] == int(own[step].argmax())
        assert lens.chosen_probabilities[-1, step] == pytest.approx(float(own[step, token]), abs=1e-6)
        assert lens.chosen_ranks[-1, step] == 1 + int((own[step] > own[step, token]).sum())
    assert (lens.top_probabilities >= lens.chosen_probabilities).all()


def test_the_first_row_of_the_lens_reads_the_input(tokenizer):
    model = build_tiny_model(tokenizer)
    ids = torch.tensor([[1, 30, 41]])
    with torch.inference_mode():
        output = model(torch.tensor([[4, 20, 2]]), ids, record=True)
        expected = model.embed(ids, decoder=True)
    torch.testing.assert_close(streams_of(output, Side.DECODER)[0], expected, atol=1e-5, rtol=0)


def test_a_lens_needs_records(tiny_model):
    with torch.inference_mode():
        output = tiny_model(torch.tensor([[4, 20, 2]]), torch.tensor([[1, 30]]))
    with pytest.raises(ValueError, match="record=True"):
        streams_of(output, Side.DECODER)


def test_temperature_is_over_the_whole_vocabulary(tiny_translator, own):
    details = temperatures.compute_details(tiny_translator, own.source_ids, own.target_ids)
    logits = tiny_translator.inspect(own.source_ids, own.target_ids).logits[0].double()
    for at, temperature in enumerate(temperatures.TEMPERATURES):
        p = (logits / temperature).softmax(-1).numpy()
        np.testing.assert_allclose(
            np.exp(np.log(own.top_probabilities.astype(float)) / temperature - details.log_normalisers[at][:, None]),
            np.take_along_axis(p, own.top_ids.astype(int), -1),
            atol=1e-5,
            rtol=1e-3,
        )
        np.testing.assert_allclose(details.entropies[at], -(p * np.log2(p.clip(1e-300))).sum(-1), atol=1e-4)
    index = temperatures.TEMPERATURES.index(1.0)
    np.testing.assert_allclose(details.log_normalisers[index], 0.0, atol=1e-5)
    np.testing.assert_allclose(details.entropies[index], own.entropy, atol=1e-4)

"""Bounds follow from a model's sizes: the length of a text, the size of a batch, and tensors computed in blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attention_atlas.model.analysis import temperatures
from attention_atlas.model.analysis.lenses.read import decoder_lens
from attention_atlas.model.analysis.survey import batch
from attention_atlas.model.analysis.why.case import linear_metric, open_case
from attention_atlas.model.analysis.why.experiments import heads as experiment
from attention_atlas.model.analysis.why.experiments import smallest
from attention_atlas.model.analysis.why.experiments.heads import list_heads
from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.checks.verify import verify
from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.nets.blocks import MAX_LOGITS, blocks, log_probabilities, most_probable
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.serve.batching import _Job
from attention_atlas.model.serve.limits import FLOAT, BatchLimits
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.attribution import Question
from attention_atlas.model.translator import Translator, tracing
from attention_atlas.model.translator.tracing import trace_requests
from bench.made.growth import TensorMemory
from tests.conftest import SENTENCES, build_tiny_model, make_translator

NLLB = ModelConfig(
    256_206,
    d_model=1024,
    num_heads=16,
    num_encoder_layers=12,
    num_decoder_layers=12,
    d_feedforward=4096,
    max_length=1024,
)
OPUS = ModelConfig(
    58_101, d_model=512, num_heads=8, num_encoder_layers=6, num_decoder_layers=6, d_feedforward=2048, max_length=512
)
SHIPPED = ModelConfig(8_000)
TEXT = " ".join(SENTENCES)


def map_bytes(config: ModelConfig, n: int) -> int:
    """Return the bytes of float32 maps with n tokens a side."""
    square = 4 * config.num_heads * n * n
    return config.num_encoder_layers * square + 2 * config.num_decoder_layers * square


@pytest.mark.parametrize(
    ("config", "longest", "whole"),
    [
        (NLLB, 918, 100),
        (OPUS, 1024, 209),
        (SHIPPED, 1024, 256),
        (replace(SHIPPED, position_code=PositionCode.LEARNED), 256, 256),
        (replace(OPUS, position_code=PositionCode.RELATIVE, max_length=4096), 1024, 209),
    ],
)
def test_the_longest_text_and_the_longest_with_recorded_maps(config, longest, whole):
    limits = BatchLimits()
    assert limits.max_text_tokens(config) == pytest.approx(longest, rel=0.02)
    lengths = range(1, longest + 1)
    with_maps = [n for n in lengths if not limits.needs_long_text_cache(config, n, min(2 * n + 10, longest - 1))]
    assert with_maps == list(range(1, len(with_maps) + 1)) and len(with_maps) == pytest.approx(whole, rel=0.05)
    assert map_bytes(config, len(with_maps)) <= 64e6
    assert BatchLimits(tokens=100).max_text_tokens(config) == 100
    with pytest.raises(ValueError, match="too large"):
        BatchLimits(batch_bytes=1000).max_text_tokens(config)


def test_a_text_that_is_too_long_is_refused_with_the_limit(tokenizer, tiny_model):
    room = FLOAT * tiny_model.config.long_text_numbers(40, 40)
    translator = make_translator(tiny_model, tokenizer, limits=BatchLimits(batch_bytes=room))
    assert translator.max_tokens == 40
    with pytest.raises(Refusal, match="the limit is 40 tokens"):
        translator.translate(TEXT)
    text = SENTENCES[0]
    with pytest.raises(Refusal, match="the limit is"):
        translator.trace(text, target=[40] * translator.max_tokens)
    assert len(translator.trace(text, prefix=[40] * (translator.max_tokens - 3)).target_ids) < translator.max_tokens
    with pytest.raises(Refusal, match="does not fit into memory"):
        translator.inspect([40] * 40, [40] * 39)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"max_length": 96}, marks=pytest.mark.endure),
        pytest.param({"d_model": 64, "d_feedforward": 256, "num_heads": 2, "max_length": 64}, marks=pytest.mark.long),
        {"num_heads": 16, "num_encoder_layers": 4, "norm_first": False},
    ],
)
def test_the_memory_of_a_batch_is_close_to_its_bound(tokenizer, changes):
    """A pass takes at most the bound, and with records, as after a prefix, at least half of it."""
    model = build_tiny_model(tokenizer, **changes)
    translator = make_translator(model, tokenizer, limits=BatchLimits(tokens=model.config.max_length))
    longest = translator.max_tokens
    for rows, length in ((1, longest), (3, longest // 2)):
        request = replace(translator._request(SENTENCES[0], "de-en", NO_INTERVENTIONS), source_ids=tuple([40] * length))
        for prefix, share in ((), 0.0), ((41,), 0.5):
            with TensorMemory() as memory:
                traces = trace_requests(translator, [replace(request, prefix=prefix)] * rows)
            target = max(len(trace.target_ids) for trace in traces)
            bound = rows * FLOAT * translator.config.pass_numbers(length, target)
            assert share * bound < memory.peak <= bound
    translator = make_translator(model, tokenizer, limits=BatchLimits(trace_bytes=1))
    length = 2 * model.config.max_length
    request = replace(request, source_ids=tuple([40] * length), target=tuple([41] * length))
    with TensorMemory() as memory:
        (trace,) = trace_requests(translator, [request])
    map_bytes_read = sum(trace.maps(kind).weights.nbytes for kind in trace.kinds)
    bound = FLOAT * model.config.long_text_numbers(length, length)
    assert 0.4 * bound < memory.peak + map_bytes_read <= bound


def test_batches_stay_within_their_bytes(tokenizer, tiny_model):
    alone = make_translator(tiny_model, tokenizer, limits=BatchLimits(tokens=64))
    request = alone._request(SENTENCES[0], "de-en", NO_INTERVENTIONS)
    length = len(request.source_ids)
    row = FLOAT * alone.config.pass_numbers(length, alone.step_limit(length))
    translator = make_translator(tiny_model, tokenizer, limits=BatchLimits(batch_bytes=5 * row // 2, tokens=64))
    assert translator.max_tokens == alone.max_tokens
    sizes, run = [], translator._batcher._run
    translator._batcher._run = lambda requests: sizes.append(len(requests)) or run(requests)
    jobs = [_Job(request, length, None) for _ in range(7)]
    translator._batcher._queue = list(jobs)
    while translator._batcher._queue:
        translator._batcher._finish(translator._batcher._take())
    assert sizes == [2, 2, 2, 1] and all(job.result.target_ids for job in jobs)


class Largest(TensorMemory):
    """Records in `numbers` the size of the largest tensor that an operation allocates."""

    numbers = 0

    def _add(self, tensor: Tensor) -> None:
        self.numbers = max(self.numbers, tensor.numel())
        super()._add(tensor)


@pytest.fixture(scope="module")
def wide(tokenizer) -> Translator:
    """A translator of 90,000 tokens, of which 350 have a piece: a sentence's logits exceed a block."""
    model = build_tiny_model(
        tokenizer, d_model=8, num_heads=2, max_length=64, shared_embeddings=False, target_vocabulary_size=90_000
    )
    with torch.no_grad():
        model.target_embedding.weight[350:] *= 0.01  # so that what is written has pieces
    return make_translator(model, tokenizer)


@pytest.mark.long
def test_no_tensor_has_all_logits_of_a_sentence(wide):
    ids = [30 + i for i in range(55)]
    with torch.inference_mode():
        expected = wide.inspect(wide.encode(SENTENCES[0]), ids)
        lens = wide.model.project(torch.stack([wide.model.decoder.norm(r.after[0]) for r in expected.decoder_records]))
    assert expected.logits.numel() > MAX_LOGITS and len(blocks(len(ids), 90_000)) > 1
    with Largest() as largest:
        trace = wide.trace(SENTENCES[0], target=ids)
        details = temperatures.compute_details(wide, trace.source_ids, ids)
        output = wide.inspect(trace.source_ids, ids)
        lens_output = decoder_lens(wide.model, output, ids)
        (scores,) = wide.log_probabilities([list(trace.source_ids)], [ids])
        checks = list(verify(wide, trace))
    assert largest.numbers <= MAX_LOGITS
    log_p = expected.logits[0].double().log_softmax(-1)
    np.testing.assert_allclose(trace.log_probability, log_p[range(55), ids], atol=1e-4)
    np.testing.assert_allclose(scores, log_p[range(55), ids], atol=1e-4)
    assert lens_output.top_ids[1:].tolist() == lens.argmax(-1).tolist()
    np.testing.assert_allclose(details.entropies[9], -(log_p.exp() * log_p).sum(-1) / np.log(2), atol=1e-3)  # T = 1
    assert checks and all(check.passed for check in checks)


def test_why_computes_logits_in_blocks(wide):
    """Occlusion, gradients, ablations and the smallest set compute logits in blocks, as single passes do."""
    ids = [30 + i for i in range(55)]
    trace = wide.trace(SENTENCES[0], target=ids)
    case = open_case(wide, trace, Question(54, ids[54], trace.target_tokens[54]))
    heads = list_heads(case)
    translation = smallest.open_translation(case, wide, trace)
    ablation = experiment.zero_values()
    with Largest() as largest:
        effects, flips = experiment.ablate(case, ablation, [[head] for head in heads])
        answers = [method(case).values for method in METHODS.values()]
        leads = translation.measure_leads([[], heads[:1], heads], ablation.draws[0])
        slopes = translation.slopes(ablation.draws[0])
    assert largest.numbers <= MAX_LOGITS and all(np.isfinite(values).any() for values in answers)
    with torch.inference_mode():
        log_p = wide.inspect(trace.source_ids, ids).logits[0].double().log_softmax(-1)
        hidden = experiment.run_without_heads(case, [[head] for head in heads], ablation.draws[0])
        off = wide.model.project(hidden).double()
    others = log_p.clone()
    others[range(55), ids] = float("-inf")
    np.testing.assert_allclose(leads[0], log_p[range(55), ids] - others.amax(-1), atol=1e-4)
    np.testing.assert_allclose(effects, log_p[54, ids[54]] - off.log_softmax(-1)[:, ids[54]], atol=1e-4)
    assert slopes.shape == (len(heads),) and flips.tolist() == (off.argmax(-1) != log_p[54].argmax()).tolist()


def test_a_survey_computes_logits_in_blocks(wide):
    """Its gradients agree with those of the whole distribution."""
    sources, targets = [wide.encode(text) for text in SENTENCES[:3]], [[30 + i for i in range(n)] for n in (50, 9, 33)]
    with Largest() as largest:
        recorded = batch.run(wide, sources, targets)
    assert largest.numbers <= MAX_LOGITS
    for row, (source, target) in enumerate(zip(sources, targets)):
        gates = {kind: torch.ones(1, layers, 2, requires_grad=True) for kind, layers in wide.model.num_layers.items()}
        inputs = torch.tensor([[wide.tokenizer.begin_id, *target[:-1]]])
        logits = wide.model(torch.tensor([source]), inputs, interventions=Sweep(gates=gates)).logits[0]
        mean = logits.log_softmax(-1)[range(len(target)), target].mean()
        for kind, slope in zip(gates, torch.autograd.grad(mean, list(gates.values()))):
            np.testing.assert_allclose(recorded.slopes[kind][row], slope[0], atol=1e-5)


def test_the_mean_embedding_copies_no_matrix(wide, monkeypatch):
    weight = wide.model.output_matrix.detach()
    question = Question(0, 40, "a")
    whole, _ = linear_metric(wide.model, question)
    monkeypatch.setattr("attention_atlas.model.analysis.why.case.MAX_LOGITS", 1000)
    with Largest() as largest:
        parts, _ = linear_metric(wide.model, question)
    assert largest.numbers <= len(weight)  # of a vector, and of a part of the matrix
    for vector in (whole, parts):
        torch.testing.assert_close(vector, weight[40].double() - weight.double().mean(0))


@given(st.integers(0, 40), st.integers(1, 50))
def test_log_probabilities_in_blocks_agree_with_the_whole(rows, room):
    torch.manual_seed(rows)
    matrix, hidden = torch.randn(9, 4).double(), torch.randn(rows, 4).double().requires_grad_()
    ids = torch.randint(9, (rows,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attention_atlas.model.nets.blocks.blocks", partial(blocks, max_logits=room))
        log_p = log_probabilities(lambda x: x @ matrix.T, hidden, ids, 9, dtype=torch.float64)
        best = most_probable(lambda x: x @ matrix.T, hidden, 9) if rows else None
    expected = (hidden @ matrix.T).log_softmax(-1).gather(-1, ids[:, None])[:, 0]
    torch.testing.assert_close(log_p, expected)
    if rows:
        assert best.tolist() == (hidden @ matrix.T).argmax(-1).tolist()
        weights = torch.randn(rows).double()
        slopes = [torch.autograd.grad((weights * values).sum(), hidden)[0] for values in (log_p, expected)]
        torch.testing.assert_close(*slopes)


def test_only_a_small_model_is_copied_to_the_cpu_when_the_device_is_out_of_memory(tiny_checkpoint, monkeypatch):
    translator = Translator.load(tiny_checkpoint, "cpu")

    def full(*_):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(translator, "device", torch.device("cuda", 0))
    monkeypatch.setattr(translator, "pad", full)
    assert translator.translate(SENTENCES[0]).device == "cpu" and "cpu_copy" in vars(translator)
    del translator.cpu_copy
    monkeypatch.setattr(tracing, "CPU_COPY_BYTES", translator.weight_bytes - 1)
    with pytest.raises(Refusal, match="no memory left for a text of"):
        translator.translate(SENTENCES[0])
    assert "cpu_copy" not in vars(translator)


def test_all_requests_share_one_set_of_weights(tokenizer):
    """A request allocates no tensor as large as the smallest matrix."""
    model = build_tiny_model(tokenizer, d_model=256, d_feedforward=256)
    translator = make_translator(model, tokenizer)
    matrix = model.decoder.layers[0].feed_forward.expand.weight
    with Largest() as largest:
        trace_requests(translator, [translator._request("Ein Hund.", "de-en", NO_INTERVENTIONS)])
    assert largest.numbers < matrix.numel()

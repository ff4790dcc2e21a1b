"""StepDecoder and greedy decoding equal full passes: extending, reordering, selecting, interventions."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model.decode.steps import StepDecoder, greedy
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.decoder_step import DecoderStep
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from tests.conftest import build_tiny_model
from tests.model.decode.sweeps import BEGIN, CACHED, SOURCES, SWEEPS
from tests.model.nets.test_interventions import EVERY_KIND

PREFIXES = torch.tensor([[1, 30, 41, 52], [1, 77, 30, 30], [1, 12, 99, 200]])
END = 2


def start(model: Transformer, prefix: torch.Tensor = PREFIXES, **options) -> StepDecoder:
    return StepDecoder(model, model.encode(pad(SOURCES, 0)), prefix, **options)


def expected(model: Transformer, row: int, prefix: torch.Tensor) -> torch.Tensor:
    """Return the last logits of a full pass over one unpadded sentence."""
    return model(torch.tensor([SOURCES[row]]), prefix[None]).logits[0, -1]


def check(decoder: StepDecoder, model: Transformer, sources: list[int]) -> None:
    for row, source in enumerate(sources):
        torch.testing.assert_close(decoder.logits[row], expected(model, source, decoder.prefix[row]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("counts", [(1, 1, 1, 1), (4, 2)])
@torch.inference_mode()
def test_appended_tokens_give_the_logits_of_a_full_pass(tiny_model, counts):
    tokens = PREFIXES.repeat(1, 2)
    decoder = start(tiny_model, tokens[:, : counts[0]])
    for count in (*counts[1:], 1):
        check(decoder, tiny_model, [0, 1, 2])
        read = decoder.prefix.shape[1]
        decoder.extend(tokens[:, read : read + count])
    check(decoder, tiny_model, [0, 1, 2])
    assert torch.equal(decoder.prefix, tokens[:, : sum(counts) + 1])


@torch.inference_mode()
def test_reorder_copies_prefixes_over_one_source(tiny_model):
    source = tiny_model.encode(torch.tensor([SOURCES[0]] * 3))
    decoder = StepDecoder(tiny_model, source, PREFIXES)
    decoder.reorder(torch.tensor([2, 2, 0]))
    assert torch.equal(decoder.prefix, PREFIXES[[2, 2, 0]])
    check(decoder, tiny_model, [0, 0, 0])
    decoder.append(torch.tensor([5, 6, 7]))
    check(decoder, tiny_model, [0, 0, 0])


@torch.inference_mode()
def test_select_also_selects_the_sources(tiny_model):
    decoder = start(tiny_model)
    decoder.select(torch.tensor([2, 1]))
    check(decoder, tiny_model, [2, 1])
    decoder.append(torch.tensor([5, 6]))
    check(decoder, tiny_model, [2, 1])


@torch.inference_mode()
def test_records_are_those_of_the_rows_added_last(tiny_model):
    decoder = start(tiny_model, record=True)
    assert decoder.records[0].cross_attention.weights.shape == (3, 4, 4, 7)
    decoder.append(torch.tensor([5, 6, 7]))
    assert decoder.records[0].self_attention.weights.shape == (3, 4, 1, 5)
    assert start(tiny_model).records == ()


def alone(model: Transformer, source: list[int], limit: int) -> list[int]:
    """Decode greedily without a cache."""
    ids = [BEGIN]
    while len(ids) <= limit and ids[-1] != END:
        ids.append(int(model(torch.tensor([source]), torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[1:]


@torch.inference_mode()
def test_greedy_equals_decoding_each_sentence_alone(tiny_model):
    limits = [12, 3, 40]
    results = greedy(tiny_model, tiny_model.encode(pad(SOURCES, 0)), limits, begin_id=BEGIN, end_id=END)
    assert results == [alone(tiny_model, source, limit) for source, limit in zip(SOURCES, limits)]


@torch.inference_mode()
def test_greedy_stops_at_end_and_at_the_limit(tiny_model):
    """Decode without an end symbol, then with a token of the first decode as the end symbol."""
    memory = tiny_model.encode(pad(SOURCES, 0))
    free = greedy(tiny_model, memory, [6, 6, 6], begin_id=BEGIN, end_id=-1)
    assert [len(ids) for ids in free] == [6, 6, 6]
    end = free[1][0]
    stopped = greedy(tiny_model, memory, [6, 6, 6], begin_id=BEGIN, end_id=end)
    for ids, whole in zip(stopped, free):
        assert ids == (whole[: whole.index(end) + 1] if end in whole else whole)
    assert stopped[1] == [end]


@torch.inference_mode()
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sources", [SOURCES, SOURCES[:1]], ids=["padded batch", "one sentence"])
@pytest.mark.parametrize("broken", CACHED)
def test_the_cached_step_equals_the_layers(model, sources, broken, threads, request):
    request.addfinalizer(lambda before=torch.get_num_threads(): torch.set_num_threads(before))
    torch.set_num_threads(threads)
    source, batch = model.encode(pad(sources, 0)), len(sources)
    broken = CACHED[broken](batch)
    ours, theirs = KeyValueCache(3), KeyValueCache(3)
    for cache in (ours, theirs):
        model.decode(PREFIXES[:batch, :2], source, cache=cache, interventions=broken)
    step = DecoderStep(model, broken)
    for t in (2, 3):
        row = step(PREFIXES[:batch, t], source, ours)
        plain, _ = model.decode(PREFIXES[:batch, t : t + 1], source, cache=theirs, interventions=broken)
        torch.testing.assert_close(row, model.project(plain[:, -1]), atol=1e-5, rtol=1e-5)
    assert ours.length == theirs.length == 4


@torch.inference_mode()
@pytest.mark.parametrize(
    "changes", [*EVERY_KIND.values(), *(sweep(3) for sweep in SWEEPS.values())], ids=[*EVERY_KIND, *SWEEPS]
)
def test_decoding_applies_every_kind_of_intervention(tiny_model, changes):
    """The cached step applies the kinds that it supports and refuses the rest, which Transformer.decode applies."""
    source = tiny_model.encode(pad(SOURCES, 0), interventions=changes)
    decoder = StepDecoder(tiny_model, source, PREFIXES, interventions=changes)
    decoder.append(torch.tensor([5, 6, 7]))
    full = tiny_model(pad(SOURCES, 0), decoder.prefix, interventions=changes).logits[:, -1]
    torch.testing.assert_close(decoder.logits, full, atol=1e-4, rtol=0)
    assert (decoder.step is not None) == DecoderStep.supports(changes)
    if decoder.step is None:
        with pytest.raises(ValueError, match="does not support"):
            DecoderStep(tiny_model, changes)


def test_the_cached_step_refuses_a_model_in_training_mode(tokenizer):
    with pytest.raises(ValueError, match="evaluation mode"):
        DecoderStep(build_tiny_model(tokenizer).train())


@torch.inference_mode()
def test_the_cached_step_refuses_a_cache_of_fewer_layers(tiny_model):
    with pytest.raises(ValueError, match="shorter"):
        DecoderStep(tiny_model)(PREFIXES[:1, 0], tiny_model.encode(pad(SOURCES[:1], 0)), KeyValueCache(2))

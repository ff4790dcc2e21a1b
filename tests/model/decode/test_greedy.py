"""Step-by-step decoding against full passes: extending, going back, reordering, selecting; greedy over batches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import pytest
import torch

from attention_atlas.model.decode import distributions, recorded
from attention_atlas.model.decode.distributions import TOP_TOKENS, DistributionCollector, Distributions, summarize
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.recorded import forced_with_records, greedy_with_records
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets import decoder_step
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.decoder_step import DecoderStep
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import Interventions
from tests.conftest import build_tiny_model
from tests.model.decode.sweeps import BEGIN, BROKEN, LEAN, SOURCES, SWEEPS, same_maps
from tests.model.nets.test_interventions import EVERY_KIND

PREFIXES = torch.tensor([[1, 30, 41, 52], [1, 77, 30, 30], [1, 12, 99, 200]])
END = 2


def start(model: Transformer, prefix: torch.Tensor = PREFIXES, **options) -> StepDecoder:
    return StepDecoder(model, model.encode(pad(SOURCES, 0)), prefix, **options)


def expected(model: Transformer, row: int, prefix: torch.Tensor) -> torch.Tensor:
    """The last row of a full pass over one unpadded sentence."""
    return model(torch.tensor([SOURCES[row]]), prefix[None]).logits[0, -1]


def check(decoder: StepDecoder, model: Transformer, sources: list[int]) -> None:
    for row, source in enumerate(sources):
        torch.testing.assert_close(decoder.logits[row], expected(model, source, decoder.prefix[row]), atol=1e-4, rtol=0)


@torch.inference_mode()
def test_any_token_may_be_appended(tiny_model):
    decoder = start(tiny_model, PREFIXES[:, :1])
    for t in range(1, 4):
        check(decoder, tiny_model, [0, 1, 2])
        decoder.append(PREFIXES[:, t])
    assert torch.equal(decoder.prefix, PREFIXES)
    check(decoder, tiny_model, [0, 1, 2])


@torch.inference_mode()
def test_a_prefix_of_many_tokens_is_run_at_once(tiny_model):
    decoder = start(tiny_model)
    check(decoder, tiny_model, [0, 1, 2])
    decoder.extend(PREFIXES[:, 1:3])
    check(decoder, tiny_model, [0, 1, 2])


@torch.inference_mode()
@pytest.mark.parametrize("length", [1, 2, 4])
def test_rewind_forgets_what_came_after(tiny_model, length):
    decoder = start(tiny_model)
    decoder.append(torch.tensor([200, 201, 202]))
    decoder.rewind(length)
    assert torch.equal(decoder.prefix, PREFIXES[:, :length])
    check(decoder, tiny_model, [0, 1, 2])
    decoder.append(torch.tensor([9, 8, 7]))
    check(decoder, tiny_model, [0, 1, 2])


@torch.inference_mode()
def test_reorder_copies_hypotheses_over_one_source(tiny_model):
    source = tiny_model.encode(torch.tensor([SOURCES[0]] * 3))
    decoder = StepDecoder(tiny_model, source, PREFIXES)
    decoder.reorder(torch.tensor([2, 2, 0]))
    assert torch.equal(decoder.prefix, PREFIXES[[2, 2, 0]])
    check(decoder, tiny_model, [0, 0, 0])
    decoder.append(torch.tensor([5, 6, 7]))
    check(decoder, tiny_model, [0, 0, 0])


@torch.inference_mode()
def test_select_takes_the_sources_along(tiny_model):
    decoder = start(tiny_model)
    decoder.select(torch.tensor([2, 1]))
    check(decoder, tiny_model, [2, 1])
    decoder.append(torch.tensor([5, 6]))
    check(decoder, tiny_model, [2, 1])


@torch.inference_mode()
def test_records_are_of_the_rows_added_last(tiny_model):
    decoder = start(tiny_model, record=True)
    assert decoder.records[0].cross_attention.weights.shape == (3, 4, 4, 7)
    decoder.append(torch.tensor([5, 6, 7]))
    assert decoder.records[0].self_attention.weights.shape == (3, 4, 1, 5)
    assert start(tiny_model).records == ()


def alone(model: Transformer, source: list[int], limit: int) -> list[int]:
    """Greedy decoding without a cache, as a tutorial would write it."""
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
    """Each sentence once, with its own first token as the end symbol, and once with none."""
    memory = tiny_model.encode(pad(SOURCES, 0))
    free = greedy(tiny_model, memory, [6, 6, 6], begin_id=BEGIN, end_id=-1)
    assert [len(ids) for ids in free] == [6, 6, 6]
    end = free[1][0]
    stopped = greedy(tiny_model, memory, [6, 6, 6], begin_id=BEGIN, end_id=end)
    for ids, whole in zip(stopped, free):
        assert ids == (whole[: whole.index(end) + 1] if end in whole else whole)
    assert stopped[1] == [end]


@torch.inference_mode()
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sources", [SOURCES, SOURCES[:1]], ids=["padded batch", "one sentence"])
@pytest.mark.parametrize("broken", LEAN)
def test_the_cached_step_equals_the_layers(tokenizer, norm_first, sources, broken, threads, request):
    request.addfinalizer(lambda before=torch.get_num_threads(): torch.set_num_threads(before))
    torch.set_num_threads(threads)  # with two, a lone row's products are shared between the cores
    model, broken = build_tiny_model(tokenizer, norm_first=norm_first), LEAN[broken](len(sources))
    source, batch = model.encode(pad(sources, 0)), len(sources)
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
def test_no_step_leaves_an_intervention_out(tiny_model, changes):
    """Decoding equals a full pass under every kind: the cached step honours what it supports, and refuses the rest."""
    source = tiny_model.encode(pad(SOURCES, 0), interventions=changes)
    decoder = StepDecoder(tiny_model, source, PREFIXES, interventions=changes)
    decoder.append(torch.tensor([5, 6, 7]))
    full = tiny_model(pad(SOURCES, 0), decoder.prefix, interventions=changes).logits[:, -1]
    torch.testing.assert_close(decoder.logits, full, atol=1e-4, rtol=0)
    assert (decoder.step is not None) == DecoderStep.supports(changes)
    if decoder.step is None:
        with pytest.raises(ValueError, match="does not support"):
            DecoderStep(tiny_model, changes)


@torch.inference_mode()
def test_the_cached_step_is_taken_for_what_it_supports_only(tiny_model):
    assert start(tiny_model).step is not None and start(tiny_model, record=True).step is None
    assert all(DecoderStep.supports(make(1)) for make in LEAN.values())
    refused = {name for name, changes in EVERY_KIND.items() if not DecoderStep.supports(changes)}
    assert refused == {name for name in EVERY_KIND if "edge" in name} | {"everything"}
    assert {name for name, sweep in SWEEPS.items() if not DecoderStep.supports(sweep(1))} == {
        "gates by position",
        "something instead",
        "gates and a cut edge",
    }


@dataclass(frozen=True)
class Later(Interventions):
    """Interventions of a later day: a field that the step of today does not know."""

    warmth: float = 1.0


def test_the_cached_step_refuses_what_it_does_not_know(tiny_model, monkeypatch):
    with pytest.raises(ValueError, match="does not support Later"):
        DecoderStep(tiny_model, Later())
    monkeypatch.setitem(
        decoder_step._SUPPORTED, Later, decoder_step._SUPPORTED[Interventions]
    )  # as if Interventions had the field
    assert DecoderStep.supports(Later(heads_off=BROKEN.heads_off))
    with pytest.raises(ValueError, match="does not support warmth"):
        DecoderStep(tiny_model, Later(warmth=2.0))


def expected_distributions(logits: torch.Tensor, ids: list[int], found: Distributions) -> None:
    """numpy's of logits [step, vocabulary] against what was kept."""
    values = logits.detach().double().numpy()
    p = np.exp(values - values.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    steps = np.arange(len(ids))
    best = np.argsort(-p, axis=-1, kind="stable")[:, :TOP_TOKENS]
    np.testing.assert_allclose(found.top_probabilities.numpy(), np.take_along_axis(p, best, -1), atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(p, found.top_ids.numpy(), -1), found.top_probabilities, atol=1e-5)
    np.testing.assert_allclose(found.entropy.numpy(), -(p * np.log2(p)).sum(-1), atol=1e-4)
    np.testing.assert_allclose(found.log_probability.numpy(), np.log(p[steps, ids]), atol=1e-4)
    assert found.chosen_rank.tolist() == [int((row > row[i]).sum()) + 1 for row, i in zip(values, ids)]


@pytest.mark.parametrize("room", [1, 700, 10**9])
def test_records_carry_what_each_token_was_chosen_by_in_blocks_of_any_size(tiny_model, monkeypatch, room):
    memory, ends = tiny_model.encode(pad(SOURCES, 0), record=True), {"begin_id": BEGIN, "end_id": END}
    limits, held = [6, 2, 9], []
    monkeypatch.setattr(recorded, "DistributionCollector", partial(DistributionCollector, max_logits=room))
    monkeypatch.setattr(
        distributions, "summarize", lambda logits, chosen: (held.append(logits.numel()), summarize(logits, chosen))[1]
    )
    found, kept = greedy_with_records(tiny_model, memory, limits, **ends)
    assert found == greedy(tiny_model, memory, limits, **ends) and len({len(ids) for ids in found}) > 1
    assert max(held) <= max(room, 3 * tiny_model.config.vocabulary_size)  # one step's at least
    whole = tiny_model.read(memory, pad([[BEGIN, *ids[:-1]] for ids in found], 0), record=True)
    for row, ids in enumerate(found):
        assert len(kept.distributions[row]) == len(ids) and set(kept.distributions[row].chosen_rank.tolist()) == {1}
        expected_distributions(whole.logits[row, : len(ids)], ids, kept.distributions[row])
        same_maps(kept.output, whole, row)


@torch.inference_mode()
def test_a_prefix_is_read_in_one_pass_and_given_ids_step_by_step(tiny_model):
    memory, ends = tiny_model.encode(pad(SOURCES[:1], 0), record=True), {"begin_id": BEGIN, "end_id": -1}
    (free,), kept = greedy_with_records(tiny_model, memory, [9], **ends)
    forced = forced_with_records(tiny_model, memory, free, begin_id=BEGIN)
    for kind in kept.output.kinds:
        assert torch.equal(forced.output.maps(kind, 0), kept.output.maps(kind, 0))
    plain = tiny_model.read(memory, torch.tensor([[BEGIN, *free[:-1]]]), record=True)
    same_maps(kept.output, plain)
    for field in fields(Distributions):
        assert torch.equal(getattr(forced.distributions[0], field.name), getattr(kept.distributions[0], field.name))
    for length in (1, 5, 8):
        (found,), again = greedy_with_records(tiny_model, memory, [9 - length], prefix=free[:length], **ends)
        assert found == free
        expected_distributions(plain.logits[0], free, again.distributions[0])
        same_maps(again.output, plain)
    (found,), other = greedy_with_records(tiny_model, memory, [3], prefix=[9, 8, 7], **ends)
    whole = tiny_model.read(memory, torch.tensor([[BEGIN, *found[:-1]]]))
    assert found[:3] == [9, 8, 7] and len(found) == 6
    expected_distributions(whole.logits[0], found, other.distributions[0])
    assert found[3:] == whole.logits[0, 3:].argmax(-1).tolist()

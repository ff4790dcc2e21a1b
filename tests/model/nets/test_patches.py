"""Patches replace tensors of a pass by values of another run, at named places and positions."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.sweep import PatchValue, Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import HeadOutput, Interventions, Patch, Stream, SubLayerOutput
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, Side, SubLayerName

ENCODER, DECODER, CROSS = TRANSFORMER_KINDS
SELF, TO_SOURCE, FEED_FORWARD = SubLayerName
CLEAN, CORRUPT = [4, 20, 31, 45, 20, 61, 2], [4, 20, 77, 45, 90, 61, 2]  # equal lengths
PREFIX = [1, 30, 41, 52, 30]
PLACES = [
    HeadOutput(ENCODER, 1, 2),
    HeadOutput(CROSS, 0, 3),
    HeadOutput(DECODER, 2, 0),
    *(SubLayerOutput(Side.ENCODER, 0, name) for name in (SELF, FEED_FORWARD)),
    *(SubLayerOutput(Side.DECODER, 1, name) for name in SubLayerName),
    Stream(Side.ENCODER, 0),
    Stream(Side.ENCODER, 1, SELF),
    Stream(Side.DECODER, 2),
    *(Stream(Side.DECODER, 1, name) for name in SubLayerName),
]


def run(model: Transformer, source: list[int], rows: int = 1, **options):
    return model(torch.tensor([source] * rows), torch.tensor([PREFIX] * rows), record=True, **options)


def value_at(output, place) -> torch.Tensor:
    """Return a recorded pass's tensor at a place, [batch, length, width]."""
    if isinstance(place, HeadOutput):
        return output.attention(place.kind, place.layer).head_outputs[:, place.head]
    layer = output.layers(place.side)[place.layer]
    if isinstance(place, SubLayerOutput):
        return layer.sublayer(place.sublayer).added
    return layer.before if place.after is None else layer.sublayer(place.after).after


def patching(values: dict[Patch, PatchValue]) -> Sweep:
    return Sweep(Interventions(patches=values), values=values)


def patched_from(output, *places, where: tuple[int, ...] | None = None, weights: torch.Tensor | None = None) -> Sweep:
    """Return patches of places, at all or some positions, by their values in another pass."""
    rows = slice(None) if where is None else where
    return patching({Patch(place, where): PatchValue(value_at(output, place)[:, rows], weights) for place in places})


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_patch_with_the_original_value_or_weight_0_changes_nothing(model, place):
    plain, clean = run(model, CORRUPT), run(model, CLEAN)
    repeated = run(model, CORRUPT, interventions=patched_from(plain, place))
    torch.testing.assert_close(repeated.logits, plain.logits, atol=1e-5, rtol=0)
    for where in (None, (1, 3)):
        unmoved = patched_from(clean, place, where=where, weights=torch.zeros(1, 1))
        assert torch.equal(run(model, CORRUPT, interventions=unmoved).logits, plain.logits)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_patch_changes_only_its_own_place_and_positions(model, place):
    plain, source, where = run(model, CORRUPT), run(model, CLEAN), (2, 4)
    patched = run(model, CORRUPT, interventions=patched_from(source, place, where=where))
    before, clean = value_at(plain, place), value_at(source, place)
    if isinstance(place, HeadOutput):  # what the head said is on record as it was; what was heard is in the sum
        through = model.attention(place.kind, place.layer).output.weight[:, place.head * 8 : (place.head + 1) * 8]
        added, expected = (
            output.layer(place.kind, place.layer).sublayer(place.kind.sublayer).added.clone()
            for output in (patched, plain)
        )
        expected[:, where] += (clean - before)[:, where] @ through.T
        torch.testing.assert_close(added, expected, atol=1e-5, rtol=0)
    else:
        stands, others = value_at(patched, place), [t for t in range(before.shape[1]) if t not in where]
        assert torch.equal(stands[:, where], clean[:, where])
        torch.testing.assert_close(stands[:, others], before[:, others], atol=1e-6, rtol=0)
    assert not torch.allclose(patched.logits, plain.logits, atol=1e-4)


def test_a_patched_sublayer_output_enters_the_residual_sum_and_norm(model):
    value, place = torch.randn(1, 5, 32), SubLayerOutput(Side.DECODER, 1, TO_SOURCE)
    sweep = patching({Patch(place): PatchValue(value)})
    passed = run(model, CLEAN, interventions=sweep).layers(Side.DECODER)[1].sublayer(TO_SOURCE)
    norm = model.decoder.layers[1].sublayers[1].norm
    expected = passed.before + value
    if not model.config.norm_first:
        expected = torch.nn.functional.layer_norm(expected, (32,), norm.weight, norm.bias, norm.eps)
    torch.testing.assert_close(passed.after, expected, atol=1e-6, rtol=0)


def test_patching_the_encoders_last_stream_equals_the_other_source(model):
    clean, place = run(model, CLEAN), Stream(Side.ENCODER, 1, FEED_FORWARD)
    patched = run(model, CORRUPT, interventions=patched_from(clean, place))
    torch.testing.assert_close(patched.logits, clean.logits, atol=1e-5, rtol=0)


def test_batch_rows_have_patches_of_their_own(model):
    """A row a place, positions of its own, by weights alone: as many single runs."""
    clean, places = run(model, CLEAN), [place for place in PLACES if not isinstance(place, HeadOutput)]
    rows, where = len(places) + 1, (0, 2, 4)
    weights = torch.zeros(len(places), rows, len(where))
    for index in range(len(places)):
        weights[index, index, [index % 3, (index + 1) % 3]] = 1.0
    values = {
        Patch(place, where): PatchValue(value_at(clean, place)[:, where], weights[index])
        for index, place in enumerate(places)
    }
    together = run(model, CORRUPT, rows, interventions=patching(values))
    assert torch.allclose(together.logits[-1], run(model, CORRUPT).logits[0], atol=1e-5)
    for index, place in enumerate(places):
        mine = tuple(where[i] for i in sorted({index % 3, (index + 1) % 3}))
        alone = run(model, CORRUPT, interventions=patched_from(clean, place, where=mine))
        torch.testing.assert_close(together.logits[index], alone.logits[0], atol=1e-5, rtol=1e-5)


def test_a_patched_head_equals_a_closed_gate_with_a_replacement(model):
    clean = run(model, CLEAN)
    place, gates = HeadOutput(CROSS, 1, 2), torch.ones(1, 3, 4)
    gates[0, 1, 2] = 0.4
    heard = clean.head_outputs(CROSS)  # [batch, layers, heads, query, d_head]
    weighed = patched_from(clean, place, weights=torch.tensor([[0.6]]))
    gated = Sweep(gates={CROSS: gates}, replacements={CROSS: heard})
    pair = (run(model, CORRUPT, interventions=sweep).logits for sweep in (weighed, gated))
    torch.testing.assert_close(*pair, atol=1e-5, rtol=0)


@pytest.mark.parametrize("where", [None, (1, 3)], ids=["all positions", "two positions"])
def test_cached_equals_full(model, where):
    clean = run(model, CLEAN)
    decoder = [p for p in PLACES if getattr(p, "side", None) == Side.DECODER or getattr(p, "kind", ENCODER) != ENCODER]
    sweep = patched_from(clean, *decoder, where=where, weights=torch.tensor([[0.7]]))
    source, target = torch.tensor([CORRUPT]), torch.tensor([PREFIX])
    full = model(source, target, interventions=sweep).logits
    memory, cache = model.encode(source), KeyValueCache(3)
    for first, last in ((0, 1), (1, 2), (2, 5)):
        hidden, _ = model.decode(target[:, first:last], memory, cache=cache, interventions=sweep)
        torch.testing.assert_close(model.project(hidden), full[:, first:last], atol=1e-4, rtol=0)


def test_padding_does_not_change_a_patched_sentence(model):
    clean, place = run(model, CLEAN), Stream(Side.ENCODER, 0, SELF)
    sweep = patched_from(clean, place, where=(2, 4))
    padded = pad([CORRUPT, [*CORRUPT[:3], *CORRUPT]], 0)
    together = model(padded, torch.tensor([PREFIX] * 2), interventions=sweep).logits
    torch.testing.assert_close(together[:1], run(model, CORRUPT, interventions=sweep).logits, atol=1e-4, rtol=0)


def test_the_gradient_of_a_patchs_weight_is_its_central_difference(model):
    model = model.double()
    clean, weights = run(model, CLEAN), torch.full((1, 2), 0.5, dtype=torch.float64, requires_grad=True)
    place = SubLayerOutput(Side.DECODER, 0, FEED_FORWARD)
    value = value_at(clean, place)[:, (1, 4)].detach()

    def metric(weight: torch.Tensor) -> torch.Tensor:
        sweep = patching({Patch(place, (1, 4)): PatchValue(value, weight)})
        logits = run(model, CORRUPT, interventions=sweep).logits[0, -1]
        return logits[30] - logits[41]

    (slope,) = torch.autograd.grad(metric(weights), weights)
    for index in range(2):
        step = torch.zeros(1, 2, dtype=torch.float64)
        step[0, index] = 1e-4
        with torch.no_grad():
            expected = (metric(weights + step) - metric(weights - step)) / 2e-4
        torch.testing.assert_close(slope[0, index], expected, rtol=1e-2, atol=1e-6)


STREAM = Stream(Side.DECODER, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({Patch(Stream(Side.ENCODER, 0, TO_SOURCE)): torch.ones(1, 1, 32)}, "the encoder has no cross-attention"),
        ({Patch(Stream(Side.DECODER, 3)): torch.ones(1, 1, 32)}, "layers 0 to 2, found 3"),
        ({Patch(HeadOutput(CROSS, 0, 4)): torch.ones(1, 1, 8)}, "heads are 0 to 3, found 4"),
        ({Patch(STREAM): torch.ones(1, 1, 8)}, "a value of width 8, expected 32"),
        ({Patch(STREAM): torch.ones(1, 3, 32)}, "3 positions, the pass reads up to 5"),
        ({Patch(STREAM, (0, 1)): torch.ones(1, 3, 32)}, "2 positions, a value for 3"),
        ({Patch(STREAM): torch.ones(2, 1, 32)}, "a sweep of 2 rows, the batch has 1"),
        ({Patch(STREAM, (0, 1)): torch.ones(1, 1, 32), Patch(STREAM, (1,)): torch.ones(1, 1, 32)}, "overlap"),
        ({Patch(STREAM, (0, 0)): torch.ones(1, 1, 32)}, "each once"),
        ({Patch(STREAM, (-1,)): torch.ones(1, 1, 32)}, "count from 0"),
        ({Patch(STREAM): torch.ones(1, 32)}, "3 axes"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(model, values, message):
    with pytest.raises(ValueError, match=message):
        run(model, CLEAN, interventions=patching({patch: PatchValue(value) for patch, value in values.items()}))

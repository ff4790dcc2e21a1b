"""Sweeps: gates of 1 change no bit, a batch of gates equals single runs, and gradients equal finite differences."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch

from attention_atlas.model.decode.recorded import greedy_with_records
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.places.visit import Capture
from attention_atlas.model.nets.sweep import Changes, PatchValue, Sweep, combine
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import Edge, Interventions, Patch, Positions, Stream
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side

ENCODER, DECODER, CROSS = TRANSFORMER_KINDS
HEADS = 4
STREAM = Patch(Stream(Side.DECODER, 0))
SOURCES, TARGETS = [[4, 20, 31, 45, 20, 61, 2], [4, 33, 2]], [[1, 30, 41], [1, 52, 30, 77, 12]]
LAYERS = {ENCODER: 2, DECODER: 3, CROSS: 3}
ALL_HEADS = [(kind, *place) for kind, layers in LAYERS.items() for place in np.ndindex(layers, HEADS)]


def gates(rows: int, fill: float = 1.0, **options) -> dict[AttentionKind, torch.Tensor]:
    return {kind: torch.full((rows, layers, HEADS), fill, **options) for kind, layers in LAYERS.items()}


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return pad(SOURCES, 0), pad(TARGETS, 0)


def logits_of(model: Transformer, interventions: Changes) -> torch.Tensor:
    return model(*batch(), interventions=interventions).logits


def cached_logits(model: Transformer, source: torch.Tensor, target: torch.Tensor, **options) -> torch.Tensor:
    """Return the logits of a decode, row by row over the cache."""
    memory, cache = model.encode(source, **options), KeyValueCache(3)
    rows = [model.decode(target[:, t : t + 1], memory, cache=cache, **options)[0] for t in range(target.shape[1])]
    return model.project(torch.cat(rows, dim=1))


@pytest.mark.parametrize("rows", [1, 2])
def test_gates_of_one_change_no_bit(model, rows):
    source, target = batch()
    changes = Interventions(), Sweep(gates=gates(rows))
    plain, gated = (model(source, target, interventions=change, record=True) for change in changes)
    assert torch.equal(plain.logits, gated.logits) and torch.equal(plain.memory, gated.memory)
    for kind in plain.kinds:
        assert torch.equal(plain.weights(kind), gated.weights(kind))
    for before, after in zip(plain.decoder_records, gated.decoder_records):
        assert all(torch.equal(a.added, b.added) for a, b in zip(before.sublayers, after.sublayers))
    assert torch.equal(*(cached_logits(model, source, target, interventions=change) for change in changes))
    ends = {"begin_id": 1, "end_id": 2}
    free, ones = (
        greedy_with_records(model, model.encode(source, interventions=s, record=True), [9, 5], interventions=s, **ends)
        for s in changes
    )
    assert free[0] == ones[0]
    for row, kind in itertools.product(range(2), free[1].output.kinds):
        assert torch.equal(free[1].output.maps(kind, row), ones[1].output.maps(kind, row))
        assert torch.equal(free[1].distributions[row].entropy, ones[1].distributions[row].entropy)


def test_an_empty_sweep_changes_no_bit_and_is_false(model):
    assert not Sweep() and Sweep(gates=gates(1)) and Sweep(Interventions(target_positions=Positions(shift=1)))
    assert torch.equal(model(*batch()).logits, logits_of(model, Sweep()))


def test_a_batch_of_gate_settings_equals_single_runs(model):
    """One row for each head, with that head off, and rows of random settings."""
    torch.manual_seed(3)
    rows = 96
    settings = {kind: torch.rand(rows, *g.shape[1:]) * 2 for kind, g in gates(1).items()}
    for row, (kind, layer, head) in enumerate(ALL_HEADS):
        for values in settings.values():
            values[row] = 1.0
        settings[kind][row, layer, head] = 0.0
    source, target = torch.tensor(SOURCES[:1]).expand(rows, -1), torch.tensor(TARGETS[1:]).expand(rows, -1)
    together = model(source, target, interventions=Sweep(gates=settings), record=True)
    for row in range(rows):
        single = Sweep(gates={kind: values[row : row + 1] for kind, values in settings.items()})
        alone = model(source[:1], target[:1], interventions=single, record=True)
        torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-5, rtol=1e-5)
        for kind in alone.kinds:
            torch.testing.assert_close(together.weights(kind)[:, row], alone.weights(kind)[:, 0], atol=1e-5, rtol=0)
    for row, place in enumerate(ALL_HEADS):  # a gate of 0 equals a head that is off
        off = model(source[:1], target[:1], interventions=Interventions(heads_off={place}))
        torch.testing.assert_close(together.logits[row], off.logits[0], atol=1e-5, rtol=1e-5)


def test_gates_scale_their_slice_of_the_output_matrix(model):
    """A gate equals multiplying the head's columns of W_O."""
    torch.manual_seed(4)
    settings = {kind: torch.rand(1, *g.shape[1:]) * 3 - 1 for kind, g in gates(1).items()}
    scaled = copy.deepcopy(model)
    with torch.no_grad():
        for kind, layer, head in ALL_HEADS:
            matrix = scaled.attention(kind, layer).output.weight
            matrix[:, head * 8 : (head + 1) * 8] *= settings[kind][0, layer, head]
    gated = logits_of(model, Sweep(gates=settings))
    torch.testing.assert_close(gated, scaled(*batch()).logits, atol=1e-5, rtol=1e-4)


def test_the_gradient_of_each_gate_is_its_central_difference(model):
    """In float64, for both sentences of a padded batch in one backward pass."""
    model = model.double()
    settings = gates(2, dtype=torch.float64, requires_grad=True)

    def metric(values: dict[AttentionKind, torch.Tensor]) -> torch.Tensor:
        """Of each sentence: the lead of one token over another at its last row."""
        last = logits_of(model, Sweep(gates=values))[torch.arange(2), torch.tensor([2, 4])]
        return last[:, 30] - last[:, 41]

    slopes = torch.autograd.grad(metric(settings).sum(), tuple(settings.values()))
    step = 1e-4
    for (kind, values), slope in zip(settings.items(), slopes):
        assert slope.abs().max() > 1e-3 and not torch.allclose(slope[0], slope[1])
        for layer, head in itertools.product(range(values.shape[1]), range(HEADS)):
            moved = []
            for by in (step, -step):
                changed = {k: v.detach().clone() for k, v in settings.items()}
                changed[kind][:, layer, head] += by
                with torch.no_grad():
                    moved.append(metric(changed))
            expected = (moved[0] - moved[1]) / (2 * step)
            torch.testing.assert_close(slope[:, layer, head], expected, rtol=1e-2, atol=1e-6)


def test_gates_may_differ_by_position(model):
    torch.manual_seed(5)
    source, target = batch()
    settings = {DECODER: torch.rand(2, 3, HEADS, 5), CROSS: torch.rand(1, 3, HEADS, 5)}
    sweep = Sweep(gates=settings)
    full = logits_of(model, sweep)
    torch.testing.assert_close(cached_logits(model, source, target, interventions=sweep), full, atol=1e-4, rtol=0)
    early = {kind: values.clone() for kind, values in settings.items()}
    early[CROSS][..., 4] = 0.0  # no other row attends to it
    changed = logits_of(model, Sweep(gates=early))
    assert torch.equal(changed[:, :4], full[:, :4]) and not torch.allclose(changed[:, 4], full[:, 4])
    with pytest.raises(ValueError, match="5 positions, the pass reads up to 6"):
        model(source, torch.cat((target, target[:, :1]), dim=1), interventions=sweep)


def test_a_replacement_fills_a_partly_closed_gate(model):
    """o -> g o + (1 - g) r equals a computation from the records and the head's slice of W_O."""
    torch.manual_seed(6)
    source, target = batch()
    plain = model(source, target, record=True)
    strength, replacement, layer, head = 0.25, torch.randn(1, 3, HEADS, 1, 8), 2, 1
    settings = torch.ones(1, 3, HEADS)
    settings[0, layer, head] = strength
    sweep = Sweep(gates={CROSS: settings}, replacements={CROSS: replacement})
    record = model(source, target, interventions=sweep, record=True).decoder_records[layer]
    head_output = plain.attention(CROSS, layer).head_outputs[:, head]
    through = model.attention(CROSS, layer).output.weight[:, head * 8 : (head + 1) * 8]
    difference = (1 - strength) * (replacement[0, layer, head] - head_output)
    expected = plain.decoder_records[layer].sublayers[1].added + difference @ through.T
    torch.testing.assert_close(record.sublayers[1].added, expected, atol=1e-5, rtol=1e-5)
    own = {kind: plain.head_outputs(kind) for kind in TRANSFORMER_KINDS}
    itself = Sweep(gates=gates(2, 0.3), replacements=own)  # each head replaced by its own output
    torch.testing.assert_close(logits_of(model, itself), plain.logits, atol=1e-4, rtol=0)


def test_a_head_that_is_off_is_replaced(model):
    off, replacements = Interventions(heads_off={(CROSS, 1, 2)}), {CROSS: torch.randn(1, 3, HEADS, 1, 8)}
    closed = gates(1)
    closed[CROSS][0, 1, 2] = 0.0
    pair = Sweep(off, replacements=replacements), Sweep(gates=closed, replacements=replacements)
    torch.testing.assert_close(*(logits_of(model, sweep) for sweep in pair), atol=1e-6, rtol=0)


def test_combined_sweeps_use_the_replacements_of_either(model):
    closed, replacements = Sweep(gates=gates(1, 0.0)), Sweep(replacements={"cross": torch.randn(1, 3, HEADS, 1, 8)})
    whole = Sweep(gates=closed.gates, replacements=replacements.replacements)
    assert bool(replacements)
    expected = logits_of(model, whole)
    for pair in ((closed, replacements), (replacements, closed)):
        assert torch.equal(logits_of(model, combine(*pair)), expected)
    assert not torch.allclose(logits_of(model, closed), expected)
    assert whole.for_trace().in_words.endswith("; replacements of heads of cross")


def test_sweeps_combine_unless_both_set_the_same():
    values = gates(1)
    first, second = Sweep(gates={CROSS: values[CROSS]}), Sweep(gates={ENCODER: values[ENCODER]})
    assert combine(first, second).gates == {CROSS: values[CROSS], ENCODER: values[ENCODER]}
    assert combine(None, None) == Interventions()
    capture = Capture(("logits",))
    assert combine(Sweep(capture=capture), first).capture is combine(first, Sweep(capture=capture)).capture is capture
    for pair, message in (
        ((first, first), "gates of cross cannot be combined"),
        ((Sweep(capture=capture), Sweep(capture=Capture(("encoder.final",)))), "with a capture cannot be combined"),
    ):
        with pytest.raises(ValueError, match=message):
            combine(*pair)


def test_gates_stay_with_their_row_when_sentences_end(model):
    """Greedy decoding of one sentence under three settings at once gives what each gives alone."""
    torch.manual_seed(8)
    settings = {kind: torch.rand(3, *g.shape[1:]) * 2 for kind, g in gates(1).items()}
    settings = {kind: torch.cat((torch.ones_like(g[:1]), g[1:])) for kind, g in settings.items()}
    source, limits, ends = torch.tensor(SOURCES[:1]).expand(3, -1), [3, 9, 6], {"begin_id": 1, "end_id": -1}
    sweep = Sweep(gates=settings)
    decoded = greedy(model, model.encode(source, interventions=sweep), limits, interventions=sweep, **ends)
    for row, limit in enumerate(limits):
        single = sweep.select(torch.tensor([row]))
        alone = greedy(model, model.encode(source[:1], interventions=single), [limit], interventions=single, **ends)
        assert decoded[row] == alone[0]
    assert decoded[1] != decoded[2]


def test_heads_that_are_off_stay_off_with_any_gate(model):
    off = Interventions(heads_off={(CROSS, 1, 2)}, cut_edges={Edge(DECODER, 2, 0)})
    gated = logits_of(model, Sweep(off, gates=gates(2)))
    torch.testing.assert_close(gated, logits_of(model, off), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        (lambda: Sweep(gates=gates(3)), "a sweep of 3 rows, the batch has 2"),
        (lambda: Sweep(gates={CROSS: torch.ones(1, 2, HEADS)}), r"gates of cross must be .*3 layers, 4 heads"),
        (lambda: Sweep(gates={CROSS: torch.ones(3, HEADS)}), "3 or 4 axes"),
        (lambda: Sweep(gates={CROSS: torch.ones(1, 3, HEADS, dtype=torch.long)}), "floating-point"),
        (
            lambda: Sweep(gates=gates(2), replacements={ENCODER: torch.zeros(3, 2, HEADS, 1, 8)}),
            r"one number of rows.*\[2, 3\]",
        ),
        (
            lambda: Sweep(gates={CROSS: [[[1.0] * HEADS] * 3]}),
            "gates of cross must be a floating-point tensor.*found list",
        ),
        (lambda: Sweep(replacements={CROSS: np.zeros((1, 3, HEADS, 1, 8))}), "replacements of cross.*found ndarray"),
        (lambda: Sweep(gates={"sideways": torch.ones(1, 3, HEADS)}), "'sideways' is none of"),
        (lambda: Sweep(Interventions(patches={STREAM}), values={STREAM: torch.ones(1, 1, 32)}), "must be a PatchValue"),
        (lambda: Sweep(Interventions(patches={STREAM}), values={STREAM: PatchValue([1.0])}), "found list"),
        (lambda: Sweep(Interventions(heads_off={(CROSS, 9, 0)})), "found 9"),
        (lambda: Sweep(Interventions(patches={STREAM})), "1 patches, 0 values"),
        (lambda: Interventions(patches={STREAM}), "patches need their values"),
        (lambda: Interventions(in_words="a head off"), "known in words only"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(model, sweep, message):
    with pytest.raises(ValueError, match=message):
        logits_of(model, sweep())

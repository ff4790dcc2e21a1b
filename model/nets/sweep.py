"""Interventions whose strengths and values are tensors: gates on heads, and values patched in from another run.

All of it may differ by batch row, so that one pass sweeps what would be many, and all of it is differentiable: the
gradient of a pass with respect to its gates at 1 is every head's importance (Michel et al. 2019, section 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from model.trace.interventions import (
    NO_INTERVENTIONS,
    HeadOutput,
    Interventions,
    LayerEdit,
    Patch,
    Positions,
    Stream,
    SubLayerOutput,
)
from model.trace.kinds import AttentionKind, Side, SubLayerName


@dataclass(frozen=True, eq=False)
class PatchValue:
    """What a patch puts in place of x: x + weight * (value - x).

    value   [batch or 1, positions or 1, width], a row for each of the patch's positions
    weight  [batch or 1, positions or 1], 1 to replace and 0 to leave alone; None: 1 everywhere. A batch row that is to
            stay as it is, or one that has fewer positions, has 0 there
    """

    value: Tensor
    weight: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Sweep:
    """Interventions, and what they need of numbers. A pass takes one wherever it takes Interventions.

    gates    by kind, [batch or 1, layers, heads] or [batch or 1, layers, heads, query]: what a head says is multiplied
             by it. 1: it speaks, 0: it is off. A kind that is not named speaks. Heads that are switched off stay off
    instead  by kind, [batch or 1, layers, heads, query or 1, d_head]: what is heard of a head as far as its gate is
             closed, o -> g o + (1 - g) r; without one it is silence. Its mean over a corpus makes mean ablation of a
             closed gate, its output for another sentence resample ablation
    values   of each patch that the interventions name, and of no other

    Positions count from the start of the sentence, whether a pass reads all rows or, over a cache, the latest.
    Gradients flow in the teacher-forced passes (Transformer.forward, encode, read); decoding runs without them.
    Raises ValueError where patches and values do not match or a tensor has the wrong number of axes.
    """

    interventions: Interventions = NO_INTERVENTIONS
    gates: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    instead: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    values: Mapping[Patch, PatchValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if set(self.values) != self.interventions.patches:
            raise ValueError(
                "a sweep needs a value for each patch that its interventions name, and for no other: "
                f"{len(self.interventions.patches)} patches, {len(self.values)} values"
            )
        for kind, gates in self.gates.items():
            _check_axes(gates, (3, 4), f"gates of {AttentionKind(kind).value}")
        for kind, instead in self.instead.items():
            _check_axes(instead, (5,), f"replacements of {AttentionKind(kind).value}")
        for patch, given in self.values.items():
            _check_axes(given.value, (3,), f"the value at {patch.place}")
            if given.weight is not None:
                _check_axes(given.weight, (2,), f"the weight at {patch.place}")

    def __bool__(self) -> bool:
        return bool(self.interventions or self.gates or self.values)

    @property
    def source_positions(self) -> Positions:
        return self.interventions.source_positions

    @property
    def target_positions(self) -> Positions:
        return self.interventions.target_positions

    @property
    def rows(self) -> int:
        """How many batch rows it tells apart; 1: it says the same of every row, whatever the batch. ValueError where
        its tensors disagree."""
        found = {len(tensor) for tensor in self._tensors()} - {1}
        if len(found) > 1:
            raise ValueError(f"a sweep's tensors must have one number of rows, found {sorted(found)}")
        return found.pop() if found else 1

    def select(self, rows: Tensor) -> Sweep:
        """For the batch rows [new_batch]."""

        def taken(tensor: Tensor | None) -> Tensor | None:
            return tensor if tensor is None or len(tensor) == 1 else tensor.index_select(0, rows.to(tensor.device))

        return replace(
            self,
            gates={kind: taken(t) for kind, t in self.gates.items()},
            instead={kind: taken(t) for kind, t in self.instead.items()},
            values={patch: PatchValue(taken(v.value), taken(v.weight)) for patch, v in self.values.items()},
        )

    def check(self, num_layers: dict[AttentionKind, int], num_heads: int) -> None:
        """Raise ValueError if a layer or head does not exist in a model of this size."""
        self.interventions.check(num_layers, num_heads)
        for found, what in ((self.gates, "gates"), (self.instead, "replacements")):
            for kind, tensor in found.items():
                if kind not in num_layers:
                    raise ValueError(f"this model has no {kind.value} attention")
                expected = (num_layers[kind], num_heads)
                if tuple(tensor.shape[1:3]) != expected:
                    raise ValueError(
                        f"{what} of {kind.value} must be [batch, {expected[0]} layers, {expected[1]} heads"
                        f", ..], found {list(tensor.shape)}"
                    )

    def _tensors(self) -> list[Tensor]:
        found = [*self.gates.values(), *self.instead.values()]
        for given in self.values.values():
            found += [given.value] if given.weight is None else [given.value, given.weight]
        return found


Changes = Interventions | Sweep


def check(changes: Changes, num_layers: dict[AttentionKind, int], num_heads: int, *, batch: int) -> None:
    """Raise ValueError, in words, if a model of this size cannot run them on this many rows: what they name does not
    exist, patches come without their values, or a sweep is of another batch."""
    changes.check(num_layers, num_heads)
    if isinstance(changes, Sweep):
        if changes.rows not in (1, batch):
            raise ValueError(f"a sweep of {changes.rows} rows, the batch has {batch}")
    elif changes.patches:
        raise ValueError("patches need their values: run these interventions in a sweep that holds them")


def attention_edit(changes: Changes, kind: AttentionKind, layer: int) -> AttentionEdit | None:
    """What concerns the attention of this kind in this layer; None for nothing."""
    if isinstance(changes, Interventions):
        plain = changes.for_attention(kind, layer)
        return None if plain is None else AttentionEdit(plain)
    plain, gates, instead = (
        changes.interventions.for_attention(kind, layer),
        changes.gates.get(kind),
        changes.instead.get(kind),
    )
    patches = tuple(
        (patch, given)
        for patch, given in changes.values.items()
        if isinstance(patch.place, HeadOutput) and (patch.place.kind, patch.place.layer) == (kind, layer)
    )
    if plain is None and gates is None and not patches:
        return None
    return AttentionEdit(
        plain or LayerEdit(),
        None if gates is None else gates[:, layer],
        None if instead is None else instead[:, layer],
        patches,
    )


@dataclass(frozen=True, eq=False)
class AttentionEdit:
    """What happens to one attention of one layer: the plain part, gate [batch or 1, heads] or [.., query], instead
    [batch or 1, heads, query or 1, d_head], and the patches of its heads."""

    plain: LayerEdit = LayerEdit()
    gate: Tensor | None = None
    instead: Tensor | None = None
    patches: tuple[tuple[Patch, PatchValue], ...] = ()

    def heard(self, context: Tensor, first_query: int) -> Tensor:
        """What W_O reads of what the heads say: context [batch, heads, query, d_head] -> the same shape."""
        gate = self.gate_for(context)
        if gate is not None:
            gate = _window(gate, 2, first_query, context.shape[2], "the gates")
            spoken = context * gate
            if self.instead is None:
                context = spoken
            else:
                instead = _window(self.instead, 2, first_query, context.shape[2], "the replacements")
                context = spoken + (1 - gate) * instead.to(context)
        for patch, given in self.patches:
            head = torch.tensor([patch.place.head], device=context.device)
            changed = patched(context[:, patch.place.head], first_query, patch, given)
            context = context.index_copy(1, head, changed[:, None])
        return context

    def gate_for(self, context: Tensor) -> Tensor | None:
        """[batch or 1, heads, query or 1, 1] in the type and place of context [batch, heads, ..]; None: all speak."""
        gate = None
        if self.gate is not None:
            gate = self.gate.to(context)
            gate = gate[..., None, None] if gate.ndim == 2 else gate[..., None]
        if self.plain.heads_off:
            on = context.new_ones(1, context.shape[1], 1, 1)
            on[:, list(self.plain.heads_off)] = 0.0
            gate = on if gate is None else gate * on
        return gate


@dataclass(frozen=True, eq=False)
class LayerPatches:
    """The patches of one layer's sub-layer outputs and residual stream; first: the position of the first row."""

    values: Mapping[Patch, PatchValue]
    side: Side
    layer: int
    first: int

    def output(self, name: SubLayerName, x: Tensor) -> Tensor:
        """What a sub-layer adds, [batch, length, d_model]."""
        return self._at(SubLayerOutput(self.side, self.layer, name), x)

    def stream(self, after: SubLayerName | None, x: Tensor) -> Tensor:
        """The residual stream after a sub-layer, or (None) as it enters the layer, [batch, length, d_model]."""
        return self._at(Stream(self.side, self.layer, after), x)

    def _at(self, place: SubLayerOutput | Stream, x: Tensor) -> Tensor:
        for patch, given in self.values.items():
            if patch.place == place:
                x = patched(x, self.first, patch, given)
        return x


def layer_patches(changes: Changes, side: Side, layer: int, first: int) -> LayerPatches | None:
    """None for nothing."""
    if isinstance(changes, Interventions) or not changes.values:
        return None
    return LayerPatches(changes.values, side, layer, first)


def patched(x: Tensor, first: int, patch: Patch, given: PatchValue) -> Tensor:
    """x [batch, length, width], rows from position `first` on, with the value where the patch says."""
    _, length, width = x.shape
    if given.value.shape[-1] != width:
        raise ValueError(f"a value of width {given.value.shape[-1]}, expected {width}: {patch.place}")
    if patch.positions is None:
        return _mixed(
            x,
            *(
                None if tensor is None else _window(tensor, 1, first, length, f"the value at {patch.place}")
                for tensor in (given.value, given.weight)
            ),
        )
    named = len(patch.positions)
    for tensor in (given.value, given.weight):
        if tensor is not None and tensor.shape[1] not in (1, named):
            raise ValueError(f"{named} positions, a value for {tensor.shape[1]}: {patch.place}")
    pairs = [(index, at - first) for index, at in enumerate(patch.positions) if first <= at < first + length]
    if not pairs:  # of rows that are read already, or not yet
        return x
    which, at = torch.tensor(pairs, device=x.device).unbind(1)

    def chosen(tensor: Tensor | None) -> Tensor | None:
        return tensor if tensor is None or tensor.shape[1] == 1 else tensor.to(x.device).index_select(1, which)

    return x.index_copy(1, at, _mixed(x.index_select(1, at), chosen(given.value), chosen(given.weight)))


def _mixed(x: Tensor, value: Tensor, weight: Tensor | None) -> Tensor:
    value = value.to(x).expand_as(x)
    # lerp gives exactly x at weight 0 and exactly the value at weight 1.
    return value if weight is None else torch.lerp(x, value, weight.to(x)[..., None].expand_as(x))


def _window(tensor: Tensor, axis: int, first: int, length: int, what: str) -> Tensor:
    """The part of an axis over positions that a pass reads; an axis of 1 is every position's."""
    size = tensor.shape[axis]
    if size == 1:
        return tensor
    if first + length > size:
        raise ValueError(f"{what}: {size} positions, the pass reads up to {first + length}")
    return tensor.narrow(axis, first, length)


def _check_axes(tensor: Tensor, axes: tuple[int, ...], what: str) -> None:
    if tensor.ndim not in axes or not tensor.is_floating_point():
        raise ValueError(
            f"{what} must be floating-point with {' or '.join(map(str, axes))} axes, found {tensor.dtype} "
            f"{list(tensor.shape)}"
        )

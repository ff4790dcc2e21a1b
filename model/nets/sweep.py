"""Interventions whose strengths and values are tensors: gates on heads, and values patched in from another run.

All of it may differ by batch row, so that one pass sweeps what would be many, and all of it is differentiable: the
gradient of a pass with respect to its gates at 1 is every head's importance (Michel et al. 2019, section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor

from attention_atlas.model.trace.edits import Edit
from attention_atlas.model.trace.interventions import (
    NO_INTERVENTIONS,
    Interventions,
    LayerEdit,
    Patch,
    Positions,
)
from attention_atlas.model.trace.kinds import AttentionKind


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
    edits    (place, function) in order; place: a name or glob of model.nets.places.registry. A function of a tensor and
             of where it is (places.visit.At) gives the tensor that the pass goes on with
    kept     what a pass is to leave behind, for one pass alone (places.visit.Kept)

    Positions count from the start of the sentence, whether a pass reads all rows or, over a cache, the latest.
    Gradients flow in the teacher-forced passes (Transformer.forward, encode, read); decoding runs without them.
    Raises ValueError where patches and values do not match or a tensor has the wrong number of axes.
    """

    interventions: Interventions = NO_INTERVENTIONS
    gates: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    instead: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    values: Mapping[Patch, PatchValue] = field(default_factory=dict)
    edits: tuple[tuple[str, Callable[..., Tensor]], ...] = ()
    kept: object | None = None

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
        return bool(self.interventions or self.gates or self.values or self.edits or self.kept)

    @property
    def source_positions(self) -> Positions:
        return self.interventions.source_positions

    @property
    def target_positions(self) -> Positions:
        return self.interventions.target_positions

    def in_trace(self) -> Interventions:
        """What a trace can keep of it: without tensors and functions, of which it has words."""
        said = [
            *(f"gates on heads of {AttentionKind(kind).value}" for kind in self.gates),
            *([f"{len(self.values)} patches"] if self.values else []),
            *(f"{name} edited by a function" for name, _ in self.edits),
        ]
        words = Interventions(in_words="; ".join(said))
        return (replace(self.interventions, patches=frozenset()) | words) if said else self.interventions

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

    def check(self, num_layers: dict[AttentionKind, int], num_heads: dict[AttentionKind, int]) -> None:
        """Raise ValueError if a layer or head does not exist in a model of this size."""
        self.interventions.check(num_layers, num_heads)
        for found, what in ((self.gates, "gates"), (self.instead, "replacements")):
            for kind, tensor in found.items():
                if kind not in num_layers:
                    raise ValueError(f"this model has no {kind.value} attention")
                expected = (num_layers[kind], num_heads[kind])
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


def check(
    changes: Changes, num_layers: dict[AttentionKind, int], num_heads: dict[AttentionKind, int], *, batch: int
) -> None:
    """Raise ValueError, in words, if a model of this size cannot run them on this many rows: what they name does not
    exist, patches come without their values, or a sweep is of another batch."""
    changes.check(num_layers, num_heads)
    if isinstance(changes, Sweep):
        if changes.rows not in (1, batch):
            raise ValueError(f"a sweep of {changes.rows} rows, the batch has {batch}")
    elif changes.patches:
        raise ValueError("patches need their values: run these interventions in a sweep that holds them")


def joined(first: Changes, second: Changes) -> Changes:
    """Both at once, the first's edits before the second's; an edit that both have is made twice. ValueError where both
    have gates, replacements or patches of tensors."""
    for changes in (first, second):
        if not isinstance(changes, Interventions | Sweep | None):
            raise ValueError(
                f"a model is changed by Interventions or a Sweep, found {changes!r:.80}: "
                "attention_atlas.model.trace.interventions_file.from_plain() makes Interventions of plain data"
            )
    if not first or not second:
        return second or first
    if isinstance(first, Interventions) and isinstance(second, Interventions):
        return first | second
    a, b = (one if isinstance(one, Sweep) else Sweep(one) for one in (first, second))
    for name in ("gates", "instead", "values"):
        if getattr(a, name) and getattr(b, name):
            raise ValueError(f"two sweeps with {name} cannot be one")
    return Sweep(
        joined(a.interventions, b.interventions),
        {**a.gates, **b.gates},
        {**a.instead, **b.instead},
        {**a.values, **b.values},
        a.edits + b.edits,
        b.kept or a.kept,
    )


def with_given(own: Changes, given: Changes) -> Changes:
    """A translator's own changes joined with those given to one call. Edits that it already has are not made again: the
    interventions of a trace include those of the translator that wrote it."""
    if isinstance(given, Interventions):
        known = own.interventions if isinstance(own, Sweep) else own
        given = replace(given, edits=_without(given.edits, known.edits))
    elif isinstance(given, Sweep):
        plain, functions = (own.interventions, own.edits) if isinstance(own, Sweep) else (own, ())
        interventions = replace(given.interventions, edits=_without(given.interventions.edits, plain.edits))
        given = replace(given, interventions=interventions, edits=_without(given.edits, functions))
    return joined(own, given)


def _without(edits: tuple, known: tuple) -> tuple:
    """The edits without one occurrence of each known edit."""
    remaining = list(edits)
    for edit in known:
        if edit in remaining:
            remaining.remove(edit)
    return tuple(remaining)


def edited(edits: Mapping[str, Edit | Callable[..., Tensor]]) -> Changes:
    """Edits by place, in their order: plain ones as Interventions, which a trace keeps; with functions as a sweep."""
    if not isinstance(edits, Mapping):
        raise ValueError(f"edits are a dict from the names of places, found {edits!r:.80}")
    for name in edits:
        if not isinstance(name, str):
            raise ValueError(f"a place is told by its name, found {name!r:.80}")
    plain = tuple((name, edit) for name, edit in edits.items() if isinstance(edit, Edit))
    functions = tuple((name, edit) for name, edit in edits.items() if not isinstance(edit, Edit))
    for name, function in functions:
        if not callable(function) or isinstance(function, type):  # a class would be called for each tensor
            raise ValueError(
                f"the edit of {name} must be Add, Replace, Scale, Ablate or a function of a tensor, "
                f"found {function!r:.80}"
            )
    return Sweep(Interventions(edits=plain), edits=functions) if functions else Interventions(edits=plain)


def in_trace(changes: Changes) -> Interventions:
    """What a trace keeps of them."""
    return changes.in_trace() if isinstance(changes, Sweep) else changes


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
    if plain is None and gates is None:
        return None
    return AttentionEdit(
        plain or LayerEdit(),
        None if gates is None else gates[:, layer],
        None if instead is None else instead[:, layer],
    )


@dataclass(frozen=True, eq=False)
class AttentionEdit:
    """What happens to one attention of one layer: the plain part, gate [batch or 1, heads] or [.., query], instead
    [batch or 1, heads, query or 1, d_head]."""

    plain: LayerEdit = LayerEdit()
    gate: Tensor | None = None
    instead: Tensor | None = None

    def heard(self, context: Tensor, first_query: int) -> Tensor:
        """What W_O reads of what the heads say: context [batch, heads, query, d_head] -> the same shape."""
        gate = self.gate_for(context)
        if gate is not None:
            gate = window(gate, 2, first_query, context.shape[2], "the gates")
            spoken = context * gate
            if self.instead is None:
                context = spoken
            else:
                instead = window(self.instead, 2, first_query, context.shape[2], "the replacements")
                context = spoken + (1 - gate) * instead.to(context)
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


def window(tensor: Tensor, axis: int, first: int, length: int, what: str) -> Tensor:
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

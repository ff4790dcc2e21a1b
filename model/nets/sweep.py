"""Interventions with tensors: gates on heads, values patched in from another run, and edits by functions.

Tensors may differ by batch row, so that one pass sweeps many settings, and they are differentiable: the gradient of a
pass with respect to its gates at 1 is every head's importance (Michel et al. 2019, section 4.1).
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
    """The value of a patch, which replaces x by x + weight * (value - x).

    value   [batch or 1, positions or 1, width], a row for each of the patch's positions
    weight  [batch or 1, positions or 1]: 1 replaces, 0 leaves x as it is, also in batch rows with fewer positions;
            None: 1 everywhere
    """

    value: Tensor
    weight: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Sweep:
    """Interventions with their tensors and functions. A pass accepts a sweep wherever it accepts Interventions.

    gates    by kind, [batch or 1, layers, heads] or [batch or 1, layers, heads, query]: the factor g of a head's
             output; 1 leaves it, 0 ablates it. Kinds without gates are left as they are; heads off stay off
    instead  by kind, [batch or 1, layers, heads, query or 1, d_head]: the replacement r of a gated output,
             o -> g o + (1 - g) r; zero if there is none. A head's mean over a corpus gives mean ablation, its output
             for another sentence resample ablation
    values   the value of each patch in the interventions
    edits    (place, function) in order; place: a name or glob of model.nets.places.registry. The function gets a tensor
             and a places.visit.At, and returns the tensor that the pass continues with
    capture  a places.visit.Capture that one pass fills

    Positions count from the start of the sentence, whether a pass reads all rows or only the latest over a cache.
    Gradients flow in teacher-forced passes (Transformer.forward, encode, read); decoding runs without them.
    Raises ValueError where patches and values do not match, or where a tensor has the wrong number of axes.
    """

    interventions: Interventions = NO_INTERVENTIONS
    gates: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    instead: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    values: Mapping[Patch, PatchValue] = field(default_factory=dict)
    edits: tuple[tuple[str, Callable[..., Tensor]], ...] = ()
    capture: object | None = None

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
        for patch, value in self.values.items():
            _check_axes(value.value, (3,), f"the value at {patch.place}")
            if value.weight is not None:
                _check_axes(value.weight, (2,), f"the weight at {patch.place}")

    def __bool__(self) -> bool:
        return bool(self.interventions or self.gates or self.values or self.edits or self.capture)

    @property
    def source_positions(self) -> Positions:
        return self.interventions.source_positions

    @property
    def target_positions(self) -> Positions:
        return self.interventions.target_positions

    def for_trace(self) -> Interventions:
        """Return the interventions that a trace stores, with a description in place of tensors and functions."""
        parts = [
            *(f"gates on heads of {AttentionKind(kind).value}" for kind in self.gates),
            *([f"{len(self.values)} patches"] if self.values else []),
            *(f"{name} edited by a function" for name, _ in self.edits),
        ]
        if not parts:
            return self.interventions
        return replace(self.interventions, patches=frozenset()) | Interventions(in_words="; ".join(parts))

    @property
    def rows(self) -> int:
        """The number of batch rows that differ; 1: all rows of any batch are the same.

        Raises ValueError where the tensors disagree.
        """
        sizes = {len(tensor) for tensor in self._tensors()} - {1}
        if len(sizes) > 1:
            raise ValueError(f"a sweep's tensors must have one number of rows, found {sorted(sizes)}")
        return sizes.pop() if sizes else 1

    def select(self, rows: Tensor) -> Sweep:
        """Return the sweep of the batch rows [new_batch]."""

        def take(tensor: Tensor | None) -> Tensor | None:
            return tensor if tensor is None or len(tensor) == 1 else tensor.index_select(0, rows.to(tensor.device))

        return replace(
            self,
            gates={kind: take(t) for kind, t in self.gates.items()},
            instead={kind: take(t) for kind, t in self.instead.items()},
            values={patch: PatchValue(take(v.value), take(v.weight)) for patch, v in self.values.items()},
        )

    def check(self, num_layers: dict[AttentionKind, int], num_heads: dict[AttentionKind, int]) -> None:
        """Raise ValueError if a layer or head does not exist in a model of this size."""
        self.interventions.check(num_layers, num_heads)
        for tensors, name in ((self.gates, "gates"), (self.instead, "replacements")):
            for kind, tensor in tensors.items():
                if kind not in num_layers:
                    raise ValueError(f"this model has no {kind.value} attention")
                expected = (num_layers[kind], num_heads[kind])
                if tuple(tensor.shape[1:3]) != expected:
                    raise ValueError(
                        f"{name} of {kind.value} must be [batch, {expected[0]} layers, {expected[1]} heads"
                        f", ..], found {list(tensor.shape)}"
                    )

    def _tensors(self) -> list[Tensor]:
        patches = [tensor for patch in self.values.values() for tensor in (patch.value, patch.weight)]
        return [*self.gates.values(), *self.instead.values(), *(tensor for tensor in patches if tensor is not None)]


Changes = Interventions | Sweep


def check(
    changes: Changes, num_layers: dict[AttentionKind, int], num_heads: dict[AttentionKind, int], *, batch: int
) -> None:
    """Raise ValueError if a model of this size cannot run the changes on a batch of this size.

    They may name layers or heads that do not exist, hold patches without values, or be a sweep of another batch.
    """
    changes.check(num_layers, num_heads)
    if isinstance(changes, Sweep):
        if changes.rows not in (1, batch):
            raise ValueError(f"a sweep of {changes.rows} rows, the batch has {batch}")
    elif changes.patches:
        raise ValueError("patches need their values: run these interventions in a sweep that holds them")


def combine(first: Changes, second: Changes) -> Changes:
    """Return both changes at once, the first's edits before the second's; an edit in both is made twice.

    Raises ValueError where both have gates, replacements or patches of tensors.
    """
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
    a, b = (each if isinstance(each, Sweep) else Sweep(each) for each in (first, second))
    for name in ("gates", "instead", "values"):
        if getattr(a, name) and getattr(b, name):
            raise ValueError(f"two sweeps with {name} cannot be one")
    return Sweep(
        combine(a.interventions, b.interventions),
        {**a.gates, **b.gates},
        {**a.instead, **b.instead},
        {**a.values, **b.values},
        a.edits + b.edits,
        b.capture or a.capture,
    )


def add_changes(own: Changes, new: Changes) -> Changes:
    """Combine a translator's own changes with those of one call, without edits that the translator has already.

    The interventions of a trace include those of the translator that wrote it.
    """
    if isinstance(new, Interventions):
        plain = own.interventions if isinstance(own, Sweep) else own
        new = replace(new, edits=_without(new.edits, plain.edits))
    elif isinstance(new, Sweep):
        plain, functions = (own.interventions, own.edits) if isinstance(own, Sweep) else (own, ())
        interventions = replace(new.interventions, edits=_without(new.interventions.edits, plain.edits))
        new = replace(new, interventions=interventions, edits=_without(new.edits, functions))
    return combine(own, new)


def _without(edits: tuple, known: tuple) -> tuple:
    """Return the edits without one occurrence of each known edit."""
    remaining = list(edits)
    for edit in known:
        if edit in remaining:
            remaining.remove(edit)
    return tuple(remaining)


def changes_from_edits(edits: Mapping[str, Edit | Callable[..., Tensor]]) -> Changes:
    """Return edits by place as changes: Interventions, which a trace stores, or a Sweep if functions are among them."""
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


def for_trace(changes: Changes) -> Interventions:
    """Return the interventions that a trace stores of these changes."""
    return changes.for_trace() if isinstance(changes, Sweep) else changes


def attention_edit(changes: Changes, kind: AttentionKind, layer: int) -> AttentionEdit | None:
    """Return the changes to the attention of this kind in this layer; None if there are none."""
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
    """The changes to one attention of one layer.

    plain    cut edges, zeroed weights and heads that are off
    gate     [batch or 1, heads] or [batch or 1, heads, query]
    instead  [batch or 1, heads, query or 1, d_head]
    """

    plain: LayerEdit = LayerEdit()
    gate: Tensor | None = None
    instead: Tensor | None = None

    def apply(self, context: Tensor, first_query: int) -> Tensor:
        """Return the head outputs that W_O reads, given those before gates: [batch, heads, query, d_head]."""
        gate = self.gate_for(context)
        if gate is None:
            return context
        gate = window(gate, 2, first_query, context.shape[2], "the gates")
        gated = context * gate
        if self.instead is None:
            return gated
        instead = window(self.instead, 2, first_query, context.shape[2], "the replacements")
        return gated + (1 - gate) * instead.to(context)

    def gate_for(self, context: Tensor) -> Tensor | None:
        """Return the gate [batch or 1, heads, query or 1, 1] with context's dtype and device; None if all are open."""
        gate = None
        if self.gate is not None:
            gate = self.gate.to(context)
            gate = gate[..., None, None] if gate.ndim == 2 else gate[..., None]
        if self.plain.heads_off:
            on = context.new_ones(1, context.shape[1], 1, 1)
            on[:, list(self.plain.heads_off)] = 0.0
            gate = on if gate is None else gate * on
        return gate


def window(tensor: Tensor, axis: int, first: int, length: int, name: str) -> Tensor:
    """Return the part of an axis over positions that a pass reads; an axis of size 1 holds for every position."""
    size = tensor.shape[axis]
    if size == 1:
        return tensor
    if first + length > size:
        raise ValueError(f"{name}: {size} positions, the pass reads up to {first + length}")
    return tensor.narrow(axis, first, length)


def _check_axes(tensor: Tensor, axes: tuple[int, ...], name: str) -> None:
    if tensor.ndim not in axes or not tensor.is_floating_point():
        raise ValueError(
            f"{name} must be floating-point with {' or '.join(map(str, axes))} axes, found {tensor.dtype} "
            f"{list(tensor.shape)}"
        )

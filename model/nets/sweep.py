"""Interventions with tensors: gates on heads, values patched in from another run, and edits by functions.

Interventions (model.trace.interventions) are plain values that a trace stores. A Sweep adds tensors and functions. Code
that accepts both types its parameter as Changes.

A sweep's tensors may differ by batch row, so that one pass runs many settings, and they are differentiable: the
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
    """Interventions with tensors and functions. A pass accepts a sweep wherever it accepts Interventions.

    interventions  the plain part, made in every batch row
    gates          by kind, [batch or 1, layers, heads] or [batch or 1, layers, heads, query]: the factor g of a head's
                   output; 1 leaves it, 0 ablates it. A kind without gates is unchanged; heads that the interventions
                   switch off stay off
    replacements   by kind, [batch or 1, layers, heads, query or 1, d_head]: the replacement r of a gated output,
                   o -> g o + (1 - g) r; zero if there is none. A head's mean over a corpus gives mean ablation, its
                   output for another sentence resample ablation. Without gates of its kind it has no effect
    values         the value of each patch in the interventions
    edits          (place, function) in order; place: a name or glob of model.nets.places.registry. The function gets a
                   tensor and a places.visit.At, and returns the tensor that the pass continues with
    capture        a places.visit.Capture, which one pass fills; not typed here, because that module imports this one

    Positions count from the start of the sentence, whether a pass reads all rows or only the latest over a cache.
    Gradients flow in teacher-forced passes (Transformer.forward, encode, read); decoding runs without them.
    Raises ValueError if patches and values do not match, or if a tensor is not floating-point or has the wrong number
    of axes.
    """

    interventions: Interventions = NO_INTERVENTIONS
    gates: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    replacements: Mapping[AttentionKind, Tensor] = field(default_factory=dict)
    values: Mapping[Patch, PatchValue] = field(default_factory=dict)
    edits: tuple[tuple[str, Callable[..., Tensor]], ...] = ()
    capture: object | None = None

    def __post_init__(self) -> None:
        if set(self.values) != self.interventions.patches:
            raise ValueError(
                "a sweep needs a value for each patch that its interventions name, and for no other: "
                f"{len(self.interventions.patches)} patches, {len(self.values)} values"
            )
        for name, axes in (("gates", (3, 4)), ("replacements", (5,))):
            tensors = {AttentionKind(kind): tensor for kind, tensor in getattr(self, name).items()}
            for kind, tensor in tensors.items():
                _check_axes(tensor, axes, f"{name} of {kind.value}")
            object.__setattr__(self, name, tensors)
        for patch, value in self.values.items():
            if not isinstance(value, PatchValue):
                raise ValueError(f"the value at {patch.place} must be a PatchValue, found {value!r:.80}")
            _check_axes(value.value, (3,), f"the value at {patch.place}")
            if value.weight is not None:
                _check_axes(value.weight, (2,), f"the weight at {patch.place}")

    def __bool__(self) -> bool:
        """Return whether the sweep holds anything, if only replacements for the gates of another sweep."""
        parts = (self.interventions, self.gates, self.replacements, self.values, self.edits)
        return any(map(bool, parts)) or self.capture is not None

    def for_trace(self) -> Interventions:
        """Return the interventions that a trace stores, with a description in place of tensors and functions."""
        parts = [
            *(f"gates on heads of {kind.value}" for kind in self.gates),
            *(f"replacements of heads of {kind.value}" for kind in self.replacements),
            *([f"{len(self.values)} patches"] if self.values else []),
            *(f"{name} edited by a function" for name, _ in self.edits),
        ]
        if not parts:
            return self.interventions
        return replace(self.interventions, patches=frozenset()) | Interventions(in_words="; ".join(parts))

    @property
    def rows(self) -> int:
        """The batch size of the tensors; 1 if they hold for every row of any batch.

        Raises ValueError if two tensors have different batch sizes above 1.
        """
        sizes = {len(tensor) for tensor in self._tensors()} - {1}
        if len(sizes) > 1:
            raise ValueError(f"a sweep's tensors must have one number of rows, found {sorted(sizes)}")
        return sizes.pop() if sizes else 1

    def select(self, indices: Tensor) -> Sweep:
        """Return the sweep with the batch rows of these indices [new_batch], as beam search reorders its rows."""

        def take(tensor: Tensor | None) -> Tensor | None:
            return tensor if tensor is None or len(tensor) == 1 else tensor.index_select(0, indices.to(tensor.device))

        return replace(
            self,
            gates={kind: take(t) for kind, t in self.gates.items()},
            replacements={kind: take(t) for kind, t in self.replacements.items()},
            values={patch: PatchValue(take(v.value), take(v.weight)) for patch, v in self.values.items()},
        )

    def check(self, num_layers: dict[AttentionKind, int], num_heads: dict[AttentionKind, int]) -> None:
        """Raise ValueError if a layer or head does not exist in a model of this size."""
        self.interventions.check(num_layers, num_heads)
        for tensors, name in ((self.gates, "gates"), (self.replacements, "replacements")):
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
        return [
            *self.gates.values(),
            *self.replacements.values(),
            *(tensor for tensor in patches if tensor is not None),
        ]


Changes = Interventions | Sweep


def plain_part(changes: Changes) -> Interventions:
    """Return the changes without tensors and functions."""
    return changes.interventions if isinstance(changes, Sweep) else changes


def combine(first: Changes | None, second: Changes | None) -> Changes:
    """Return both changes at once; None counts as no changes.

    The first's edits come before the second's, and an edit in both is made twice. Replacements of one hold for the
    gates of the other. Raises ValueError for other types, where both have gates or replacements of one kind or a value
    of the same patch, and where both have a capture.
    """
    for changes in (first, second):
        if not isinstance(changes, Interventions | Sweep | None):
            raise ValueError(
                f"a model is changed by Interventions or a Sweep, found {changes!r:.80}: "
                "attention_atlas.model.trace.interventions_file.from_plain() makes Interventions of plain data"
            )
    if not first or not second:
        return second or first or NO_INTERVENTIONS
    if isinstance(first, Interventions) and isinstance(second, Interventions):
        return first | second
    a, b = (each if isinstance(each, Sweep) else Sweep(each) for each in (first, second))
    for name in ("gates", "replacements", "values"):
        if shared := getattr(a, name).keys() & getattr(b, name).keys():
            keys = ", ".join(sorted(key.value if isinstance(key, AttentionKind) else str(key.place) for key in shared))
            raise ValueError(f"two sweeps with {name} of {keys} cannot be combined")
    if a.capture is not None and b.capture is not None:
        raise ValueError("two sweeps with a capture cannot be combined: capture all places in one")
    return Sweep(
        combine(a.interventions, b.interventions),
        {**a.gates, **b.gates},
        {**a.replacements, **b.replacements},
        {**a.values, **b.values},
        a.edits + b.edits,
        a.capture if b.capture is None else b.capture,
    )


def add_changes(standing: Changes, new: Changes) -> Changes:
    """Combine a translator's standing changes with the new ones of a call, without making an edit of both twice.

    A call may pass the interventions of a trace, which include those of the translator that wrote it.
    """
    known = plain_part(standing).edits
    if isinstance(new, Interventions):
        new = replace(new, edits=_without(new.edits, known))
    elif isinstance(new, Sweep):
        interventions = replace(new.interventions, edits=_without(new.interventions.edits, known))
        functions = standing.edits if isinstance(standing, Sweep) else ()
        new = replace(new, interventions=interventions, edits=_without(new.edits, functions))
    return combine(standing, new)


def _without(edits: tuple, known: tuple) -> tuple:
    """Return the edits without one occurrence of each known edit."""
    remaining = list(edits)
    for edit in known:
        if edit in remaining:
            remaining.remove(edit)
    return tuple(remaining)


def changes_from_edits(edits: Mapping[str, Edit | Callable[..., Tensor]]) -> Changes:
    """Return edits by place as Interventions, or as a Sweep if functions are among them.

    Raises ValueError for a key that is not a string, and for a value that is neither an Edit nor a function.
    """
    if not isinstance(edits, Mapping):
        raise ValueError(f"edits are a dict from the names of places, found {edits!r:.80}")
    for name in edits:
        if not isinstance(name, str):
            raise ValueError(f"a place must be given by its name, found {name!r:.80}")
    plain = tuple((name, edit) for name, edit in edits.items() if isinstance(edit, Edit))
    functions = tuple((name, edit) for name, edit in edits.items() if not isinstance(edit, Edit))
    for name, function in functions:
        if not callable(function) or isinstance(function, type):  # a class would be called for each tensor
            raise ValueError(
                f"the edit of {name} must be Add, Replace, Scale, Ablate or a function of a tensor, "
                f"found {function!r:.80}"
            )
    return Sweep(Interventions(edits=plain), edits=functions) if functions else Interventions(edits=plain)


def attention_edit(changes: Changes, kind: AttentionKind, layer: int) -> AttentionEdit | None:
    """Return the changes to the attention of this kind in this layer; None if there are none."""
    plain, gates, replacements = plain_part(changes).for_attention(kind, layer), None, None
    if isinstance(changes, Sweep):
        gates, replacements = changes.gates.get(kind), changes.replacements.get(kind)
    if plain is None and gates is None:
        return None
    return AttentionEdit(
        plain or LayerEdit(),
        None if gates is None else gates[:, layer],
        None if replacements is None else replacements[:, layer],
    )


@dataclass(frozen=True, eq=False)
class AttentionEdit:
    """The changes to one attention of one layer.

    plain         cut edges, zeroed weights and heads that are off
    gates         of a Sweep, for one layer: [batch or 1, heads] or [batch or 1, heads, query]
    replacements  of a Sweep, for one layer: [batch or 1, heads, query or 1, d_head]
    """

    plain: LayerEdit = LayerEdit()
    gates: Tensor | None = None
    replacements: Tensor | None = None

    def apply(self, context: Tensor, first_query: int) -> Tensor:
        """Return the heads' outputs after gates and replacements, which W_O reads: [batch, heads, query, d_head].

        context      the heads' outputs before, of that shape
        first_query  position of the first query row
        """
        factor = self.head_factor(context)
        if factor is None:
            return context
        factor = slice_positions(factor, 2, first_query, context.shape[2], "the gates")
        gated = context * factor
        if self.replacements is None:
            return gated
        replacements = slice_positions(self.replacements, 2, first_query, context.shape[2], "the replacements")
        return gated + (1 - factor) * replacements.to(context)

    def head_factor(self, context: Tensor) -> Tensor | None:
        """Return the factor of each head's output, by gates and heads off; None if all are 1.

        It is [batch or 1, heads, query or 1, 1], with the dtype and device of context [.., heads, query, d_head].
        """
        factor = None
        if self.gates is not None:
            factor = self.gates.to(context)
            factor = factor[..., None, None] if factor.ndim == 2 else factor[..., None]
        if self.plain.heads_off:
            is_on = context.new_ones(1, context.shape[1], 1, 1)
            is_on[:, list(self.plain.heads_off)] = 0.0
            factor = is_on if factor is None else factor * is_on
        return factor


def slice_positions(tensor: Tensor, axis: int, first: int, length: int, name: str) -> Tensor:
    """Return a tensor at the positions first .. first + length - 1, which one pass reads.

    An axis of size 1 holds for every position and is returned as it is. Raises ValueError, with the name, if the axis
    is too short.
    """
    size = tensor.shape[axis]
    if size == 1:
        return tensor
    if first + length > size:
        raise ValueError(f"{name}: {size} positions, the pass reads up to {first + length}")
    return tensor.narrow(axis, first, length)


def _check_axes(tensor: object, axes: tuple[int, ...], name: str) -> None:
    is_tensor = isinstance(tensor, Tensor)
    if not is_tensor or tensor.ndim not in axes or not tensor.is_floating_point():
        description = f"{tensor.dtype} {list(tensor.shape)}" if is_tensor else type(tensor).__name__
        raise ValueError(
            f"{name} must be a floating-point tensor with {' or '.join(map(str, axes))} axes, found {description}"
        )

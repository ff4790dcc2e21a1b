"""What happens at the named places of one pass: edits, patches, and what is kept of it.

A pass asks visit() once for each layer and calls what it gets at each place. Where nothing happens in a layer that is
None, and costs a look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.places import registry
from attention_atlas.model.nets.places.registry import Place
from attention_atlas.model.nets.sweep import Changes, PatchValue, Sweep, window
from attention_atlas.model.trace.edits import Ablate, Add, Edit, Numbers, Replace, Scale
from attention_atlas.model.trace.interventions import HeadOutput, Interventions, Patch
from attention_atlas.model.trace.kinds import Side, SubLayerName


@dataclass(frozen=True, eq=False)
class At:
    """Where a function of an edit is called. positions: int64 [rows], those of the tensor's last axis but one, from 0
    at the start of the sentence: all of them where a pass reads a sentence at once, the latest where it decodes."""

    place: Place
    positions: Tensor

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def step(self) -> Tensor | None:
        """The step of decoding that each row belongs to, int64 [rows]; None where the rows are the source's."""
        return self.positions if self.place.side is Side.DECODER else None


Change = Callable[[Tensor, At], Tensor]


@dataclass(eq=False)
class Kept:
    """What one pass leaves behind at these places (names or globs): tensors by name, when it is over."""

    names: tuple[str, ...]
    found: dict[str, Tensor] = field(default_factory=dict)


class Visit:
    """What happens in one layer, or at one end, of one pass."""

    def __init__(
        self, found: dict[str, tuple[Place, tuple[int, ...]]], changes: Sequence[Change | Kept], first: int
    ) -> None:
        self.found, self.changes, self.first = found, changes, first

    def is_at(self, *parts: str) -> bool:
        """Whether anything happens at any of these places."""
        return not self.found.keys().isdisjoint(parts)

    def within(self, sublayer: SubLayerName) -> Callable[[str, Tensor], Tensor]:
        """The same for the parts of one sub-layer, by their own names."""
        return lambda part, x: self(f"{registry.SHORT[sublayer]}.{part}", x)

    def __call__(self, part: str, x: Tensor) -> Tensor:
        """The tensor that the pass goes on with at the place of this part. ValueError, with the place, for NaN and
        infinity that an edit makes."""
        place, numbers = self.found.get(part, (None, ()))
        if place is None:
            return x
        # Keys and values of cross-attention are the whole source's at every step.
        first = 0 if place.side is Side.ENCODER else self.first
        at = At(place, torch.arange(first, first + x.shape[-2], device=x.device))
        for number in numbers:
            change = self.changes[number]
            if isinstance(change, Kept):
                if torch.is_grad_enabled() and not x.requires_grad:  # replaced whole: gradients begin here
                    x = x.detach().clone().requires_grad_()
                change.found[place.name] = x
            else:
                before, x = x, change(x, at)
                if x is not before and _is_broken(x) and not _is_broken(before):
                    raise ValueError(f"the edit of {place.name} gives numbers that are not finite")
        return x


def _is_broken(x: Tensor) -> bool:
    """Whether a softmax over it gives NaN. Negative infinity is allowed: it forbids a key, or a token."""
    return bool((x.isnan() | x.isposinf()).any())


def visit(changes: Changes, prefix: str, first: int, config: ModelConfig) -> Visit | None:
    """What happens at the places PREFIX.part ("decoder.2", "encoder"; "" for the logits) of a pass whose first row is
    at position `first`; None for nothing."""
    if not has_visits(changes):
        return None
    patterns, found = zip(*_named(changes))
    here = registry.at(prefix, patterns, config)
    return Visit(here, found, first) if here else None


def has_visits(changes: Changes) -> bool:
    """Whether anything happens at a named place."""
    if isinstance(changes, Interventions):
        return bool(changes.edits)
    return bool(changes.edits or changes.values or changes.kept or changes.interventions.edits)


def projected(model: nn.Module, hidden: Tensor, changes: Changes, *, first: int = 0) -> Tensor:
    """A network's logits [batch, length, vocabulary] of its output hidden [batch, length, d_model] from position
    `first` on, after what happens to them."""
    at = visit(changes, "", first, model.config)
    return model.project(hidden) if at is None else at("logits", model.project(hidden))


def visited(changes: Changes, config: ModelConfig) -> tuple[Place, ...]:
    """The places at which something happens."""
    return registry.matching([pattern for pattern, _ in _named(changes)], config) if has_visits(changes) else ()


def check_places(changes: Changes, config: ModelConfig) -> None:
    """ValueError, with near names, for a name or glob that names no place of this model, or for heads where there are
    none."""
    if not has_visits(changes):
        return
    visited(changes, config)
    plain = changes if isinstance(changes, Interventions) else changes.interventions
    for pattern, edit in plain.edits:
        for place in registry.matching([pattern], config):
            if edit.heads is not None and not place.has_heads:
                raise ValueError(f"{place.name} has no heads of its own: {', '.join(place.axes)}")
            heads = config.of(place.stack).num_heads
            if edit.heads is not None and max(edit.heads) >= heads:
                raise ValueError(f"heads are 0 to {heads - 1}, found {max(edit.heads)}")


def check_positions(changes: Changes, config: ModelConfig, sources: Sequence[Sequence[int]], most: int) -> None:
    """ValueError, in words, for a position beyond the longest of these sources, or beyond a target of `most` tokens."""
    if not changes or not sources:
        return
    plain = changes if isinstance(changes, Interventions) else changes.interventions
    edited = (
        (place.name, place.side, position)
        for pattern, edit in plain.edits
        if edit.positions
        for place in registry.matching([pattern], config)
        for position in edit.positions
    )
    plain.check_positions(max(map(len, sources)), most, edited)


def _named(changes: Changes) -> Iterator[tuple[str, Change | Kept]]:
    """All that happens, in this order: plain edits, patches, functions; what is kept comes last."""
    plain = changes if isinstance(changes, Interventions) else changes.interventions
    for pattern, edit in plain.edits:
        yield pattern, partial(applied, edit)
    if isinstance(changes, Sweep):
        for patch, given in changes.values.items():
            yield registry.name_of(patch.place), partial(_patch, patch, given)
        for pattern, function in changes.edits:
            yield pattern, partial(_call, function)
        if changes.kept is not None:
            for name in changes.kept.names:
                yield name, changes.kept


def _call(function: Change, x: Tensor, at: At) -> Tensor:
    found = function(x.clone(), at)  # it may write into it, and records or other passes may share x
    if not isinstance(found, Tensor) or (found.shape, found.dtype) != (x.shape, x.dtype):
        what = f"{list(found.shape)}, {found.dtype}" if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"the edit of {at.name} must give a tensor of {list(x.shape)}, {x.dtype}: it gave {what}")
    return found


def applied(edit: Edit, x: Tensor, at: At) -> Tensor:
    """x [.., rows, width] after a plain edit."""
    rows = None
    if edit.positions is not None:
        named = torch.tensor(edit.positions, device=x.device)
        rows = (at.positions[:, None] == named).any(-1)  # [rows]
        if not rows.any():
            return x
    if isinstance(edit, Ablate):
        changed = torch.zeros_like(x)
    elif isinstance(edit, Scale):
        changed = x * edit.by
    elif isinstance(edit, Add):
        changed = x + edit.strength * _spread(edit.value, edit.positions, x, at)
    elif isinstance(edit, Replace):
        changed = _spread(edit.value, edit.positions, x, at).expand_as(x)
    else:
        raise ValueError(f"an edit is one of Ablate, Add, Replace and Scale, found {edit!r:.80}")
    if rows is not None:
        changed = torch.where(rows[:, None], changed, x)
    if edit.heads is not None:
        heads = torch.zeros(x.shape[1], dtype=torch.bool, device=x.device)
        heads[list(edit.heads)] = True
        changed = torch.where(heads[:, None, None], changed, x)
    return changed


def _spread(value: Numbers, positions: tuple[int, ...] | None, x: Tensor, at: At) -> Tensor:
    """A vector, or one for each row: [width] or [rows, width]."""
    found = torch.tensor(value.array).to(x)
    if found.ndim and found.shape[-1] not in (1, x.shape[-1]):
        raise ValueError(f"a value of width {found.shape[-1]}, {at.name} has {x.shape[-1]}")
    if found.ndim < 2:
        return found
    own = (at.positions[:, None] == torch.tensor(positions, device=x.device)).to(x)  # [rows, positions]
    return own @ found


def _patch(patch: Patch, given: PatchValue, x: Tensor, at: At) -> Tensor:
    first = int(at.positions[0])
    if not isinstance(patch.place, HeadOutput):
        return patched(x, first, patch, given)
    head = torch.tensor([patch.place.head], device=x.device)
    return x.index_copy(1, head, patched(x[:, patch.place.head], first, patch, given)[:, None])


def patched(x: Tensor, first: int, patch: Patch, given: PatchValue) -> Tensor:
    """x [batch, length, width], rows from position `first` on, with the value where the patch says."""
    _, length, width = x.shape
    if given.value.shape[-1] != width:
        raise ValueError(f"a value of width {given.value.shape[-1]}, expected {width}: {patch.place}")
    if patch.positions is None:
        return _mixed(
            x,
            *(
                None if tensor is None else window(tensor, 1, first, length, f"the value at {patch.place}")
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

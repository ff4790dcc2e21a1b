"""Apply edits and patches at the named places of one pass, and capture tensors there.

A place is a named tensor of a pass, which TransformerLens calls a hook point. Its name is PREFIX.part: in
"decoder.2.self.q" the prefix is the layer "decoder.2" and the part is "self.q" (model.nets.places.registry).

A pass calls visit() once for each layer, which returns a Visit. At each place it calls the Visit with the part and the
tensor, and continues with the tensor that the call returns.
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
from attention_atlas.model.nets.sweep import Changes, PatchValue, Sweep, plain_part, slice_positions
from attention_atlas.model.trace.edits import Ablate, Add, Edit, Numbers, Replace, Scale
from attention_atlas.model.trace.interventions import HeadOutput, Patch
from attention_atlas.model.trace.kinds import Side, SubLayerName


@dataclass(frozen=True, eq=False)
class At:
    """The place and the positions at which an edit's function is called.

    positions: int64 [rows], the positions of the tensor's last axis but one, from 0 at the start of the sentence. They
    are all positions if a pass reads a whole sentence, and the latest if it decodes over a cache.
    """

    place: Place
    positions: Tensor

    @property
    def name(self) -> str:
        """The name of the place."""
        return self.place.name

    @property
    def step(self) -> Tensor | None:
        """The decoding step of each row, int64 [rows]; None if the rows are source tokens."""
        return self.positions if self.place.side is Side.DECODER else None


EditFunction = Callable[[Tensor, At], Tensor]


@dataclass(eq=False)
class Capture:
    """The tensors of one pass at some places.

    names    the places, as names or globs
    tensors  by name of the place; the pass fills them
    """

    names: tuple[str, ...]
    tensors: dict[str, Tensor] = field(default_factory=dict)


class Visit:
    """The edits and captures of one pass at the places with one prefix: a layer, a stack, or "" for the logits.

    Call it with a part and the tensor there: `queries = edit_at("self.q", queries)`. It is false if nothing happens at
    any of its places: it then returns each tensor as it is.
    """

    def __init__(
        self,
        places: dict[str, tuple[Place, tuple[int, ...]]],
        actions: Sequence[EditFunction | Capture],
        first: int,
    ) -> None:
        """places: by part, the place and the indices of its actions in `actions`, in the order in which they run.

        first: position of the pass's first row.
        """
        self.places, self.actions, self.first = places, actions, first

    def __bool__(self) -> bool:
        return bool(self.places)

    def is_at(self, *parts: str) -> bool:
        """Return whether anything happens at one of these places."""
        return not self.places.keys().isdisjoint(parts)

    def within(self, sublayer: SubLayerName) -> Callable[[str, Tensor], Tensor]:
        """Return a function that visits the parts of one sub-layer by their short names, such as "q"."""
        return lambda part, x: self(f"{registry.SHORT[sublayer]}.{part}", x)

    def __call__(self, part: str, x: Tensor) -> Tensor:
        """Run the actions at a place on x, and return the tensor that the pass continues with.

        Raises ValueError, with the place, if an edit makes NaN or positive infinity.
        """
        place, indices = self.places.get(part, (None, ()))
        if place is None:
            return x
        # Rows of source tokens start at 0 in every pass: each decoding step reads all keys and values of the source.
        first = 0 if place.side is Side.ENCODER else self.first
        at = At(place, torch.arange(first, first + x.shape[-2], device=x.device))
        for index in indices:
            action = self.actions[index]
            if isinstance(action, Capture):
                if torch.is_grad_enabled() and not x.requires_grad:
                    # After an edit replaced x, it depends on no parameter. As a leaf it still gets a gradient.
                    x = x.detach().clone().requires_grad_()
                action.tensors[place.name] = x
            else:
                before, x = x, action(x, at)
                if x is not before and _is_broken(x) and not _is_broken(before):
                    raise ValueError(f"the edit of {place.name} gives numbers that are not finite")
        return x


def _is_broken(x: Tensor) -> bool:
    """Return whether x has NaN or positive infinity. Negative infinity is allowed: it forbids a key, or a token."""
    return bool((x.isnan() | x.isposinf()).any())


NO_VISIT = Visit({}, (), 0)


def visit(changes: Changes, prefix: str, first: int, config: ModelConfig) -> Visit:
    """Return the edits and captures at the places PREFIX.part of one pass.

    prefix  such as "decoder.2" or "encoder"; "" for the logits
    first   position of the pass's first row
    """
    if not has_visits(changes):
        return NO_VISIT
    patterns, actions = zip(*_list_actions(changes))
    return Visit(registry.at(prefix, patterns, config), actions, first)


def has_visits(changes: Changes) -> bool:
    """Return whether the changes edit or capture at any named place."""
    is_sweep = isinstance(changes, Sweep)
    return bool(plain_part(changes).edits or (is_sweep and (changes.edits or changes.values or changes.capture)))


def project_logits(model: nn.Module, hidden: Tensor, changes: Changes, *, first: int = 0) -> Tensor:
    """Return a network's logits [batch, length, vocabulary] after their edits.

    hidden: the network's output [batch, length, d_model] from position `first` on.
    """
    edit_at = visit(changes, "", first, model.config)  # the place "logits" has no prefix
    return edit_at("logits", model.project(hidden))


def visited_places(changes: Changes, config: ModelConfig) -> tuple[Place, ...]:
    """Return the places that the changes edit or capture."""
    return registry.matching([pattern for pattern, _ in _list_actions(changes)], config) if has_visits(changes) else ()


def check_places(changes: Changes, config: ModelConfig) -> None:
    """Raise ValueError for a name or glob that matches no place of this model, and for heads that do not exist."""
    if not has_visits(changes):
        return
    visited_places(changes, config)
    for pattern, edit in plain_part(changes).edits:
        for place in registry.matching([pattern], config):
            if edit.heads is not None and not place.has_heads:
                raise ValueError(f"{place.name} has no heads of its own: {', '.join(place.axes)}")
            heads = config.of(place.stack).num_heads
            if edit.heads is not None and max(edit.heads) >= heads:
                raise ValueError(f"heads are 0 to {heads - 1}, found {max(edit.heads)}")


def check_positions(changes: Changes, config: ModelConfig, sources: Sequence[Sequence[int]], max_target: int) -> None:
    """Raise ValueError for a position beyond the longest of these sources, or beyond a target of max_target tokens."""
    if not changes or not sources:
        return
    plain = plain_part(changes)
    edited = (
        (place.name, place.side, position)
        for pattern, edit in plain.edits
        if edit.positions
        for place in registry.matching([pattern], config)
        for position in edit.positions
    )
    plain.check_positions(max(map(len, sources)), max_target, edited)


def _list_actions(changes: Changes) -> Iterator[tuple[str, EditFunction | Capture]]:
    """Yield each pattern with its action, in the order in which they run; a capture sees the tensor after all edits."""
    for pattern, edit in plain_part(changes).edits:
        yield pattern, partial(apply_edit, edit)
    if isinstance(changes, Sweep):
        for patch, value in changes.values.items():
            yield registry.name_of(patch.place), partial(_apply_patch_at_place, patch, value)
        for pattern, function in changes.edits:
            yield pattern, partial(_call_function, function)
        if changes.capture is not None:
            for name in changes.capture.names:
                yield name, changes.capture


def _call_function(function: EditFunction, x: Tensor, at: At) -> Tensor:
    """Return function(x, at). Raises ValueError if it returns another shape or type."""
    edited = function(x.clone(), at)  # a function may write into its argument, which records and other passes share
    if not isinstance(edited, Tensor) or (edited.shape, edited.dtype) != (x.shape, x.dtype):
        got = f"{list(edited.shape)}, {edited.dtype}" if isinstance(edited, Tensor) else type(edited).__name__
        raise ValueError(f"the edit of {at.name} must give a tensor of {list(x.shape)}, {x.dtype}: it gave {got}")
    return edited


def apply_edit(edit: Edit, x: Tensor, at: At) -> Tensor:
    """Return x [.., rows, width] after a plain edit."""
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
        changed = x + edit.strength * _expand_value(edit.value, edit.positions, x, at)
    elif isinstance(edit, Replace):
        changed = _expand_value(edit.value, edit.positions, x, at).expand_as(x)
    else:
        raise ValueError(f"an edit is one of Ablate, Add, Replace and Scale, found {edit!r:.80}")
    if rows is not None:
        changed = torch.where(rows[:, None], changed, x)
    if edit.heads is not None:
        heads = torch.zeros(x.shape[1], dtype=torch.bool, device=x.device)
        heads[list(edit.heads)] = True
        changed = torch.where(heads[:, None, None], changed, x)
    return changed


def _expand_value(value: Numbers, positions: tuple[int, ...] | None, x: Tensor, at: At) -> Tensor:
    """Return an edit's value in the rows of x: a number or [width] for all of them, or [rows, width].

    positions: those of the value's rows, if it has several.
    """
    rows = torch.tensor(value.array).to(x)
    if rows.ndim and rows.shape[-1] not in (1, x.shape[-1]):
        raise ValueError(f"a value of width {rows.shape[-1]}, {at.name} has {x.shape[-1]}")
    if rows.ndim < 2:
        return rows
    is_position = (at.positions[:, None] == torch.tensor(positions, device=x.device)).to(x)  # [rows, positions]
    return is_position @ rows


def _apply_patch_at_place(patch: Patch, value: PatchValue, x: Tensor, at: At) -> Tensor:
    """Return the tensor of a place after a patch, which may concern one head of it."""
    first = int(at.positions[0])
    if not isinstance(patch.place, HeadOutput):
        return apply_patch(x, first, patch, value)
    head = torch.tensor([patch.place.head], device=x.device)
    return x.index_copy(1, head, apply_patch(x[:, patch.place.head], first, patch, value)[:, None])


def apply_patch(x: Tensor, first: int, patch: Patch, value: PatchValue) -> Tensor:
    """Return x [batch, length, width], rows from position `first` on, with the value at the patch's positions."""
    _, length, width = x.shape
    if value.value.shape[-1] != width:
        raise ValueError(f"a value of width {value.value.shape[-1]}, expected {width}: {patch.place}")
    tensors = (value.value, value.weight)
    if patch.positions is None:
        about = f"the value at {patch.place}"
        return _mix(
            x, *(None if tensor is None else slice_positions(tensor, 1, first, length, about) for tensor in tensors)
        )
    named = len(patch.positions)
    for tensor in tensors:
        if tensor is not None and tensor.shape[1] not in (1, named):
            raise ValueError(f"{named} positions, a value for {tensor.shape[1]}: {patch.place}")
    last = first + length
    pairs = [(index, position - first) for index, position in enumerate(patch.positions) if first <= position < last]
    if not pairs:  # this pass reads none of the patch's positions
        return x
    indices, rows = torch.tensor(pairs, device=x.device).unbind(1)

    def select(tensor: Tensor | None) -> Tensor | None:
        return tensor if tensor is None or tensor.shape[1] == 1 else tensor.to(x.device).index_select(1, indices)

    return x.index_copy(1, rows, _mix(x.index_select(1, rows), *map(select, tensors)))


def _mix(x: Tensor, value: Tensor, weight: Tensor | None) -> Tensor:
    """Return x + weight * (value - x); the value without a weight."""
    value = value.to(x).expand_as(x)
    # lerp gives exactly x at weight 0 and exactly the value at weight 1.
    return value if weight is None else torch.lerp(x, value, weight.to(x)[..., None].expand_as(x))

"""Interventions: what to switch off, cut, shift, patch or edit in a forward pass, as plain values.

>>> off = Interventions(heads_off=frozenset({(AttentionKind.CROSS, 2, 4)}))
>>> bool(off), bool(Interventions())
(True, False)
>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> translator.translate("Der Hund schläft.", interventions=off).interventions == off
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attention_atlas.model.trace import check_integer
from attention_atlas.model.trace.edits import Edit
from attention_atlas.model.trace.kinds import AttentionKind, Kind, Side, SubLayerName, coerce_enums, coerce_integers

__all__ = [
    "NO_INTERVENTIONS",
    "Edge",
    "HeadOutput",
    "Interventions",
    "LayerEdit",
    "Patch",
    "Positions",
    "Stream",
    "SubLayerOutput",
    "heads_off",
    "positions_off",
    "positions_shifted",
]

MAX_SHIFT = 1_000_000  # positions, in either direction


@dataclass(frozen=True)
class Edge:
    """One cell of an attention map, or the same cell of several maps.

    query, key   positions, from 0
    layer, head  None: in every layer, in every head
    """

    kind: Kind
    query: int
    key: int
    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        coerce_enums(self, kind=AttentionKind)
        coerce_integers(self, "query", "key")
        coerce_integers(self, "layer", "head", optional=True)


@dataclass(frozen=True)
class Positions:
    """How one side uses its positional encoding: not at all, or that of position + shift."""

    enabled: bool = True
    shift: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.enabled, bool):
            raise ValueError(f"enabled must be true or false, found {self.enabled!r:.80}")
        coerce_integers(self, "shift")
        if abs(self.shift) > MAX_SHIFT:
            raise ValueError(f"positions are shifted by at most {MAX_SHIFT:,}, found {self.shift:.3g}")


@dataclass(frozen=True)
class HeadOutput:
    """The output of one head, [.., d_head], before the output projection."""

    kind: Kind
    layer: int
    head: int

    def __post_init__(self) -> None:
        coerce_enums(self, kind=AttentionKind)
        coerce_integers(self, "layer", "head")


@dataclass(frozen=True)
class SubLayerOutput:
    """The output of one sub-layer, which is added to the residual stream, [.., d_model]."""

    side: Side
    layer: int
    sublayer: SubLayerName

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side, sublayer=SubLayerName)
        coerce_integers(self, "layer")


@dataclass(frozen=True)
class Stream:
    """The residual stream after one sub-layer of a layer, or (None) at the layer's input, [.., d_model]."""

    side: Side
    layer: int
    after: SubLayerName | None = None

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side, **({} if self.after is None else {"after": SubLayerName}))
        coerce_integers(self, "layer")


@dataclass(frozen=True)
class Patch:
    """A place where values from another run replace the pass's own, at these positions (None: at all)."""

    place: HeadOutput | SubLayerOutput | Stream
    positions: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.positions is not None:
            positions = tuple(check_integer("position", position) for position in self.positions)
            object.__setattr__(self, "positions", positions)


@dataclass(frozen=True)
class LayerEdit:
    """The interventions on one attention of one layer. Edges are (query, key, head), head None for all heads."""

    heads_off: tuple[int, ...] = ()
    cut: tuple[tuple[int, int, int | None], ...] = ()
    zeroed: tuple[tuple[int, int, int | None], ...] = ()


@dataclass(frozen=True)
class Interventions:
    """Changes to a forward pass, with the same effect in the full and in the cached pass. Empty: the plain model.

    heads_off     (kind, layer, head): the head's output is set to zero before the output projection
    cut_edges     masked before the softmax, so that the rest of the row is renormalised. A row must keep one edge
                  (ValueError)
    zeroed_edges  set to zero after the softmax, so that the row loses that mass. The recorded weights are those of the
                  softmax, before this
    source_positions, target_positions   the positional encoding of the encoder's and the decoder's input
    patches       places where values from another run replace the pass's own. The values are arguments of the pass
                  (model.nets.sweep.Sweep)
    edits         (place, edit) pairs, applied in order; or a dict. A place is a named point of the pass (a hook point
                  in TransformerLens) or a glob of such names (model.nets.places.registry); an edit is one of
                  model.trace.edits
    in_words      interventions known only as text, which cannot be repeated: those of files of version 1, and those
                  whose strengths or values were tensors (model.nets.sweep)

    Any collection is accepted for a set, and "cross" for a kind. ValueError for values that are no heads, edges or
    patches.
    """

    heads_off: frozenset[tuple[Kind, int, int]] | Any = frozenset()
    cut_edges: frozenset[Edge] | Any = frozenset()
    zeroed_edges: frozenset[Edge] | Any = frozenset()
    source_positions: Positions = Positions()
    target_positions: Positions = Positions()
    patches: frozenset[Patch] | Any = frozenset()
    edits: tuple[tuple[str, Edit], ...] | Any = ()
    in_words: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads_off", frozenset(map(_check_head, self.heads_off)))
        for name, type_, example in (
            ("cut_edges", Edge, 'an edge is written Edge("cross", query=5, key=3)'),
            ("zeroed_edges", Edge, 'an edge is written Edge("cross", query=5, key=3)'),
            ("patches", Patch, 'a patch is written Patch(Stream("decoder", 1), positions)'),
        ):
            values = frozenset(getattr(self, name))
            for value in values:
                if not isinstance(value, type_):
                    raise ValueError(f"{example}, found {value!r:.80}")
            object.__setattr__(self, name, values)
        object.__setattr__(self, "edits", tuple(self.edits.items() if isinstance(self.edits, Mapping) else self.edits))

    def __bool__(self) -> bool:
        return self != NO_INTERVENTIONS

    def __or__(self, other: Interventions) -> Interventions:
        """Return both together; where both change the positions of a side, the right operand wins."""
        positions = {
            name: getattr(other, name)
            for name in ("source_positions", "target_positions")
            if getattr(other, name) != Positions()
        }
        sets = {
            name: getattr(self, name) | getattr(other, name)
            for name in ("heads_off", "cut_edges", "zeroed_edges", "patches")
        }
        in_words = "; ".join(filter(None, (self.in_words, other.in_words)))
        return replace(self, **sets, **positions, edits=self.edits + other.edits, in_words=in_words)

    @property
    def is_repeatable(self) -> bool:
        """Whether another pass can apply them: patches lack their values, in_words is only text."""
        return not (self.patches or self.in_words)

    def for_attention(self, kind: AttentionKind, layer: int) -> LayerEdit | None:
        """Return the changes to this kind of attention in this layer, or None if there are none."""
        if not (self.heads_off or self.cut_edges or self.zeroed_edges):
            return None

        def select(edges: frozenset[Edge]) -> tuple:
            selected = [(e.query, e.key, e.head) for e in edges if e.kind == kind and e.layer in (None, layer)]
            return tuple(sorted(selected, key=lambda edge: (*edge[:2], -1 if edge[2] is None else edge[2])))

        edit = LayerEdit(
            heads_off=tuple(sorted(h for k, at, h in self.heads_off if k == kind and at == layer)),
            cut=select(self.cut_edges),
            zeroed=select(self.zeroed_edges),
        )
        return None if edit == LayerEdit() else edit

    def check(self, num_layers: dict[AttentionKind, int], num_heads: dict[AttentionKind, int]) -> None:
        """Raise ValueError if a model of this size cannot apply them: a layer or head does not exist, patches overlap,
        or they are known only as text."""
        if self.in_words:
            raise ValueError(f"these interventions are known in words only and cannot be run again: {self.in_words}")
        edges = self.cut_edges | self.zeroed_edges
        heads = list(self.heads_off)
        heads += [(edge.kind, edge.layer, edge.head) for edge in edges]
        heads += [_attention_of(patch.place) for patch in self.patches]
        for kind, layer, head in heads:
            if kind not in num_layers:
                raise ValueError(f"this model has no {kind.value} attention")
            if layer is not None and not 0 <= layer < num_layers[kind]:
                raise ValueError(f"{kind.value} has layers 0 to {num_layers[kind] - 1}, found {layer}")
            if head is not None and not 0 <= head < num_heads[kind]:
                raise ValueError(f"heads are 0 to {num_heads[kind] - 1}, found {head}")
        for edge in edges:
            if edge.query < 0 or edge.key < 0:
                raise ValueError(f"an edge's positions count from 0, found {edge}")
        _check_patches(self.patches)

    def check_positions(self, source: int, target: int, edited: Iterable[tuple[str, Side, int]] = ()) -> None:
        """Raise ValueError for a position beyond a source of `source` tokens or beyond the limit of `target` tokens.

        edited: positions of edits, each as (place, side, position).
        """
        uses = [(f"an edit of {place}", side, position) for place, side, position in edited]
        for edge in self.cut_edges | self.zeroed_edges:
            key_side = Side.DECODER if edge.kind is AttentionKind.DECODER_SELF else Side.ENCODER
            uses += [("an edge's query", edge.kind.side, edge.query), ("an edge's key", key_side, edge.key)]
        for patch in self.patches:
            side = patch.place.kind.side if isinstance(patch.place, HeadOutput) else patch.place.side
            uses += [("a patch", side, position) for position in patch.positions or ()]
        for user, side, position in uses:
            length = source if side is Side.ENCODER else target
            if position >= length:
                raise ValueError(f"{user} is at position {position} of the {side.value}, which has 0 to {length - 1}")

    def describe(self) -> str:
        """Describe the interventions in words, for a trace's record; "" if there are none."""
        parts = [f"{k.value} layer {layer + 1} head {h + 1} off" for k, layer, h in sorted(self.heads_off)]
        parts += [
            f"{len(edges)} {name}"
            for name, edges in (("edges cut", self.cut_edges), ("edges zeroed", self.zeroed_edges))
            if edges
        ]
        for side, positions in (("source", self.source_positions), ("target", self.target_positions)):
            if not positions.enabled:
                parts.append(f"{side} positions off")
            elif positions.shift:
                parts.append(f"{side} positions shifted by {positions.shift}")
        if self.patches:
            parts.append(f"{len(self.patches)} patches")
        parts += [f"{place} {edit.describe()}" for place, edit in self.edits]
        return "; ".join([*parts, self.in_words] if self.in_words else parts)


def _check_head(head: Any) -> tuple[AttentionKind, int, int]:
    try:
        kind, layer, number = head
        position = check_integer("layer", layer), check_integer("head", number)
    except (TypeError, ValueError) as error:
        example = 'a head is a kind, a layer and a number such as ("cross", 2, 4)'
        raise ValueError(f"{example}, found {head!r:.80}") from error
    return AttentionKind(kind), *position


def _attention_of(place: HeadOutput | SubLayerOutput | Stream) -> tuple[AttentionKind, int, int | None]:
    """Return an attention of the place's layer as (kind, layer, head), head None unless the place is a head's."""
    if isinstance(place, HeadOutput):
        return place.kind, place.layer, place.head
    name = place.sublayer if isinstance(place, SubLayerOutput) else place.after
    if place.side == Side.ENCODER:
        if name == SubLayerName.CROSS_ATTENTION:
            raise ValueError(f"the encoder has no cross-attention: {place}")
        return AttentionKind.ENCODER_SELF, place.layer, None
    is_cross = name == SubLayerName.CROSS_ATTENTION
    return AttentionKind.CROSS if is_cross else AttentionKind.DECODER_SELF, place.layer, None


def _check_patches(patches: frozenset[Patch]) -> None:
    """Raise ValueError if two patches overlap, or one has an impossible position."""
    positions_at: dict[object, list[Sequence[int] | None]] = {}
    for patch in patches:
        positions = patch.positions
        if positions is not None and (len(set(positions)) < len(positions) or min(positions, default=0) < 0):
            raise ValueError(f"a patch's positions count from 0, each once, found {positions}")
        for earlier in positions_at.setdefault(patch.place, []):
            if positions is None or earlier is None or set(positions) & set(earlier):
                raise ValueError(f"two patches overlap at {patch.place}")
        positions_at[patch.place].append(positions)


NO_INTERVENTIONS = Interventions()


def positions_off() -> Interventions:
    """Switch the positional encoding of both sides off."""
    return Interventions(source_positions=Positions(enabled=False), target_positions=Positions(enabled=False))


def positions_shifted(shift: int) -> Interventions:
    """Shift every position of both sides by `shift`."""
    return Interventions(source_positions=Positions(shift=shift), target_positions=Positions(shift=shift))


def heads_off(kind: Kind, layer: int, heads: Iterable[int]) -> Interventions:
    """Switch these heads of one layer's attention off."""
    return Interventions(heads_off=frozenset((kind, layer, head) for head in heads))

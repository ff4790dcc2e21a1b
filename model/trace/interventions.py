"""What to switch off, cut or shift in a forward pass. Plain values: no torch needed to describe one.

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

MOST_SHIFT = 1_000_000  # positions, either way


@dataclass(frozen=True)
class Edge:
    """One cell of an attention map, or the same cell of several.

    query and key are positions (from 0). layer or head None: in every layer, in every head. "cross" will do for a kind.
    """

    kind: Kind
    query: int
    key: int
    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        coerce_enums(self, kind=AttentionKind)
        coerce_integers(self, "query", "key", "layer", "head")


@dataclass(frozen=True)
class Positions:
    """How one side's positional encoding is used: not at all, or at position + shift."""

    enabled: bool = True
    shift: int = 0

    def __post_init__(self) -> None:
        coerce_integers(self, "shift")
        if abs(self.shift) > MOST_SHIFT:
            raise ValueError(f"positions are shifted by at most {MOST_SHIFT:,}, found {self.shift:.3g}")


@dataclass(frozen=True)
class HeadOutput:
    """What one head says: [.., d_head], before the output projection."""

    kind: Kind
    layer: int
    head: int

    def __post_init__(self) -> None:
        coerce_enums(self, kind=AttentionKind)
        coerce_integers(self, "layer", "head")


@dataclass(frozen=True)
class SubLayerOutput:
    """What one sub-layer adds to the residual stream: [.., d_model]."""

    side: Side
    layer: int
    sublayer: SubLayerName

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side, sublayer=SubLayerName)
        coerce_integers(self, "layer")


@dataclass(frozen=True)
class Stream:
    """The residual stream after one sub-layer of a layer, or (None) as it enters the layer: [.., d_model]."""

    side: Side
    layer: int
    after: SubLayerName | None = None

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side, **({} if self.after is None else {"after": SubLayerName}))
        coerce_integers(self, "layer")


@dataclass(frozen=True)
class Patch:
    """Where a pass goes on with a value from elsewhere: a place, at these positions (None: at all)."""

    place: HeadOutput | SubLayerOutput | Stream
    positions: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.positions is not None:
            object.__setattr__(self, "positions", tuple(self.positions))


@dataclass(frozen=True)
class LayerEdit:
    """The part of an Interventions that concerns one attention of one layer. Edges are (query, key, head or None)."""

    heads_off: tuple[int, ...] = ()
    cut: tuple[tuple[int, int, int | None], ...] = ()
    zeroed: tuple[tuple[int, int, int | None], ...] = ()


@dataclass(frozen=True)
class Interventions:
    """Changes to one forward pass, honoured alike by the full and the cached path. Empty: exactly the plain model.

    heads_off     (kind, layer, head): the head's output is zero, as if its slice of the output projection were
    cut_edges     masked before the softmax: the rest of the row renormalises. A row must keep one edge (ValueError)
    zeroed_edges  zero after the softmax: the row loses that mass. The recorded weights are the softmax's, before this
    source_positions, target_positions   the positional encoding of the encoder's and the decoder's input
    patches       where values from another run take the place of the pass's own; the values themselves are arguments
                  of the pass (model.nets.sweep.Sweep)
    edits         (place, edit) in order, plain values (model.trace.edits) at named places of the pass, or at all that a
                  glob names (model.nets.places.registry lists them)
    in_words      what is known in words alone, and cannot be run again: of an old file's prose, or of a pass whose
                  strengths and values were tensors (model.nets.sweep)

    Any collection will do for a set, and "cross" for a kind. ValueError, in words, for what is no head.
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
        object.__setattr__(self, "heads_off", frozenset(map(_head, self.heads_off)))
        for name in ("cut_edges", "zeroed_edges", "patches"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        _are(Edge, 'an edge is written Edge("cross", query=5, key=3)', self.cut_edges | self.zeroed_edges)
        _are(Patch, 'a patch is written Patch(Stream("decoder", 1), positions)', self.patches)
        object.__setattr__(self, "edits", tuple(self.edits.items() if isinstance(self.edits, Mapping) else self.edits))

    def __bool__(self) -> bool:
        return self != NO_INTERVENTIONS

    def __or__(self, other: Interventions) -> Interventions:
        """Both at once; of positions the other's, where it changes them."""
        changed = {
            name: getattr(other, name)
            for name in ("source_positions", "target_positions")
            if getattr(other, name) != Positions()
        }
        return replace(
            self,
            heads_off=self.heads_off | other.heads_off,
            cut_edges=self.cut_edges | other.cut_edges,
            zeroed_edges=self.zeroed_edges | other.zeroed_edges,
            patches=self.patches | other.patches,
            edits=self.edits + other.edits,
            in_words="; ".join(filter(None, (self.in_words, other.in_words))),
            **changed,
        )

    @property
    def is_repeatable(self) -> bool:
        """Whether they can be run again as they are: patches lack their values, words the rest."""
        return not (self.patches or self.in_words)

    @property
    def on_edges(self) -> bool:
        """Whether single cells of attention maps are changed."""
        return bool(self.cut_edges or self.zeroed_edges)

    def for_attention(self, kind: AttentionKind, layer: int) -> LayerEdit | None:
        """What concerns the attention of this kind in this layer; None for nothing."""
        if not (self.heads_off or self.on_edges):
            return None
        edit = LayerEdit(
            heads_off=tuple(sorted(h for k, at, h in self.heads_off if k == kind and at == layer)),
            cut=_edges_of(self.cut_edges, kind, layer),
            zeroed=_edges_of(self.zeroed_edges, kind, layer),
        )
        return None if edit == LayerEdit() else edit

    def check(self, num_layers: dict[AttentionKind, int], num_heads: dict[AttentionKind, int]) -> None:
        """Raise ValueError if they cannot be run: a layer or head does not exist in a model of this size, patches
        overlap, or they are known in words only."""
        if self.in_words:
            raise ValueError(f"these interventions are known in words only and cannot be run again: {self.in_words}")
        edges = self.cut_edges | self.zeroed_edges
        named = list(self.heads_off)
        named += [(e.kind, e.layer, e.head) for e in edges]
        named += [_attention_of(patch.place) for patch in self.patches]
        for kind, layer, head in named:
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
        """Raise ValueError, in words, for a position beyond a source of so many tokens, or beyond the most that a
        target may have. edited: positions of edits, each with the place's name and side."""
        named = [(f"an edit of {place}", side, position) for place, side, position in edited]
        for edge in self.cut_edges | self.zeroed_edges:
            key_side = Side.DECODER if edge.kind is AttentionKind.DECODER_SELF else Side.ENCODER
            named += [("an edge's query", edge.kind.side, edge.query), ("an edge's key", key_side, edge.key)]
        for patch in self.patches:
            side = patch.place.kind.side if isinstance(patch.place, HeadOutput) else patch.place.side
            named += [("a patch", side, position) for position in patch.positions or ()]
        for what, side, position in named:
            length = source if side is Side.ENCODER else target
            if position >= length:
                raise ValueError(f"{what} is at position {position} of the {side.value}, which has 0 to {length - 1}")

    def describe(self) -> str:
        """In words, for a trace's record; empty for nothing."""
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


def _are(type_: type, words: str, given: frozenset) -> None:
    for one in given:
        if not isinstance(one, type_):
            raise ValueError(f"{words}, found {one!r:.80}")


def _head(found: tuple[AttentionKind, int, int]) -> tuple[AttentionKind, int, int]:
    match found:
        case (kind, layer, head) if hasattr(layer, "__index__") and hasattr(head, "__index__"):
            return AttentionKind(kind), int(layer), int(head)
    raise ValueError(f'a head is a kind, a layer and a number such as ("cross", 2, 4), found {found!r:.80}')


def _edges_of(edges: frozenset[Edge], kind: AttentionKind, layer: int) -> tuple:
    mine = [(e.query, e.key, e.head) for e in edges if e.kind == kind and e.layer in (None, layer)]
    return tuple(sorted(mine, key=lambda e: (e[0], e[1], -1 if e[2] is None else e[2])))


def _attention_of(place: HeadOutput | SubLayerOutput | Stream) -> tuple[AttentionKind, int, int | None]:
    """An attention of the layer that a place is in, and the head if it is one's."""
    if isinstance(place, HeadOutput):
        return place.kind, place.layer, place.head
    name = place.sublayer if isinstance(place, SubLayerOutput) else place.after
    if place.side == Side.ENCODER:
        if name == SubLayerName.CROSS_ATTENTION:
            raise ValueError(f"the encoder has no cross-attention: {place}")
        return AttentionKind.ENCODER_SELF, place.layer, None
    cross = name == SubLayerName.CROSS_ATTENTION
    return AttentionKind.CROSS if cross else AttentionKind.DECODER_SELF, place.layer, None


def _check_patches(patches: frozenset[Patch]) -> None:
    taken: dict[object, list[Sequence[int] | None]] = {}
    for patch in patches:
        positions = patch.positions
        if positions is not None and (len(set(positions)) < len(positions) or min(positions, default=0) < 0):
            raise ValueError(f"a patch's positions count from 0, each once, found {positions}")
        for other in taken.setdefault(patch.place, []):
            if positions is None or other is None or set(positions) & set(other):
                raise ValueError(f"two patches overlap at {patch.place}")
        taken[patch.place].append(positions)


NO_INTERVENTIONS = Interventions()


def positions_off() -> Interventions:
    """No positional encoding on either side."""
    return Interventions(source_positions=Positions(enabled=False), target_positions=Positions(enabled=False))


def positions_shifted(shift: int) -> Interventions:
    """Every position, on both sides, moved by `shift`."""
    return Interventions(source_positions=Positions(shift=shift), target_positions=Positions(shift=shift))


def heads_off(kind: Kind, layer: int, heads: Iterable[int]) -> Interventions:
    """These heads of one attention say nothing."""
    return Interventions(heads_off=frozenset((kind, layer, head) for head in heads))

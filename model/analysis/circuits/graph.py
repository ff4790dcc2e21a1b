"""The graph of a pre-norm Transformer: senders, receivers and the edges between them.

The residual stream is a sum of the embeddings and of what each head and each feed-forward writes. Every query, key and
value of every head, every feed-forward and the logits read that sum. An edge is the part of one sender in the input of
one receiver. Keys and values of cross-attention read the encoder's stream through its last norm, so an edge leads from
every encoder sender to each of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal


@dataclass(frozen=True)
class Edge:
    """An edge by the names of its ends.

    Senders are "encoder.embed", "encoder.1.self.3" (a head) or "decoder.0.ffn". Receivers are "decoder.2.cross.q.5",
    "encoder.3.ffn" or "logits".
    """

    sender: str
    receiver: str

    @property
    def letter(self) -> str:
        """The input of a head that the edge leads into: "q", "k" or "v"; empty if it leads into no head."""
        parts = self.receiver.split(".")
        return parts[3] if len(parts) == 5 else ""

    @property
    def reader(self) -> str:
        """The node that the receiver belongs to: the head of a q, k or v, otherwise the receiver itself."""
        parts = self.receiver.split(".")
        return ".".join([*parts[:3], parts[4]]) if len(parts) == 5 else self.receiver

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}"


@dataclass(frozen=True)
class Receivers:
    """Receivers that read the same senders: the first `num_senders` of a side's stream.

    Edges are numbered receiver by receiver; `first_edge` is the number of the first one.
    """

    names: tuple[str, ...]
    side: Side
    num_senders: int
    first_edge: int

    @property
    def num_edges(self) -> int:
        return len(self.names) * self.num_senders

    @property
    def edges(self) -> slice:
        return slice(self.first_edge, self.first_edge + self.num_edges)


@dataclass(frozen=True)
class Graph:
    """All senders of each side in the order in which they write, and all receivers in the order of the pass.

    Receivers are grouped by the part of the pass that they belong to, such as "decoder.1.cross.q".
    """

    senders: dict[Side, tuple[str, ...]]
    receivers: dict[str, Receivers]

    def __len__(self) -> int:
        return sum(group.num_edges for group in self.receivers.values())

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All edges in the order of their numbers."""
        return tuple(
            Edge(sender, receiver)
            for group in self.receivers.values()
            for receiver in group.names
            for sender in self.senders[group.side][: group.num_senders]
        )

    @cached_property
    def edge_numbers(self) -> dict[Edge, int]:
        """The number of each edge."""
        return {edge: number for number, edge in enumerate(self.edges)}

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """All senders, the encoder's first."""
        return tuple(name for names in self.senders.values() for name in names)

    def edges_between(self, sender: str, reader: str = "") -> np.ndarray:
        """Return a mask, bool [edge], of the edges from a sender into a node or a receiver (empty: into all).

        Raises ValueError if there are none.
        """
        mask = np.array([e.sender == sender and reader in ("", e.reader, e.receiver) for e in self.edges])
        if not mask.any():
            raise ValueError(f"there is no edge from {sender!r} into {reader or 'anything'!r}")
        return mask

    def edges_among(self, nodes: Collection[str]) -> np.ndarray:
        """Return a mask, bool [edge], of the edges from one of these nodes into another of them or the logits."""
        return np.array([e.sender in nodes and (e.reader in nodes or e.reader == "logits") for e in self.edges])

    def sum_by_sender(self, values: np.ndarray) -> np.ndarray:
        """Sum values [edge] over the edges of each sender: float64 [node], in the order of `nodes`."""
        numbers = {name: number for number, name in enumerate(self.nodes)}
        return np.bincount([numbers[e.sender] for e in self.edges], values, len(numbers))

    @cached_property
    def decoder_edges(self) -> np.ndarray:
        """A mask, bool [edge], of the edges whose sender is in the decoder."""
        return np.array([e.sender.startswith(Side.DECODER.value) for e in self.edges])

    def keep_paths(self, mask: np.ndarray) -> np.ndarray:
        """Return those edges of a mask, bool [edge], that lie on a path within it from an embedding to the logits."""
        reached = {names[0] for names in self.senders.values()}
        forward = []
        for number in np.flatnonzero(mask):  # in the order of the pass: edges into a sender precede those out of it
            edge = self.edges[number]
            if edge.sender in reached:
                forward.append(number)
                reached.add(edge.reader)
        used, on_path = {"logits"}, np.zeros_like(mask)
        for number in reversed(forward):
            edge = self.edges[number]
            if edge.reader in used:
                on_path[number] = True
                used.add(edge.sender)
        return on_path


@lru_cache(maxsize=16)
def build_graph(config: ModelConfig) -> Graph:
    """Return the graph of a Transformer of this shape. Raises a Refusal if its residual stream is not a plain sum."""
    if not config.norm_first or not config.residual:
        raise Refusal(
            "Circuits need norms before each sub-layer: with norms after it, the residual stream is not "
            "a sum of its parts."
        )
    heads = {side: range(config.of(side).num_heads) for side in Side}
    senders: dict[Side, list[str]] = {side: [f"{side.value}.embed"] for side in (Side.ENCODER, Side.DECODER)}
    receivers: dict[str, Receivers] = {}

    def read(part: str, names: list[str], side: Side) -> None:
        first_edge = sum(group.num_edges for group in receivers.values())
        receivers[part] = Receivers(tuple(names), side, len(senders[side]), first_edge)

    def attend(part: str, letters: str, side: Side, stream: Side) -> None:
        for letter in letters:
            read(f"{part}.{letter}", [f"{part}.{letter}.{head}" for head in heads[side]], stream)

    for side, layers in ((Side.ENCODER, config.num_encoder_layers), (Side.DECODER, config.num_decoder_layers)):
        for layer in range(layers):
            prefix = f"{side.value}.{layer}"
            attend(f"{prefix}.self", "qkv", side, side)
            senders[side] += [f"{prefix}.self.{head}" for head in heads[side]]
            if side is Side.DECODER:
                attend(f"{prefix}.cross", "q", side, side)
                attend(f"{prefix}.cross", "kv", side, Side.ENCODER)
                senders[side] += [f"{prefix}.cross.{head}" for head in heads[side]]
            read(f"{prefix}.ffn", [f"{prefix}.ffn"], side)
            senders[side].append(f"{prefix}.ffn")
    read("logits", ["logits"], Side.DECODER)
    return Graph({side: tuple(names) for side, names in senders.items()}, receivers)

"""Senders, receivers and edges of a pre-norm Transformer.

A residual stream is a sum: of the embeddings, what every head writes and what every feed-forward writes. Each query,
key and value of each head, each feed-forward and the logits read that sum, so that each of them could be given another
sum: an edge is one sender's part in one receiver's input. Cross-attention's keys and values read the encoder's stream
through its last norm, so that an edge leads from any sender of the encoder to each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal


@dataclass(frozen=True)
class Edge:
    """By name: "encoder.1.self.3" (a head), "decoder.0.ffn", "encoder.embed" write; "decoder.2.cross.q.5",
    "encoder.3.ffn", "logits" read."""

    sender: str
    receiver: str

    @property
    def letter(self) -> str:
        """Which of a head's inputs it leads into, "q", "k" or "v"; empty: it leads into no head."""
        parts = self.receiver.split(".")
        return parts[3] if len(parts) == 5 else ""

    @property
    def reader(self) -> str:
        """The node whose input it is: a head for its q, k or v, else the receiver itself."""
        parts = self.receiver.split(".")
        return ".".join([*parts[:3], parts[4]]) if len(parts) == 5 else self.receiver

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}"


@dataclass(frozen=True)
class Readers:
    """Receivers that read the same senders: the first `senders` of a side. at: the number of their first edge; edges
    are counted receiver by receiver."""

    names: tuple[str, ...]
    side: Side  # of the stream that is read
    senders: int
    at: int

    @property
    def edges(self) -> slice:
        return slice(self.at, self.at + len(self.names) * self.senders)


@dataclass(frozen=True)
class Graph:
    """senders: by side, in the order in which they write; readers: by the part of a pass, such as "decoder.1.cross.q",
    in its order."""

    senders: dict[Side, tuple[str, ...]]
    readers: dict[str, Readers]

    def __len__(self) -> int:
        return sum(len(one.names) * one.senders for one in self.readers.values())

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All of them, in their order."""
        return tuple(self._edges())

    def _edges(self) -> Iterator[Edge]:
        for readers in self.readers.values():
            for name in readers.names:
                for sender in self.senders[readers.side][: readers.senders]:
                    yield Edge(sender, name)

    @cached_property
    def number(self) -> dict[Edge, int]:
        """An edge's place among all."""
        return {edge: index for index, edge in enumerate(self.edges)}

    def between(self, sender: str, reader: str = "") -> np.ndarray:
        """Those from one node into another, into one receiver, or (empty) into all: bool [edge]. ValueError where there
        are none."""
        found = [e.sender == sender and reader in ("", e.reader, e.receiver) for e in self.edges]
        if not any(found):
            raise ValueError(f"there is no edge from {sender!r} into {reader or 'anything'!r}")
        return np.array(found)

    def among(self, nodes: Collection[str]) -> np.ndarray:
        """Those from one of these nodes into another of them or the logits: bool [edge]."""
        return np.array([e.sender in nodes and (e.reader in nodes or e.reader == "logits") for e in self.edges])

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Of numbers [edge], by their sender: [node], the encoder's nodes first."""
        names = [name for side in self.senders.values() for name in side]
        place = {name: index for index, name in enumerate(names)}
        return np.bincount([place[e.sender] for e in self.edges], values, len(names))

    @cached_property
    def of_decoder(self) -> np.ndarray:
        """Those from a part of the decoder: bool [edge]."""
        return np.array([e.sender.startswith(Side.DECODER.value) for e in self.edges])

    def on_paths(self, chosen: np.ndarray) -> np.ndarray:
        """Of the chosen edges, bool [edge], those that lie on a path of chosen ones from an embedding to the logits."""
        reached = {names[0] for names in self.senders.values()}
        forward = []
        for index in np.flatnonzero(chosen):  # in the order of the pass: what leads to a sender stands before it
            edge = self.edges[index]
            if edge.sender in reached:
                forward.append(index)
                reached.add(edge.reader)
        used, kept = {"logits"}, np.zeros_like(chosen)
        for index in reversed(forward):
            edge = self.edges[index]
            if edge.reader in used:
                kept[index] = True
                used.add(edge.sender)
        return kept


@lru_cache(maxsize=16)
def graph(config: ModelConfig) -> Graph:
    """The graph of a Transformer of this shape. A Refusal, in words, where the stream is no plain sum."""
    if not config.norm_first or not config.residual:
        raise Refusal(
            "Circuits need norms before each sub-layer: with norms after it, the stream is not a sum of its parts."
        )
    heads = {side: range(config.of(side).num_heads) for side in Side}
    senders: dict[Side, list[str]] = {side: [f"{side.value}.embed"] for side in (Side.ENCODER, Side.DECODER)}
    readers: dict[str, Readers] = {}
    edges = 0

    def read(part: str, names: list[str], side: Side) -> None:
        nonlocal edges
        readers[part] = Readers(tuple(names), side, len(senders[side]), edges)
        edges += len(names) * len(senders[side])

    def attention(at: str, letters: str, side: Side, reads: Side) -> None:
        for letter in letters:
            read(f"{at}.{letter}", [f"{at}.{letter}.{head}" for head in heads[side]], reads)

    for side, layers in ((Side.ENCODER, config.num_encoder_layers), (Side.DECODER, config.num_decoder_layers)):
        for layer in range(layers):
            at = f"{side.value}.{layer}"
            attention(f"{at}.self", "qkv", side, side)
            senders[side] += [f"{at}.self.{head}" for head in heads[side]]
            if side is Side.DECODER:
                attention(f"{at}.cross", "q", side, side)
                attention(f"{at}.cross", "kv", side, Side.ENCODER)
                senders[side] += [f"{at}.cross.{head}" for head in heads[side]]
            read(f"{at}.ffn", [f"{at}.ffn"], side)
            senders[side].append(f"{at}.ffn")
    read("logits", ["logits"], Side.DECODER)
    return Graph({side: tuple(names) for side, names in senders.items()}, readers)

"""How a checkpoint learned: the file that model/training/history.py records, and the log of its run, as arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.tokens import Token, tokens_from_spelling
from attention_atlas.model.training.history import NAME, read_arrays

LOG = "metrics.jsonl"
NEAR = 0.05  # bits: maps that are this close to each other are called the same


@dataclass(frozen=True, eq=False)
class Learned:
    """updates int [records]; loss float [records, probes], nats a token; probes as {"direction", "source",
    "reference"}; the rest is asked for by record, kind and probe."""

    updates: np.ndarray
    loss: np.ndarray
    translations: np.ndarray
    probes: tuple[dict, ...]
    tokens: tuple[dict, ...]
    arrays: dict[str, np.ndarray]
    levels: int

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        """Those that were recorded."""
        return tuple(kind for kind in AttentionKind if f"maps_{kind.value}_0" in self.arrays)

    def maps(self, kind: AttentionKind, probe: int) -> np.ndarray:
        """float32 [records, layers, heads, query, key]; rows sum to 1 as far as 8 bits a weight allow."""
        return self.arrays[f"maps_{kind.value}_{probe}"].astype(np.float32) / self.levels

    def sentences(self, probe: int) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """The tokens of a source and of its reference, y1 .. yT: pieces with the symbols around them."""
        _, target = parse_direction(self.probes[probe]["direction"])
        found = self.tokens[probe]
        return tokens_from_spelling((f"<2{target}>", *found["source"], "</s>")), tokens_from_spelling(
            (*found["target"], "</s>")
        )

    def log_probability(self, probe: int) -> np.ndarray | None:
        """Natural, of each of the reference's tokens: float [records, target]; None where it was not recorded. NaN in
        records from before it was."""
        return self.arrays.get(f"log_probability_{probe}")

    def products(self, side: Side, probe: int) -> np.ndarray | None:
        """Of each layer's states between words, float [records, layers, word, word]; None and NaN as above."""
        return self.arrays.get(f"products_{side.value}_{probe}")

    def sides(self, kind: AttentionKind, probe: int) -> tuple[Sequence[str], Sequence[str]]:
        """The tokens of a map's rows and columns: pieces with the symbols around them."""
        source, target = self.sentences(probe)
        read = ("<s>", *target[:-1])
        return (
            source if kind is AttentionKind.ENCODER_SELF else read,
            read if kind is AttentionKind.DECODER_SELF else source,
        )

    def distances(self, kind: AttentionKind, layer: int, head: int) -> np.ndarray:
        """How far a head's maps are from its last ones: float [records], the mean Jensen-Shannon divergence in bits
        over all rows of all probes (Lin 1991)."""
        found = []
        for probe in range(len(self.probes)):
            maps = self.maps(kind, probe)[:, layer, head].astype(np.float64)  # [records, query, key]
            maps /= maps.sum(-1, keepdims=True)
            found.append(_divergence(maps, maps[-1:]))
        return np.concatenate(found, axis=1).mean(1)

    def settled(self, kind: AttentionKind, layer: int, head: int) -> int:
        """The first record from which on the head's maps stay within NEAR of its last ones."""
        far = np.flatnonzero(self.distances(kind, layer, head) > NEAR)
        return int(far[-1]) + 1 if len(far) else 0


def _divergence(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of rows in bits: [.., query, key] twice -> [.., query]."""
    middle = (a + b) / 2

    def against(p: np.ndarray) -> np.ndarray:
        ratio = np.divide(p, middle, out=np.ones_like(middle), where=(p > 0) & (middle > 0))
        return (p * np.log2(ratio)).sum(-1)

    return np.maximum((against(a) + against(b + 0 * a)) / 2, 0.0)


def read(folder: Path) -> Learned:
    """The history of a checkpoint folder. ValueError, naming the file, if it is damaged."""
    path = folder / NAME
    arrays, facts = read_arrays(path)
    try:
        return Learned(
            arrays["updates"],
            arrays["loss"],
            arrays["translation"],
            tuple(facts["probes"]),
            tuple(facts["tokens"]),
            arrays,
            facts["levels"],
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a training history: {error}") from error


def curve(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Updates and the training loss a token, label smoothing included, of the run that made the checkpoint; both float
    [lines]. ValueError, naming the file, if it is damaged."""
    path = folder / LOG
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [(line["update"], line["loss"]) for line in lines if "loss" in line]
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a training log: {error}") from error
    found = np.array(rows, float).reshape(-1, 2)
    return found[:, 0], found[:, 1]

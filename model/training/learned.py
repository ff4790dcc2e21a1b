"""Read how a checkpoint learned: its history.npz (see history.py) and the log of its run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attention_atlas.model.files import value_errors
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.maps import jensen_shannon_bits
from attention_atlas.model.trace.tokens import Token, tokens_from_spelling
from attention_atlas.model.trace.translation import tokens_of
from attention_atlas.model.training.history import NAME, read_arrays

LOG = "metrics.jsonl"
NEAR = 0.05  # bits; maps within this distance count as equal


@dataclass(frozen=True, eq=False)
class Learned:
    """The history of a checkpoint.

    updates       int [records]
    loss          float [records, probes], nats per token
    translations  str [records, probes]
    probes        as {"direction", "source", "reference"}
    tokens        of each probe, as {"source", "target"}
    arrays        the arrays of the file
    """

    updates: np.ndarray
    loss: np.ndarray
    translations: np.ndarray
    probes: tuple[dict, ...]
    tokens: tuple[dict, ...]
    arrays: dict[str, np.ndarray]
    levels: int

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        """The recorded kinds of attention."""
        return tuple(kind for kind in AttentionKind if f"maps_{kind.value}_0" in self.arrays)

    def maps(self, kind: AttentionKind, probe: int) -> np.ndarray:
        """Return the maps of a probe, float32 [records, layers, heads, query, key]. Rows sum to 1 up to rounding to 8
        bits."""
        return self.arrays[f"maps_{kind.value}_{probe}"].astype(np.float32) / self.levels

    def sentences(self, probe: int) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """Return the tokens of a source and of its reference y1 .. yT, with symbols."""
        _, target = parse_direction(self.probes[probe]["direction"])
        pieces = self.tokens[probe]
        source = tokens_from_spelling((f"<2{target}>", *pieces["source"], "</s>"))
        return source, tokens_from_spelling((*pieces["target"], "</s>"))

    def log_probability(self, probe: int) -> np.ndarray | None:
        """Return the natural log-probability of each token of the reference, float [records, target]. None if it was
        not recorded; NaN in records of versions that did not record it."""
        return self.arrays.get(f"log_probability_{probe}")

    def products(self, side: Side, probe: int) -> np.ndarray | None:
        """Return the inner products of each layer's states between words, float [records, layers, word, word]; None and
        NaN as in log_probability()."""
        return self.arrays.get(f"products_{side.value}_{probe}")

    def sides(self, kind: AttentionKind, probe: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return the tokens of the rows and columns of a map, with symbols."""
        source, target = self.sentences(probe)
        return tokens_of(kind, source, ("<s>", *target[:-1]))

    def distances(self, kind: AttentionKind, layer: int, head: int) -> np.ndarray:
        """Return the distance of a head's maps from its last ones, float [records]: the mean Jensen-Shannon divergence
        in bits over all rows of all probes (Lin 1991)."""
        rows = []
        for probe in range(len(self.probes)):
            maps = self.maps(kind, probe)[:, layer, head].astype(np.float64)  # [records, query, key]
            maps /= maps.sum(-1, keepdims=True)
            rows.append(jensen_shannon_bits(maps, maps[-1:]))
        return np.concatenate(rows, axis=1).mean(1)

    def settled(self, kind: AttentionKind, layer: int, head: int) -> int:
        """Return the first record from which the head's maps stay within NEAR of its last ones."""
        far = np.flatnonzero(self.distances(kind, layer, head) > NEAR)
        return int(far[-1]) + 1 if len(far) else 0


def read(folder: Path) -> Learned:
    """Read the history of a checkpoint folder. Raises ValueError if the file is damaged."""
    path = folder / NAME
    arrays, facts = read_arrays(path)
    with value_errors(f"{path} is not a training history", KeyError, TypeError):
        return Learned(
            arrays["updates"],
            arrays["loss"],
            arrays["translation"],
            tuple(facts["probes"]),
            tuple(facts["tokens"]),
            arrays,
            facts["levels"],
        )


def curve(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the updates and the training loss per token (with label smoothing) from the log of the run; both float
    [lines]. Raises ValueError if the file is damaged."""
    path = folder / LOG
    with value_errors(f"{path} is not a training log", OSError, json.JSONDecodeError, KeyError, TypeError):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [(line["update"], line["loss"]) for line in lines if "loss" in line]
    values = np.array(rows, float).reshape(-1, 2)
    return values[:, 0], values[:, 1]

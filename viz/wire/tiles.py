"""A large map as a pyramid: level 0 has its cells, each level above one cell for two by two of the level below. The
page draws the level whose cells are at least a pixel large, in tiles of 256 x 256, and so never all of a large map.

Of each level there are two pictures: the largest weight of each cell's block, in which the thinnest bright line or a
single cell stays visible at any size, and the mean, which says how much lies there. A byte is 255 sqrt(w) (`root2` in
viz/wire/codecs.py): a level's largest is the largest of its cells in bytes, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps.patterns import Pattern, pattern_of
from attention_atlas.viz.wire.codecs import HALF

SIDE = 256  # cells a side of a tile, and of the largest map that is sent and drawn whole
TOP = 64  # cells a side that the highest level has at most: a thumbnail
AT_ONCE = 40  # tiles of one answer

Wanted = tuple[int, int, int]  # level, row and column of a tile


def is_large(trace: TranslationTrace, kind: AttentionKind) -> bool:
    """Whether the maps of a kind are sent in tiles."""
    return max(trace.maps(kind).weights.shape[2:]) > SIDE


@dataclass(frozen=True, eq=False)
class Level:
    """largest, mean: float32 [rows, columns] of the weights of each cell's block; of level 0 the same array."""

    largest: np.ndarray
    mean: np.ndarray


def pyramid(weights: np.ndarray) -> list[Level]:
    """The levels of a map [query, key], the cells themselves first. At the edges a block has what there is of it."""
    levels = [Level(weights, weights)]
    counts = np.ones((len(weights), 1), np.float32), np.ones((1, weights.shape[1]), np.float32)
    while max(levels[-1].largest.shape) > TOP:
        below = levels[-1]
        sums = _halved(below.mean * counts[0] * counts[1], np.add)
        counts = _halved(counts[0], np.add, axes=(0,)), _halved(counts[1], np.add, axes=(1,))
        levels.append(Level(_halved(below.largest, np.maximum), sums / (counts[0] * counts[1])))
    return levels


def _halved(values: np.ndarray, join: np.ufunc, axes: tuple[int, ...] = (0, 1)) -> np.ndarray:
    for axis in axes:
        length = values.shape[axis]
        even, odd = (values.take(range(start, length, 2), axis) for start in (0, 1))
        if length % 2:  # the last one stands alone: 0 joins as nothing does, for sums and for weights
            odd = np.concatenate([odd, np.zeros_like(odd.take([0], axis) if odd.size else even.take([0], axis))], axis)
        values = join(even, odd)
    return values


def tiles(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int, wanted: Iterable[Wanted]) -> dict:
    """Tiles of a head's pyramid: `largest` and, above level 0, `mean` of each, [rows, columns] in `root2`. A Refusal
    for those that there are not, or for too many."""
    wanted, levels = list(wanted), pyramid(trace.maps(kind).weights[layer, head])
    if len(wanted) > AT_ONCE:
        raise Refusal("The page asked for {n} tiles; up to {limit} are sent at once.", n=len(wanted), limit=AT_ONCE)
    found = []
    for number, row, column in wanted:
        level = levels[number] if 0 <= number < len(levels) else None
        cells = np.s_[row * SIDE : (row + 1) * SIDE, column * SIDE : (column + 1) * SIDE]
        if level is None or min(row, column) < 0 or not level.largest[cells].size:
            raise Refusal("The page asked for something unknown: {what}", what=f"tile {(number, row, column)}")
        rows, columns = level.largest[cells].shape
        sent = {"level": number, "row": row, "column": column, "rows": rows, "columns": columns}
        found.append({**sent, "largest": HALF.encode(level.largest[cells])})
        if number:
            found[-1]["mean"] = HALF.encode(level.mean[cells])
    return {"kind": kind.value, "layer": layer, "head": head, "codec": HALF.name, "tiles": found}


def all_tiles(trace: TranslationTrace, kind: AttentionKind) -> list[Wanted]:
    """Every tile of a head's pyramid."""
    rows, columns = trace.maps(kind).weights.shape[2:]
    found, level = [], 0
    while True:
        found += [(level, row, column) for row in range(-(-rows // SIDE)) for column in range(-(-columns // SIDE))]
        if max(rows, columns) <= TOP:
            return found
        rows, columns, level = -(-rows // 2), -(-columns // 2), level + 1


def strip(trace: TranslationTrace, kind: AttentionKind, layer: int) -> dict:
    """A layer's heads whose maps are large: tops of the pyramids [heads, rows, columns] in `root2`, and patterns."""
    maps, tops, patterns = trace.maps(kind), [], []
    measure = pattern_of(trace, kind)
    for head in range(maps.num_heads):
        weights = maps.weights[layer, head]
        tops.append(pyramid(weights)[-1].largest)
        patterns.append(measure(weights))
    return {
        "kind": kind.value,
        "layer": layer,
        "rows": tops[0].shape[0],
        "columns": tops[0].shape[1],
        "codec": HALF.name,
        "data": HALF.encode(np.stack(tops)),
        **described(patterns),
    }


def described(patterns: Iterable[Pattern]) -> dict:
    """What the page says of a layer's heads."""
    patterns = list(patterns)
    return {
        "entropies": [round(pattern.entropy, 2) for pattern in patterns],
        "readings": [pattern.reading for pattern in patterns],
    }

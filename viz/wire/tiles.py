"""Large maps as pyramids of tiles, of which the page requests only those that it draws.

Level 0 of a pyramid is the map; a cell of each further level covers two by two cells of the level below. The page draws
the level whose cells are at least one pixel large, in tiles of 256 x 256 cells. Each level has two pictures: the
largest weight of each block, in which single cells and thin lines stay visible at any size, and the mean. Weights are
sent in the codec `root2` (viz/wire/codecs.py), which keeps the order of values, so that maxima stay maxima.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps.patterns import Pattern, pattern_functions
from attention_atlas.viz.wire.codecs import HALF

SIDE = 256  # cells on a side of a tile, and of the largest map that is not sent in tiles
TOP = 64  # most cells on a side of the highest level, which serves as a thumbnail
MAX_TILES = 40  # in one answer

Tile = tuple[int, int, int]  # level, row, column


def is_large(trace: TranslationTrace, kind: AttentionKind) -> bool:
    """Whether the maps of a kind are sent in tiles."""
    return max(trace.maps(kind).weights.shape[2:]) > SIDE


@dataclass(frozen=True, eq=False)
class Level:
    """The largest and the mean weight of each cell's block, float32 [rows, columns]; at level 0 the same array."""

    largest: np.ndarray
    mean: np.ndarray


def pyramid(weights: np.ndarray) -> list[Level]:
    """Return the levels of a map [query, key], from level 0. Blocks at the edges may be smaller."""
    levels = [Level(weights, weights)]
    counts = np.ones((len(weights), 1), np.float32), np.ones((1, weights.shape[1]), np.float32)
    while max(levels[-1].largest.shape) > TOP:
        below = levels[-1]
        sums = _halve(below.mean * counts[0] * counts[1], np.add)
        counts = _halve(counts[0], np.add, axes=(0,)), _halve(counts[1], np.add, axes=(1,))
        levels.append(Level(_halve(below.largest, np.maximum), sums / (counts[0] * counts[1])))
    return levels


def _halve(values: np.ndarray, join: np.ufunc, axes: tuple[int, ...] = (0, 1)) -> np.ndarray:
    for axis in axes:
        pairs = np.moveaxis(values, axis, 0)
        halved, odd = pairs[::2].copy(), pairs[1::2]
        join(halved[: len(odd)], odd, out=halved[: len(odd)])  # the last may have no partner
        values = np.moveaxis(halved, 0, axis)
    return values


def tiles(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int, requested: Iterable[Tile]) -> dict:
    """Return tiles of a head's pyramid: `largest` and, above level 0, `mean` of each, [rows, columns] in `root2`.

    Raises a Refusal for unknown tiles, or for too many.
    """
    requested, levels = list(requested), pyramid(trace.maps(kind).weights[layer, head])
    if len(requested) > MAX_TILES:
        raise Refusal(
            "The page asked for {n} tiles; up to {limit} are sent at once.", n=len(requested), limit=MAX_TILES
        )
    answers = []
    for number, row, column in requested:
        level = levels[number] if 0 <= number < len(levels) else None
        cells = np.s_[row * SIDE : (row + 1) * SIDE, column * SIDE : (column + 1) * SIDE]
        if level is None or min(row, column) < 0 or not level.largest[cells].size:
            raise Refusal("The page asked for something unknown: {what}", what=f"tile {(number, row, column)}")
        rows, columns = level.largest[cells].shape
        place = {"level": number, "row": row, "column": column, "rows": rows, "columns": columns}
        answers.append({**place, "largest": HALF.encode(level.largest[cells])})
        if number:
            answers[-1]["mean"] = HALF.encode(level.mean[cells])
    return {"kind": kind.value, "layer": layer, "head": head, "codec": HALF.name, "tiles": answers}


def all_tiles(trace: TranslationTrace, kind: AttentionKind) -> list[Tile]:
    """Return all tiles of a head's pyramid."""
    rows, columns = trace.maps(kind).weights.shape[2:]
    every, level = [], 0
    while True:
        every += [(level, row, column) for row in range(-(-rows // SIDE)) for column in range(-(-columns // SIDE))]
        if max(rows, columns) <= TOP:
            return every
        rows, columns, level = -(-rows // 2), -(-columns // 2), level + 1


def strip(trace: TranslationTrace, kind: AttentionKind, layer: int) -> dict:
    """Return thumbnails of a layer's large maps (the tops of the pyramids, [heads, rows, columns] in `root2`) and their
    patterns."""
    maps, tops, patterns = trace.maps(kind), [], []
    measure, interpret = pattern_functions(trace, kind)
    for head in range(maps.num_heads):
        weights = maps.weights[layer, head]
        tops.append(pyramid(weights)[-1].largest)
        patterns.append(interpret(measure(weights)))
    return {
        "kind": kind.value,
        "layer": layer,
        "rows": tops[0].shape[0],
        "columns": tops[0].shape[1],
        "codec": HALF.name,
        "data": HALF.encode(np.stack(tops)),
        **describe_patterns(patterns),
    }


def describe_patterns(patterns: Sequence[Pattern]) -> dict:
    """Return the entropies and the readings of a layer's heads."""
    return {
        "entropies": [round(pattern.entropy, 2) for pattern in patterns],
        "readings": [pattern.reading for pattern in patterns],
    }

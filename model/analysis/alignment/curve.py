"""How far each layer's heads are from links by hand, by row convention: the figures of a checkpoint's card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from model.analysis.alignment.choose import best_of_columns, best_of_rows, choose, score_maps, summed, voters
from model.analysis.alignment.words import pieces
from model.trace.alignment.links import SYMMETRISATIONS, Links
from model.trace.alignment.score import Gold, pooled, score
from model.trace.alignment.voters import RowToken
from model.trace.kinds import AttentionKind
from model.translator import Translator

Pair = tuple[Sequence[str], Sequence[str]]
TOGETHER = "grow-diag-final-and"


@dataclass(frozen=True, eq=False)
class Curve:
    """Alignment error rates, pooled over sentences, 0 to 1. heads: row convention -> float64 [layers, heads]; means:
    row convention -> [layers], of the mean of a layer's heads; chosen: of heads chosen by agreement, without links by
    hand, along rows and columns together; diagonal: of links along the diagonal, which need no model."""

    direction: str
    sentences: int
    heads: dict[RowToken, np.ndarray]
    means: dict[RowToken, np.ndarray]
    chosen: float
    diagonal: float

    def to_json(self) -> dict:
        """Plain values, to four digits."""
        return {
            "direction": self.direction,
            "sentences": self.sentences,
            "chosen": round(self.chosen, 4),
            "diagonal": round(self.diagonal, 4),
            **{
                name: {row.value: np.round(values, 4).tolist() for row, values in found.items()}
                for name, found in (("heads", self.heads), ("means", self.means))
            },
        }


def curve(translator: Translator, direction: str, pairs: Sequence[Pair], golds: Sequence[Gold]) -> Curve:
    """Of a direction, on sentences in words (source, target) and their links. ValueError for none."""
    if not pairs:
        raise ValueError("there are no sentences with links")
    maps = score_maps(translator, [pieces(translator, direction, *pair) for pair in pairs])

    def rate(read: Callable[[dict], Links]) -> float:
        return pooled(score(read(found), gold) for found, gold in zip(maps, golds, strict=True)).error_rate

    every = voters(translator.model.num_layers[AttentionKind.CROSS], translator.config.num_heads)
    shape = translator.model.num_layers[AttentionKind.CROSS], translator.config.num_heads
    heads = {row: np.zeros(shape) for row in RowToken}
    for voter in every:
        if not voter.by_length:
            heads[voter.row][voter.layer, voter.head] = rate(lambda found, v=voter: best_of_rows(summed(found, [v])))
    means = {
        row: np.array(
            [
                rate(lambda found, r=row, i=layer: best_of_rows(found[r, False][i, :, :, :-1].mean(0)))
                for layer in range(shape[0])
            ]
        )
        for row in RowToken
    }
    chosen = choose(maps, None, among=every).forward

    def together(found: dict) -> Links:
        scores = summed(found, chosen)
        return SYMMETRISATIONS[TOGETHER](best_of_rows(scores), best_of_columns(scores))

    straight = pooled(score(diagonal(*map(len, pair)), gold) for pair, gold in zip(pairs, golds, strict=True))
    return Curve(direction, len(pairs), heads, means, rate(together), straight.error_rate)


def diagonal(sources: int, targets: int) -> Links:
    """Each target word with the source word as far along its sentence."""
    return frozenset((round(target * (sources - 1) / max(1, targets - 1)), target) for target in range(targets))


def markdown(found: dict) -> str:
    """A table of to_json()'s values, in percent."""
    heads, means = found["heads"], found["means"]
    lines = [
        "| layer | row read: mean of heads | best head | row predicted: mean of heads | best head |",
        "|---|---|---|---|---|",
    ]
    for layer in range(len(means[RowToken.READ.value])):
        cells = [
            f"{100 * value:.1f}"
            for row in RowToken
            for value in (means[row.value][layer], min(heads[row.value][layer]))
        ]
        lines.append(f"| {layer + 1} | {' | '.join(cells)} |")
    return "\n".join(
        [
            *lines,
            "",
            f"Heads chosen by agreement, without links by hand, rows and columns put together "
            f"({TOGETHER}): {100 * found['chosen']:.1f}; the diagonal: {100 * found['diagonal']:.1f}.",
        ]
    )

"""Which heads to align by, found without links by hand: those on which both directions agree.

The model of one direction links each target word to a source word, the model of the other each source word to a target
word. What both say is rarely wrong by chance, so that heads are taken, one by one, as long as the two agree more with
them. Without a model of the other direction the same maps are read along their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.alignment.words import Pieces, between_words
from attention_atlas.model.analysis.survey.batch import maps_and_lengths, run
from attention_atlas.model.trace.alignment.links import Links
from attention_atlas.model.trace.alignment.voters import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator

MOST = 8  # heads a side
BATCH = 16  # sentences a pass


@dataclass(frozen=True)
class Chosen:
    """Voters of the direction itself, and of the other one (the same maps read along columns, where there is no other
    model); agreement: 2 |A and B| / (|A| + |B|) of their links on the sentences that they were chosen on."""

    forward: tuple[Voter, ...]
    backward: tuple[Voter, ...]
    agreement: float


def voters(layers: int, heads: int) -> list[Voter]:
    """Every head, read in every way."""
    return [
        Voter(layer, head, row, by_length)
        for row in RowToken
        for by_length in (False, True)
        for layer in range(layers)
        for head in range(heads)
    ]


def score_maps(translator: Translator, sentences: Sequence[Pieces]) -> list[dict[tuple[RowToken, bool], np.ndarray]]:
    """By sentence, by row and by_length: float64 [layers, heads, target word, source word + 1]."""
    found = []
    for start in range(0, len(sentences), BATCH):
        part = sentences[start : start + BATCH]
        passed = run(translator, [s.source_ids for s in part], [s.target_ids for s in part], slopes=False)
        weights, lengths = maps_and_lengths(translator.model, passed.output, AttentionKind.CROSS)
        for index, sentence in enumerate(part):
            queries, keys = passed.axes(AttentionKind.CROSS, index)
            own = weights[index, ..., :queries, :keys]
            scaled = own * lengths[index, ..., None, :keys]
            found.append(
                {
                    (row, by_length): between_words(maps, sentence, row)
                    for row in RowToken
                    for by_length, maps in ((False, own), (True, scaled))
                }
            )
    return found


def summed(maps: dict[tuple[RowToken, bool], np.ndarray], chosen: Sequence[Voter]) -> np.ndarray:
    """The chosen heads' scores together, each row of each first made to sum to 1: [target word, source word]. A word
    that symbols got more of than any word has its scores all the same."""
    total = 0.0
    for voter in chosen:
        one = maps[voter.row, voter.by_length][voter.layer, voter.head, :, :-1]
        total = total + one / np.maximum(one.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
    return total


def averaged(maps: dict[tuple[RowToken, bool], np.ndarray], chosen: Sequence[Voter]) -> np.ndarray:
    """The same for the mean of the chosen heads: however many they are, two sides weigh alike."""
    return summed(maps, chosen) / len(chosen)


def best_of_rows(scores: np.ndarray) -> Links:
    """Each target word with its best source word; words without a piece have none."""
    return frozenset((int(row.argmax()), target) for target, row in enumerate(scores) if row.any())


def best_of_columns(scores: np.ndarray) -> Links:
    """Each source word with its best target word."""
    return frozenset((source, int(column.argmax())) for source, column in enumerate(scores.T) if column.any())


def agreement(first: Sequence[Links], second: Sequence[Links]) -> float:
    """2 |A and B| / (|A| + |B|) over all sentences."""
    total = sum(map(len, first)) + sum(map(len, second))
    return 2 * sum(len(a & b) for a, b in zip(first, second)) / total if total else 0.0


Maps = Sequence[dict[tuple[RowToken, bool], np.ndarray]]
Reader = Callable[[np.ndarray], Links]


def choose(forward: Maps, backward: Maps | None, *, among: Sequence[Voter], others: Sequence[Voter] = ()) -> Chosen:
    """From score_maps() of the same sentences in both directions. among, others: the voters of either. ValueError for
    no sentence."""
    if not forward:
        raise ValueError("there is no sentence to choose heads on")
    if backward is None:
        return _alone(forward, among)
    links = {
        side: [[read(summed(maps, [voter])) for maps in found] for voter in voters]
        for side, found, voters, read in (
            ("forward", forward, among, best_of_rows),
            ("backward", backward, others, _turned_rows),
        )
    }
    pairs = [(agreement(a, b), i, j) for i, a in enumerate(links["forward"]) for j, b in enumerate(links["backward"])]
    best, i, j = max(pairs, key=lambda pair: pair[0])
    mine, theirs = [among[i]], [others[j]]
    while len(mine) + len(theirs) < 2 * MOST:
        fixed = (
            [_turned_rows(summed(maps, theirs)) for maps in backward],
            [best_of_rows(summed(maps, mine)) for maps in forward],
        )
        tries = [
            *_tries(forward, mine, among, best_of_rows, fixed[0]),
            *((value, voter, False) for value, voter, _ in _tries(backward, theirs, others, _turned_rows, fixed[1])),
        ]
        value, voter, own = max(tries, key=lambda found: found[0])
        if value <= best:
            break
        best = value
        (mine if own else theirs).append(voter)
    return Chosen(tuple(mine), tuple(theirs), best)


def _turned_rows(scores: np.ndarray) -> Links:
    return frozenset((target, source) for source, target in best_of_rows(scores))


def _tries(
    maps: Maps, chosen: list[Voter], among: Sequence[Voter], read: Reader, fixed: Sequence[Links]
) -> list[tuple[float, Voter, bool]]:
    sums = [summed(found, chosen) for found in maps]
    return (
        [
            (agreement([read(total + summed(found, [voter])) for total, found in zip(sums, maps)], fixed), voter, True)
            for voter in among
            if voter not in chosen
        ]
        if len(chosen) < MOST
        else []
    )


def _alone(maps: Maps, among: Sequence[Voter]) -> Chosen:
    def value(chosen: list[Voter]) -> float:
        sums = [summed(found, chosen) for found in maps]
        return agreement(list(map(best_of_rows, sums)), list(map(best_of_columns, sums)))

    best, mine = max(((value([voter]), [voter]) for voter in among), key=lambda found: found[0])
    while len(mine) < MOST:
        more, voter = max(
            ((value([*mine, voter]), voter) for voter in among if voter not in mine), key=lambda found: found[0]
        )
        if more <= best:
            break
        best, mine = more, [*mine, voter]
    return Chosen(tuple(mine), tuple(mine), best)

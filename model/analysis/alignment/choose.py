"""Choose the cross-attention heads that align words best, without hand-made links.

The model of one direction links each target word to a source word, and the model of the opposite direction links each
source word to a target word. Links that both find are rarely wrong by chance, so heads are added greedily as long as
the agreement of the two sides rises. Without a model of the opposite direction, rows and columns of the same maps take
the two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.survey.batch import maps_and_lengths, run
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.trace.alignment import Links, RowToken, Voter, pool_words
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import normalize_rows
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.translator import Translator

MAX_HEADS = 8  # on each side
BATCH = 16  # sentences in one pass

SentenceMaps = dict[tuple[RowToken, bool], np.ndarray]  # (row, by_length) -> [layers, heads, target word, source word]
Linker = Callable[[np.ndarray], Links]


@dataclass(frozen=True, eq=False)
class WordPieces:
    """The token ids of a sentence pair, and the positions of each word's tokens; a word may have no token.

    source_ids  as the encoder reads them
    target_ids  y1 .. yT `</s>`
    """

    source_ids: tuple[int, ...]
    sources: Groups
    target_ids: tuple[int, ...]
    targets: Groups


def encode_words(translator: Translator, direction: str, source: Sequence[str], target: Sequence[str]) -> WordPieces:
    """Encode a sentence pair that is split into words.

    Encoding word by word gives the same tokens as encoding the sentence, because no piece crosses a space. Tokens
    beyond the model's maximum length are cut off, and their words remain without links. Raises ValueError for a
    sentence without words.
    """
    if not source or not target:
        raise ValueError("a sentence without words has no links")
    tokenizer, (from_code, to_code) = translator.tokenizer, parse_direction(direction)
    # Symbols before and after the text, found by comparing an empty text with one letter.
    frame, letter = (tokenizer.encode_source(text, to_code, from_code) for text in ("", "a"))
    before = next((i for i, (a, b) in enumerate(zip(frame, letter)) if a != b), len(frame))
    begin, end, max_length = frame[:before], frame[before:], translator.config.max_length

    def join(words: list[list[int]], begin: Sequence[int], end: Sequence[int], limit: int) -> tuple[tuple, Groups]:
        """Return the ids of words between symbols, at most `limit` ids, and the positions of each word."""
        ids, groups = list(begin), []
        for word in words:
            word = word[: max(0, limit - len(ids) - len(end))]
            groups.append(tuple(range(len(ids), len(ids) + len(word))))
            ids += word
        return (*ids, *end), tuple(groups)

    encoded = [tokenizer.encode_source(word, to_code, from_code) for word in source]
    source_words = [ids[before : len(ids) - len(end)] for ids in encoded]
    target_words, prefix = [tokenizer.encode(word) for word in target], translator.forced_prefix(direction)
    return WordPieces(
        *join(source_words, begin, end, max_length),
        *join(target_words, prefix, [tokenizer.end_id], max_length - 1),
    )


@dataclass(frozen=True)
class AligningHeads:
    """The voters of both sides, and the agreement of their links on the sentences they were chosen on.

    forward, backward  voters of the direction itself and of the opposite one; the same voters, read along columns,
                       if there is no model of the opposite direction
    agreement          2 |A and B| / (|A| + |B|) of their links A and B
    """

    forward: tuple[Voter, ...]
    backward: tuple[Voter, ...]
    agreement: float


def all_voters(layers: int, heads: int) -> list[Voter]:
    """List every head with both row conventions, by weight and by the length of weight times value."""
    return [
        Voter(layer, head, row, by_length)
        for row in RowToken
        for by_length in (False, True)
        for layer in range(layers)
        for head in range(heads)
    ]


def score_maps(translator: Translator, sentences: Sequence[WordPieces]) -> list[SentenceMaps]:
    """Return each sentence's maps between words, float64."""
    scores = []
    for batch in batched(sentences, BATCH):
        batch_pass = run(translator, [s.source_ids for s in batch], [s.target_ids for s in batch], slopes=False)
        weights, lengths = maps_and_lengths(translator.model, batch_pass.output, AttentionKind.CROSS)
        for index, sentence in enumerate(batch):
            queries, keys = batch_pass.axes(AttentionKind.CROSS, index)
            plain = weights[index, ..., :queries, :keys]
            scaled = plain * lengths[index, ..., None, :keys]
            scores.append(
                {
                    (row, by_length): pool_words(maps, sentence.sources, sentence.targets, row)
                    for row in RowToken
                    for by_length, maps in ((False, plain), (True, scaled))
                }
            )
    return scores


def sum_heads(maps: SentenceMaps, heads: Sequence[Voter]) -> np.ndarray:
    """Sum the scores of heads, each row normalised to 1: [target word, source word].

    So a word that mostly attends to symbols, which the maps lack, counts as much as any other.
    """
    return sum(normalize_rows(maps[voter.row, voter.by_length][voter.layer, voter.head]) for voter in heads)


def average_heads(maps: SentenceMaps, heads: Sequence[Voter]) -> np.ndarray:
    """Average the scores as in sum_heads(), so that sides with different numbers of heads weigh the same."""
    return sum_heads(maps, heads) / len(heads)


def link_by_rows(scores: np.ndarray) -> Links:
    """Link each target word with its best source word; words without a token get no link."""
    return frozenset((int(row.argmax()), target) for target, row in enumerate(scores) if row.any())


def link_by_columns(scores: np.ndarray) -> Links:
    """Link each source word with its best target word."""
    return frozenset((source, int(column.argmax())) for source, column in enumerate(scores.T) if column.any())


def measure_agreement(first: Sequence[Links], second: Sequence[Links]) -> float:
    """Return 2 |A and B| / (|A| + |B|) over all sentences."""
    total = sum(map(len, first)) + sum(map(len, second))
    return 2 * sum(len(a & b) for a, b in zip(first, second)) / total if total else 0.0


def choose_heads(
    forward: Sequence[SentenceMaps],
    backward: Sequence[SentenceMaps] | None,
    *,
    among: Sequence[Voter],
    backward_among: Sequence[Voter] = (),
) -> AligningHeads:
    """Choose heads greedily by agreement.

    forward, backward: score_maps() of the same sentences in both directions; backward is None if there is no model of
    the opposite direction. among, backward_among: the candidates of each side. Raises ValueError without sentences.
    """
    if not forward:
        raise ValueError("there is no sentence to choose heads on")
    if backward is None:
        return _choose_by_rows_and_columns(forward, among)
    sides = ((forward, among, link_by_rows), (backward, backward_among, _link_swapped))
    forward_links, backward_links = (
        [[linker(sum_heads(maps, [voter])) for maps in side] for voter in voters] for side, voters, linker in sides
    )
    pairs = [(measure_agreement(a, b), i, j) for i, a in enumerate(forward_links) for j, b in enumerate(backward_links)]
    best, i, j = max(pairs, key=lambda pair: pair[0])
    heads = [among[i]], [backward_among[j]]  # of both sides
    while sum(map(len, heads)) < 2 * MAX_HEADS:
        links = [[linker(sum_heads(maps, own)) for maps in side] for (side, _, linker), own in zip(sides, heads)]
        trials = [
            (value, voter, own)
            for (side, voters, linker), own, fixed in zip(sides, heads, reversed(links))
            for value, voter in _try_more(side, own, voters, linker, fixed)
        ]
        value, voter, own = max(trials, key=lambda trial: trial[0])
        if value <= best:
            break
        best = value
        own.append(voter)
    return AligningHeads(tuple(heads[0]), tuple(heads[1]), best)


def _link_swapped(scores: np.ndarray) -> Links:
    return frozenset((target, source) for source, target in link_by_rows(scores))


def _try_more(
    maps: Sequence[SentenceMaps],
    heads: list[Voter],
    among: Sequence[Voter],
    linker: Linker,
    fixed: Sequence[Links],
) -> list[tuple[float, Voter]]:
    """Return the agreement with the other side's fixed links after adding each further candidate."""
    if len(heads) >= MAX_HEADS:
        return []
    sums = [sum_heads(sentence, heads) for sentence in maps]
    return [
        (measure_agreement([linker(a + sum_heads(b, [voter])) for a, b in zip(sums, maps)], fixed), voter)
        for voter in among
        if voter not in heads
    ]


def _choose_by_rows_and_columns(maps: Sequence[SentenceMaps], among: Sequence[Voter]) -> AligningHeads:
    def evaluate(heads: list[Voter]) -> float:
        sums = [sum_heads(sentence, heads) for sentence in maps]
        return measure_agreement(list(map(link_by_rows, sums)), list(map(link_by_columns, sums)))

    heads, best = [], -1.0
    while len(heads) < MAX_HEADS:
        value, voter = max(
            ((evaluate([*heads, voter]), voter) for voter in among if voter not in heads), key=lambda trial: trial[0]
        )
        if value <= best:
            break
        best, heads = value, [*heads, voter]
    return AligningHeads(tuple(heads), tuple(heads), best)

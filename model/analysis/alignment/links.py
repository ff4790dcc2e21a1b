"""Link words by the cross-attention heads that align them best, without hand-made links.

The model of one direction links each target word to a source word, and the model of the opposite direction links each
source word to a target word. Links that both find are rarely wrong by chance, so choose_heads() adds heads greedily as
long as the agreement of the two sides rises. Without a model of the opposite direction, rows and columns of the same
maps take the two sides.

links() uses the heads; glosses() turns the links into words for the page; word_maps() gives the maps between words from
which the page reads links of single heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.analysis.survey.batch import maps_and_lengths, run
from attention_atlas.model.analysis.why.contributions import alti_contributions
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.alignment import Links, RowToken, Voter, content_words, pool_words, to_word_maps
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import normalize_rows
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import spell_word
from attention_atlas.model.translator import Translator

CROSS = AttentionKind.CROSS
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


def all_voters(model: Transformer) -> list[Voter]:
    """List every head of a model with both row conventions, by weight and by the length of weight times value."""
    return [
        Voter(layer, head, row, by_length)
        for row in RowToken
        for by_length in (False, True)
        for layer in range(model.num_layers[CROSS])
        for head in range(model.num_heads[CROSS])
    ]


def score_maps(translator: Translator, sentences: Sequence[WordPieces]) -> list[SentenceMaps]:
    """Return each sentence's maps between words, float64."""
    scores = []
    for batch in batched(sentences, BATCH):
        batch_pass = run(translator, [s.source_ids for s in batch], [s.target_ids for s in batch], slopes=False)
        weights, lengths = maps_and_lengths(translator.model, batch_pass.output, CROSS)
        for index, sentence in enumerate(batch):
            queries, keys = batch_pass.axes(CROSS, index)
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
        by_side = [[linker(sum_heads(maps, own)) for maps in side] for (side, _, linker), own in zip(sides, heads)]
        trials = [
            (value, voter, own)
            for (side, voters, linker), own, fixed in zip(sides, heads, reversed(by_side))
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


def find_linking_heads(translator: Translator, direction: str, texts: Sequence[str]) -> tuple[Voter, ...]:
    """Return the heads whose rows and columns agree most on these texts with the model's own translations; none if
    no text or translation has words."""
    return choose_linking_heads(translator, linking_maps(translator, direction, texts))


def linking_maps(translator: Translator, direction: str, texts: Sequence[str]) -> list[SentenceMaps]:
    """Translate texts and return the maps from which heads are chosen, one for each text that has words."""
    translations = translator.translate_batch(texts, direction)
    pairs = [(a.split(), b.split()) for a, b in zip(texts, translations) if a.split() and b.split()]
    return score_maps(translator, [encode_words(translator, direction, *pair) for pair in pairs])


def choose_linking_heads(translator: Translator, maps: Sequence[SentenceMaps]) -> tuple[Voter, ...]:
    """Choose heads from linking_maps(); none if there are no maps."""
    if not maps:
        return ()
    return choose_heads(maps, None, among=[v for v in all_voters(translator.model) if not v.by_length]).forward


def links(source: Sequence[str], target: Sequence[str], weights: np.ndarray, heads: Sequence[Voter]) -> np.ndarray:
    """Return the links on which rows and columns of the heads agree, bool [target token, source token].

    target: y1 .. yT; weights: cross-attention [layers, heads, query, key]. Symbols have no links.
    """
    target_words, source_words = content_words(target), content_words(source)
    linked = np.zeros((len(target), len(source)), bool)
    if not target_words or not source_words:
        return linked
    maps = {(row, False): to_word_maps(weights, source, target, row) for row in RowToken}
    scores = sum_heads(maps, heads)
    for source_word, target_word in link_by_rows(scores) & link_by_columns(scores):
        linked[np.ix_(target_words[target_word], source_words[source_word])] = True
    return linked


def glosses(trace: TranslationTrace, heads: Sequence[Voter] = ()) -> tuple[list[str], list[str]]:
    """Return the linked words of each source token and each target token y1 .., "" where a token has no link.

    heads: those chosen by a survey. Without them, all heads of the cross-attention vote, each row standing for the
    token it reads, or the alignment of a recurrent network, whose rows stand for the token they write.
    """
    kind = CROSS if CROSS in trace.kinds else AttentionKind.ALIGNMENT
    weights, source, target = trace.maps(kind).weights, trace.source_tokens, trace.target_tokens
    row = RowToken.READ if kind is CROSS else RowToken.PREDICTED
    voters = heads or [Voter(layer, head, row, False) for layer, head in np.ndindex(*weights.shape[:2])]
    linked = links(source, target, weights, voters)
    return _linked_words(target, linked.T), _linked_words(source, linked)


def _linked_words(tokens: Sequence[str], linked: np.ndarray) -> list[str]:
    """Join the words of `tokens` that each row of linked, bool [row, token], is linked to."""
    groups = content_words(tokens)
    texts = [spell_word(tokens, group) for group in groups]
    return [" ".join(text for text, group in zip(texts, groups) if row[group[0]]) for row in linked]


def word_maps(translator: Translator, trace: TranslationTrace) -> tuple[SentenceMaps, dict[RowToken, np.ndarray]]:
    """Compute the cross-attention between words in one recorded pass. The trace must have words on both sides.

    Return the maps of all heads, where those by length are shares of a row (Kobayashi et al. 2020), and the
    contributions, row convention -> float64 [layers, target word, source word]: ALTI's shares of the output of each
    layer's cross-attention block (Ferrando et al. 2022). A row of these sums to less than 1 because the residual
    connection has a share.
    """
    output = record_pass(translator, trace)
    weights = trace.maps(CROSS).weights.astype(np.float64)
    _, lengths = maps_and_lengths(translator.model, output, CROSS)
    scaled = normalize_rows(weights * lengths[0, :, :, None].astype(np.float64))
    shares = alti_contributions(translator.model, output, CROSS)
    tokens = trace.source_tokens, trace.target_tokens
    maps = {
        (row, by_length): to_word_maps(values, *tokens, row)
        for row in RowToken
        for by_length, values in ((False, weights), (True, scaled))
    }
    return maps, {row: to_word_maps(shares, *tokens, row) for row in RowToken}

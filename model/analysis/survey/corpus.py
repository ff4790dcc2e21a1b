"""The sentences of a survey, read one window at a time and as often as needed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attention_atlas.model.analysis.survey.batch import Item
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import TokenKind, is_symbol
from attention_atlas.model.translator import Translator

WINDOW = 128  # sentences that are sorted by length, measured and saved together
FREQUENT = 500  # the most frequent source tokens, which never count as rare (Voita et al. 2019)
SEQUENCES, PERIOD = 64, 12  # the number of random sequences for induction, and their length before the repetition


@dataclass(frozen=True, eq=False)
class Corpus:
    """A corpus of sentences.

    read  returns an iterator over (source, target), the same every time; the target is empty if there is no reference
    own   whether line i is line i of the project's own sentences, which may be shown as examples
    """

    name: str
    read: Callable[[], Iterator[tuple[str, str]]]
    own: bool = False


@dataclass(frozen=True, eq=False)
class CorpusStats:
    """The numbers of pairs and of skipped ones, whether all have references, the frequency of each source id, and a
    fingerprint of the text."""

    pairs: int
    skipped: int
    references: bool
    counts: Counter
    fingerprint: str

    @cached_property
    def frequent(self) -> frozenset[int]:
        """The FREQUENT most frequent source ids."""
        return frozenset(i for i, _ in sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FREQUENT])


def scan_corpus(translator: Translator, direction: str, corpus: Corpus) -> CorpusStats:
    """Read a corpus once. Raises ValueError if the model can encode none of its sentences."""
    counts, digest, pairs, skipped, references = Counter(), hashlib.sha256(), 0, 0, True
    for source, target in corpus.read():
        digest.update(f"{source}\n{target}\n".encode())
        pairs += 1
        ids = encode_or_empty(translator, direction, source)
        skipped += not ids
        references &= bool(target)
        counts.update(ids)
    if pairs == skipped:
        raise ValueError(f"there is no sentence in {corpus.name} that the model can read")
    return CorpusStats(pairs, skipped, references, counts, digest.hexdigest()[:16])


def encode_or_empty(translator: Translator, direction: str, text: str) -> tuple[int, ...]:
    """Return the source ids; none for a text that is empty or too long."""
    try:
        return tuple(translator.encode(text, direction))
    except Refusal:
        return ()


def encode_target(translator: Translator, text: str) -> tuple[int, ...]:
    """Return y1 .. yT `</s>` of a reference; none for a text that is empty or too long."""
    ids = translator.tokenizer.encode(text) if text.strip() else []
    return (*ids, translator.tokenizer.end_id) if ids and len(ids) < translator.config.max_length else ()


def read_windows(translator: Translator, direction: str, corpus: Corpus, size: int) -> Iterator[list[Item]]:
    """Yield the windows of a corpus in order, without the sentences that cannot be encoded."""
    window, prefix = [], translator.forced_prefix(direction)
    for number, (source, target) in enumerate(corpus.read()):
        if number and number % size == 0:
            yield window
            window = []
        if ids := encode_or_empty(translator, direction, source):
            reference = encode_target(translator, target)
            window.append(
                Item(number, source, ids, (*prefix, *reference) if reference else (), number if corpus.own else None)
            )
    yield window


def read_examples(
    translator: Translator, direction: str, lines: Sequence[str], first: int, size: int
) -> Iterator[list[Item]]:
    """Yield windows of sentences that only serve as examples, numbered from `first`."""
    for start in range(0, len(lines), size):
        numbers = range(start, min(start + size, len(lines)))
        encoded = [(i, encode_or_empty(translator, direction, lines[i])) for i in numbers]
        yield [Item(first + i, lines[i], ids, (), i, counts=False) for i, ids in encoded if ids]


@dataclass(frozen=True, eq=False)
class Repeated:
    """A random sequence that is repeated once, which induction heads recognise.

    start   the positions of its first token in the encoder and in the decoder
    period  its length
    """

    number: int
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    start: tuple[int, int]
    period: int


def make_repetitions(translator: Translator, direction: str, stats: CorpusStats, seed: int) -> list[Repeated]:
    """Draw sequences of source ids of the corpus and of target text pieces, each from the seed (seed, number)."""
    tokenizer = translator.tokenizer
    frame = tokenizer.encode_source("", *reversed(parse_direction(direction)))
    sources = np.array(sorted(set(stats.counts) - set(frame)))
    targets = np.array(
        [i for i, piece in enumerate(tokenizer.pieces) if piece.kind is TokenKind.TEXT and not is_symbol(piece)]
    )
    period = min(PERIOD, len(sources), len(targets), (translator.config.max_length - len(frame) - 4) // 2)
    if period < 2:
        return []
    start = len(frame) - 1 if frame and frame[-1] == tokenizer.end_id else len(frame)
    prefix, sequences = translator.forced_prefix(direction), []
    for number in range(SEQUENCES):
        random = np.random.default_rng((seed, 1, number))
        source, target = (tuple(random.choice(ids, period, replace=False).tolist()) for ids in (sources, targets))
        sequences.append(
            Repeated(
                stats.pairs + number,
                (*frame[:start], *source, *source, *frame[start:]),
                (*prefix, *target, *target, tokenizer.end_id),
                (start, 1 + len(prefix)),
                period,
            )
        )
    return sequences

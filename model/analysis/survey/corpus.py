"""What a survey reads, sentence by sentence, as often as it needs to and never all at once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.survey.batch import Item
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import TokenKind, is_symbol
from attention_atlas.model.translator import Translator

WINDOW = 128  # sentences between two savings; one bootstrap's weights, one sorting by length
FREQUENT = 500  # source tokens that are too frequent to be called rare (Voita et al. 2019)
SEQUENCES, PERIOD = 64, 12  # random sequences for induction, and how long they are before they are repeated


@dataclass(frozen=True, eq=False)
class Corpus:
    """name: of what. read: yields (source, target), the target empty where there is none, the same ones every time.
    own: line i is line i of the project's own sentences, and may be shown as an example."""

    name: str
    read: Callable[[], Iterator[tuple[str, str]]]
    own: bool = False


@dataclass(frozen=True, eq=False)
class Seen:
    """What one reading told: how many pairs and of them skipped, how often each source id occurs, and a fingerprint."""

    pairs: int
    skipped: int
    references: bool
    counts: Counter
    fingerprint: str

    @property
    def frequent(self) -> frozenset[int]:
        """The most frequent source ids."""
        return frozenset(i for i, _ in sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FREQUENT])


def look(translator: Translator, direction: str, corpus: Corpus) -> Seen:
    """Read a corpus once. ValueError if there is no sentence in it that the model can read."""
    counts, digest, pairs, skipped, references = Counter(), hashlib.sha256(), 0, 0, True
    for source, target in corpus.read():
        digest.update(f"{source}\n{target}\n".encode())
        pairs += 1
        ids = encoded(translator, direction, source)
        skipped += not ids
        references &= bool(target)
        counts.update(ids)
    if pairs == skipped:
        raise ValueError(f"there is no sentence in {corpus.name} that the model can read")
    return Seen(pairs, skipped, references, counts, digest.hexdigest()[:16])


def encoded(translator: Translator, direction: str, text: str) -> tuple[int, ...]:
    """Source ids; none for what is empty or too long."""
    try:
        return tuple(translator.encode(text, direction))
    except Refusal:
        return ()


def target_ids(translator: Translator, text: str) -> tuple[int, ...]:
    """y1 .. yT `</s>` of a reference; none for what is empty or too long."""
    ids = translator.tokenizer.encode(text) if text.strip() else []
    return (*ids, translator.tokenizer.end_id) if ids and len(ids) < translator.config.max_length else ()


def items(translator: Translator, direction: str, corpus: Corpus, size: int) -> Iterator[list[Item]]:
    """Windows of a corpus, in order; sentences that cannot be read are left out of theirs."""
    window, prefix = [], translator.forced_prefix(direction)
    for number, (source, target) in enumerate(corpus.read()):
        if number and number % size == 0:
            yield window
            window = []
        if ids := encoded(translator, direction, source):
            given = target_ids(translator, target)
            window.append(Item(number, source, ids, (*prefix, *given) if given else (), number if corpus.own else None))
    yield window


def examples(
    translator: Translator, direction: str, lines: Sequence[str], first: int, size: int
) -> Iterator[list[Item]]:
    """Windows of sentences that are examples alone, numbered from `first` on."""
    for start in range(0, len(lines), size):
        part = range(start, min(start + size, len(lines)))
        found = [(at, encoded(translator, direction, lines[at])) for at in part]
        yield [Item(first + at, lines[at], ids, (), at, counts=False) for at, ids in found if ids]


@dataclass(frozen=True, eq=False)
class Repeated:
    """A random sequence, repeated: what a head that finds repetitions is shown. first: where it begins in either
    side."""

    number: int
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    first: tuple[int, int]
    period: int


def repetitions(translator: Translator, direction: str, seen: Seen, seed: int) -> list[Repeated]:
    """Sequences of the corpus's own source ids and of the target's pieces of text, drawn by (seed, number)."""
    tokenizer = translator.tokenizer
    frame = translator.tokenizer.encode_source("", *reversed(parse_direction(direction)))
    framing = set(frame)
    sources = np.array(sorted(set(seen.counts) - framing))
    targets = np.array(
        [i for i, piece in enumerate(tokenizer.pieces) if piece.kind is TokenKind.TEXT and not is_symbol(piece)]
    )
    period = min(PERIOD, len(sources), len(targets), (translator.config.max_length - len(frame) - 4) // 2)
    if period < 2:
        return []
    start = len(frame) - 1 if frame and frame[-1] == tokenizer.end_id else len(frame)
    prefix, found = translator.forced_prefix(direction), []
    for number in range(SEQUENCES):
        random = np.random.default_rng((seed, 1, number))
        source, target = (tuple(random.choice(ids, period, replace=False).tolist()) for ids in (sources, targets))
        found.append(
            Repeated(
                seen.pairs + number,
                (*frame[:start], *source, *source, *frame[start:]),
                (*prefix, *target, *target, tokenizer.end_id),
                (start, 1 + len(prefix)),
                period,
            )
        )
    return found

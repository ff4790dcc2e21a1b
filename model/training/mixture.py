"""What an epoch sees: each corpus as often as asked, names and numbers in it drawn anew, and filled frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.text.composed.lexicon import Lexicon
from attention_atlas.model.text.composed.sentences import DIRECTIONS as COMPOSED
from attention_atlas.model.text.composed.sentences import Composer
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.text.slots.fillers import LANGUAGES, Fillers
from attention_atlas.model.text.slots.frames import fill, read_frames
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.batches import Encoded, Examples, encode
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.sources.noise import hurried
from attention_atlas.model.training.sources.readers import Corpus, normalised
from attention_atlas.model.training.sources.substitution import Slot, Substituter


@dataclass(frozen=True, eq=False)
class Part:
    """One corpus in one direction. pairs[i] is example number first + i; slots: what can be replaced, by row."""

    direction: str
    pairs: list[tuple[str, str]]
    first: int
    slots: dict[int, tuple[Slot, ...]]
    times: float


class Mixture:
    """Draws the examples of an epoch: a function of the config's seed and the epoch's number alone.

    A corpus that is seen 2.4 times an epoch is there twice, and 0.4 of it, drawn by chance, once more. In a pair with
    names, towns, numbers, dates or times on both sides they are replaced with the chance `config.substitution`; and
    `config.frame_pairs` filled frames a direction are added, and `config.composed_pairs` composed sentences. Of the
    other sources a share of `config.noise` is typed in a hurry. Nothing that is made here equals a side of a held-out
    pair.
    """

    def __init__(
        self,
        corpora: Iterable[Corpus],
        config: TrainConfig,
        tokenizer: TextTokenizer,
        *,
        max_length: int,
        held_out: Iterable[Corpus],
    ) -> None:
        self.config, self.tokenizer = config, tokenizer
        self.max_length = min(config.max_pair_length, max_length)
        self.fillers = Fillers()
        self.frames = read_frames() if config.frame_pairs else ()
        self.lexicon = Lexicon() if config.composed_pairs else None
        self.held_out = frozenset(normalised(side) for corpus in held_out for pair in corpus.pairs for side in pair)
        self.substituters: dict[str, Substituter] = {}
        self.parts: list[Part] = []
        corpora, encoded = list(corpora), []
        for direction in config.directions:
            for corpus in corpora:
                if dict(config.repeats).get(corpus.name, 1):
                    part, found = self._part(corpus, direction, len(encoded))
                    encoded += found
                    self.parts += [part] if found else []
        self.examples = Examples.of(encoded)

    def __len__(self) -> int:
        """About as many pairs as an epoch has."""
        real = sum(part.times * len(part.pairs) for part in self.parts)
        made = sum(
            self.config.frame_pairs + self.config.composed_pairs * (direction in COMPOSED)
            for direction in self.config.directions
        )
        return round(real) + made

    def epoch(self, number: int) -> Examples:
        """The examples of an epoch, from 0."""
        random = np.random.default_rng((self.config.seed, number, len(self.parts)))
        rows, made = [], []
        for part in self.parts:
            for row in _rows(len(part.pairs), part.times, random).tolist():
                if found := self._substituted(part, row, random) or self._hurried(part, row, random):
                    rows.append(len(self.examples) + len(made))
                    made.append(found)
                else:
                    rows.append(part.first + row)
        for direction in self.config.directions:
            for pair in self._made(direction, random):
                if found := self._allowed(pair, direction):
                    rows.append(len(self.examples) + len(made))
                    made.append(found)
        return (self.examples + Examples.of(made)).take(np.array(rows, dtype=np.int64))

    def _made(self, direction: str, random: np.random.Generator) -> Iterator[tuple[str, str]]:
        """Filled frames, then composed sentences."""
        for _ in range(self.config.frame_pairs):
            frame = self.frames[random.integers(len(self.frames))]
            yield fill(frame, parse_direction(direction), self.fillers, random)
        if self.lexicon and direction in COMPOSED:
            composer = Composer(self.fillers, random, self.lexicon)
            for _ in range(self.config.composed_pairs):
                yield composer.pair(direction)

    def _part(self, corpus: Corpus, direction: str, first: int) -> tuple[Part, list[Encoded]]:
        pairs, encoded = [], []
        for pair in corpus.oriented(direction):
            if found := self._encoded(pair, direction):
                pairs.append(pair)
                encoded.append(found)
        slots = {}
        # What a model wrote, and languages of which we have no lists, stay as they are.
        if self.config.substitution and not corpus.one_way and set(parse_direction(direction)) <= set(LANGUAGES):
            substituter = self._substituter(direction)
            slots = {row: found for row, pair in enumerate(pairs) if (found := substituter.slots(pair))}
        return Part(direction, pairs, first, slots, dict(self.config.repeats).get(corpus.name, 1)), encoded

    def _substituter(self, direction: str) -> Substituter:
        if direction not in self.substituters:
            self.substituters[direction] = Substituter(self.fillers, parse_direction(direction))
        return self.substituters[direction]

    def _substituted(self, part: Part, row: int, random: np.random.Generator) -> Encoded | None:
        """The pair of a row with other names, encoded; None: it stays as it is."""
        slots = part.slots.get(row)
        if slots is None or random.random() >= self.config.substitution:
            return None
        return self._allowed(self._substituter(part.direction).replace(part.pairs[row], slots, random), part.direction)

    def _hurried(self, part: Part, row: int, random: np.random.Generator) -> Encoded | None:
        """The pair of a row with its source as somebody in a hurry types it, encoded; None: it stays as it is."""
        if not self.config.noise or random.random() >= self.config.noise:
            return None
        source, target = part.pairs[row]
        return self._allowed((hurried(source, random), target), part.direction)

    def _allowed(self, pair: tuple[str, str], direction: str) -> Encoded | None:
        return None if any(normalised(side) in self.held_out for side in pair) else self._encoded(pair, direction)

    def _encoded(self, pair: tuple[str, str], direction: str) -> Encoded | None:
        return encode(pair, self.tokenizer, parse_direction(direction), max_length=self.max_length)


def _rows(count: int, times: float, random: np.random.Generator) -> np.ndarray:
    """Each row int(times) times, and of the rest of `times` as large a share of the rows, by chance."""
    whole = int(times)
    more = random.permutation(count)[: round((times - whole) * count)]
    return np.concatenate([np.tile(np.arange(count), whole), more]).astype(np.int64)

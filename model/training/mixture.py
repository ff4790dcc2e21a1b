"""What an epoch sees: each corpus as often as asked, names and numbers in it drawn anew, and filled frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from model.text.composed.lexicon import Lexicon
from model.text.composed.sentences import DIRECTIONS as COMPOSED
from model.text.composed.sentences import Composer
from model.text.interface import TextTokenizer
from model.text.slots.fillers import LANGUAGES, Fillers
from model.text.slots.frames import fill, read_frames
from model.trace.directions import parse_direction
from model.training.batches import Examples
from model.training.config import TrainConfig
from model.training.sources.noise import hurried
from model.training.sources.readers import Corpus, normalised
from model.training.sources.substitution import Slot, Substituter


@dataclass(frozen=True, eq=False)
class Part:
    """One corpus in one direction. examples[i] is pairs[i] encoded; slots: what can be replaced, by row."""

    direction: str
    pairs: list[tuple[str, str]]
    examples: Examples
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
        corpora = list(corpora)
        self.parts = [
            part
            for direction in config.directions
            for corpus in corpora
            if dict(config.repeats).get(corpus.name, 1) and (part := self._part(corpus, direction)).pairs
        ]

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
        source, target = [], []
        for part in self.parts:
            for row in _rows(len(part.pairs), part.times, random):
                made = self._substituted(part, row, random) or self._hurried(part, row, random)
                source.append(made.source[0] if made else part.examples.source[row])
                target.append(made.target[0] if made else part.examples.target[row])
        for direction in self.config.directions:
            for pair in self._made(direction, random):
                if made := self._allowed(pair, direction):
                    source += made.source
                    target += made.target
        return Examples(source, target)

    def _made(self, direction: str, random: np.random.Generator) -> Iterator[tuple[str, str]]:
        """Filled frames, then composed sentences."""
        for _ in range(self.config.frame_pairs):
            frame = self.frames[random.integers(len(self.frames))]
            yield fill(frame, parse_direction(direction), self.fillers, random)
        if self.lexicon and direction in COMPOSED:
            composer = Composer(self.fillers, random, self.lexicon)
            for _ in range(self.config.composed_pairs):
                yield composer.pair(direction)

    def _part(self, corpus: Corpus, direction: str) -> Part:
        pairs, source_ids, target_ids = [], [], []
        for pair in corpus.oriented(direction):
            encoded = self._encoded(pair, direction)
            if encoded.source:
                pairs.append(pair)
                source_ids += encoded.source
                target_ids += encoded.target
        slots = {}
        # What a model wrote, and languages of which we have no lists, stay as they are.
        if self.config.substitution and not corpus.one_way and set(parse_direction(direction)) <= set(LANGUAGES):
            substituter = self._substituter(direction)
            slots = {row: found for row, pair in enumerate(pairs) if (found := substituter.slots(pair))}
        return Part(
            direction, pairs, Examples(source_ids, target_ids), slots, dict(self.config.repeats).get(corpus.name, 1)
        )

    def _substituter(self, direction: str) -> Substituter:
        if direction not in self.substituters:
            self.substituters[direction] = Substituter(self.fillers, parse_direction(direction))
        return self.substituters[direction]

    def _substituted(self, part: Part, row: int, random: np.random.Generator) -> Examples | None:
        """The pair of a row with other names, encoded; None: it stays as it is."""
        slots = part.slots.get(row)
        if slots is None or random.random() >= self.config.substitution:
            return None
        return self._allowed(self._substituter(part.direction).replace(part.pairs[row], slots, random), part.direction)

    def _hurried(self, part: Part, row: int, random: np.random.Generator) -> Examples | None:
        """The pair of a row with its source as somebody in a hurry types it, encoded; None: it stays as it is."""
        if not self.config.noise or random.random() >= self.config.noise:
            return None
        source, target = part.pairs[row]
        return self._allowed((hurried(source, random), target), part.direction)

    def _allowed(self, pair: tuple[str, str], direction: str) -> Examples | None:
        if any(normalised(side) in self.held_out for side in pair):
            return None
        encoded = self._encoded(pair, direction)
        return encoded if encoded.source else None

    def _encoded(self, pair: tuple[str, str], direction: str) -> Examples:
        source, target = parse_direction(direction)
        return Examples.encode([pair], self.tokenizer, target, max_length=self.max_length, source_language=source)


def _rows(count: int, times: float, random: np.random.Generator) -> np.ndarray:
    """Each row int(times) times, and of the rest of `times` as large a share of the rows, by chance."""
    whole = int(times)
    more = random.permutation(count)[: round((times - whole) * count)]
    return np.concatenate([np.tile(np.arange(count), whole), more]).astype(np.int64)

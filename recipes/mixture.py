"""The training mixture of the shipped checkpoints: corpora with replaced names and numbers, filled frames, composed
sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.config import check_whole_number
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training import source
from attention_atlas.model.training.batches import Encoded, Examples
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.source import Part, draw_rows
from attention_atlas.model.training.sources.readers import Corpus, comparison_key
from recipes.composed.lexicon import Lexicon
from recipes.composed.sentences import DIRECTIONS as COMPOSED
from recipes.composed.sentences import Composer
from recipes.noise import hurried
from recipes.slots.fillers import LANGUAGES, Fillers
from recipes.slots.frames import fill, read_frames
from recipes.substitution import Slot, Substituter


@dataclass(frozen=True)
class MixtureConfig(TrainConfig):
    """The settings of a training run and of its additional examples."""

    substitution: float = 0.0  # the chance that a pair's names, towns, numbers, dates and times are drawn anew
    frame_pairs: int = 0  # filled sentences of our own, a direction and epoch
    composed_pairs: int = 0  # sentences composed of our own lexicon, an epoch of each direction that it has
    noise: float = 0.0  # the chance that a source is read as somebody in a hurry would type it

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("frame_pairs", "composed_pairs"):
            check_whole_number(name, getattr(self, name), 0)
        for name in ("substitution", "noise"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a chance from 0 to 1, found {getattr(self, name)!r}")


class Mixture(source.Mixture):
    """Draws the examples of an epoch, determined by the seed of the config and the number of the epoch.

    Names, towns, numbers, dates and times that occur on both sides of a pair are replaced with probability
    `config.substitution`. `config.frame_pairs` filled frames per direction and `config.composed_pairs` composed
    sentences are added. A share `config.noise` of the other sources gets typing errors. No made example equals a side
    of a held-out pair."""

    def __init__(
        self,
        corpora: Iterable[Corpus],
        config: MixtureConfig,
        tokenizer: TextTokenizer,
        *,
        max_length: int,
        held_out: Iterable[Corpus],
    ) -> None:
        held_out = list(held_out)
        super().__init__(corpora, config, tokenizer, max_length=max_length, held_out=held_out)
        self.fillers = Fillers()
        self.frames = read_frames() if config.frame_pairs else ()
        self.lexicon = Lexicon() if config.composed_pairs else None
        self.held_out = frozenset(comparison_key(side) for corpus in held_out for pair in corpus.pairs for side in pair)
        self.substituters: dict[str, Substituter] = {}
        self.slots = [self._slots(part) for part in self.parts]

    def __len__(self) -> int:
        made = sum(
            self.config.frame_pairs + self.config.composed_pairs * (direction in COMPOSED)
            for direction in self.config.directions
        )
        return super().__len__() + made

    def epoch(self, number: int) -> Examples:
        random = self.random(number)
        rows, made = [], []
        for part, slots in zip(self.parts, self.slots):
            for row in draw_rows(part, random).tolist():
                if found := self._substituted(part, slots, row, random) or self._hurried(part, row, random):
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
        """Return filled frames, then composed sentences."""
        for _ in range(self.config.frame_pairs):
            frame = self.frames[random.integers(len(self.frames))]
            yield fill(frame, parse_direction(direction), self.fillers, random)
        if self.lexicon and direction in COMPOSED:
            composer = Composer(self.fillers, random, self.lexicon)
            for _ in range(self.config.composed_pairs):
                yield composer.pair(direction)

    def _slots(self, part: Part) -> dict[int, tuple[Slot, ...]]:
        """Return the replaceable slots by row; none for synthetic pairs and for languages without lists."""
        if not self.config.substitution or part.one_way or not set(parse_direction(part.direction)) <= set(LANGUAGES):
            return {}
        substituter = self._substituter(part.direction)
        return {row: found for row, pair in enumerate(part.pairs) if (found := substituter.slots(pair))}

    def _substituter(self, direction: str) -> Substituter:
        if direction not in self.substituters:
            self.substituters[direction] = Substituter(self.fillers, parse_direction(direction))
        return self.substituters[direction]

    def _substituted(
        self, part: Part, slots: dict[int, tuple[Slot, ...]], row: int, random: np.random.Generator
    ) -> Encoded | None:
        """Return the encoded pair of a row with other names, or None to keep the pair."""
        if row not in slots or random.random() >= self.config.substitution:
            return None
        pair = self._substituter(part.direction).replace(part.pairs[row], slots[row], random)
        return self._allowed(pair, part.direction)

    def _hurried(self, part: Part, row: int, random: np.random.Generator) -> Encoded | None:
        """Return the encoded pair of a row with typing errors in the source, or None to keep the pair."""
        if not self.config.noise or random.random() >= self.config.noise:
            return None
        source, target = part.pairs[row]
        return self._allowed((hurried(source, random), target), part.direction)

    def _allowed(self, pair: tuple[str, str], direction: str) -> Encoded | None:
        return (
            None if any(comparison_key(side) in self.held_out for side in pair) else self.encode_pair(pair, direction)
        )

"""The data source of a training run: its options, its settings, and the examples that each epoch draws from corpora."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

import numpy as np

from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.batches import Encoded, Examples, encode
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.corpora import add_options, find
from attention_atlas.model.training.sources.readers import Corpus, Splits


@dataclass(frozen=True, eq=False)
class Part:
    """A corpus in one direction, seen `times` times in an epoch. pairs[i] is example number first + i."""

    direction: str
    pairs: list[tuple[str, str]]
    first: int
    times: float
    one_way: bool


class Mixture:
    """Draws the examples of an epoch, determined by the seed of the config and the number of the epoch.

    A corpus that is seen 2.4 times in an epoch is included twice, and a random 40 % of it once more. held_out: the dev
    and test parts, for subclasses that make examples; the corpora themselves contain no leaks.
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
        self.parts: list[Part] = []
        corpora, encoded = list(corpora), []
        for direction in config.directions:
            for corpus in corpora:
                times = dict(config.repeats).get(corpus.name, 1)
                pairs = corpus.oriented(direction) if times else []
                short = [(pair, ids) for pair in pairs if (ids := self.encode_pair(pair, direction))]
                if short:
                    self.parts.append(Part(direction, [p for p, _ in short], len(encoded), times, corpus.one_way))
                    encoded += [ids for _, ids in short]
        self.examples = Examples.of(encoded)

    def __len__(self) -> int:
        """The approximate number of pairs in an epoch."""
        return round(sum(part.times * len(part.pairs) for part in self.parts))

    def epoch(self, number: int) -> Examples:
        """Return the examples of an epoch, counted from 0."""
        random = self.random(number)
        rows = [part.first + draw_rows(part, random) for part in self.parts]
        return self.examples.take(np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64))

    def random(self, number: int) -> np.random.Generator:
        """Return the random generator of an epoch."""
        return np.random.default_rng((self.config.seed, number, len(self.parts)))

    def encode_pair(self, pair: tuple[str, str], direction: str) -> Encoded | None:
        """Return a pair's token ids; None if a side is empty or too long."""
        return encode(pair, self.tokenizer, parse_direction(direction), max_length=self.max_length)


def draw_rows(part: Part, random: np.random.Generator) -> np.ndarray:
    """Return each row int(times) times, and a random share of the rows once more for the fraction of `times`."""
    count, whole = len(part.pairs), int(part.times)
    sample = random.permutation(count)[: round((part.times - whole) * count)]
    return np.concatenate([np.tile(np.arange(count), whole), sample]).astype(np.int64)


@dataclass(frozen=True)
class Source:
    """The data source of a training run; by default the corpora named by the options of `attention-atlas train`.

    `attention_atlas.model.train.main(argv, source)` takes another source.

    program      the command, as --help shows it
    config       the class of the settings; fields that it adds to TrainConfig become options, which --resume may change
    mixture      the class that draws the examples of an epoch
    add_options  adds the command-line options that name corpora
    find         returns the corpora for these options and directions, without leaks from held-out pairs
    """

    program: str = "attention-atlas train"
    config: type[TrainConfig] = TrainConfig
    mixture: type[Mixture] = Mixture
    add_options: Callable[[argparse.ArgumentParser], None] = add_options
    find: Callable[[argparse.Namespace, list[str]], list[Splits]] = find

    @property
    def added(self) -> tuple[str, ...]:
        """The names of the settings that config adds to TrainConfig."""
        return tuple(field.name for field in fields(self.config) if field.name not in TrainConfig.__dataclass_fields__)

    def examples(
        self, corpora: list[Splits], config: TrainConfig, tokenizer: TextTokenizer, max_length: int
    ) -> tuple[Mixture, list[tuple[str, Corpus]]]:
        """Return the mixture to train on, and the (direction, dev corpus) pairs to validate on."""
        held_out = [part for splits in corpora for part in (splits.dev, splits.test)]
        train = [splits.train for splits in corpora]
        mixture = self.mixture(train, config, tokenizer, max_length=max_length, held_out=held_out)
        return mixture, [
            (direction, splits.dev)
            for direction in config.directions
            for splits in corpora
            if splits.dev.oriented(direction)
        ]


CORPORA = Source()

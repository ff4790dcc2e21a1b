"""What an epoch sees of the corpora."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.batches import Encoded, Examples, encode
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.sources.readers import Corpus


@dataclass(frozen=True, eq=False)
class Part:
    """One corpus in one direction. pairs[i] is example number first + i."""

    direction: str
    pairs: list[tuple[str, str]]
    first: int
    times: float
    one_way: bool


class Mixture:
    """Draws the examples of an epoch: a function of the config's seed and the epoch's number alone.

    A corpus that is seen 2.4 times an epoch is there twice, and 0.4 of it, drawn by chance, once more. held_out: the
    dev and test parts; pairs that share a side with them have left the corpora already.
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
                short = [(pair, ids) for pair in pairs if (ids := self.encoded(pair, direction))]
                if short:
                    self.parts.append(Part(direction, [p for p, _ in short], len(encoded), times, corpus.one_way))
                    encoded += [ids for _, ids in short]
        self.examples = Examples.of(encoded)

    def __len__(self) -> int:
        """About as many pairs as an epoch has."""
        return round(sum(part.times * len(part.pairs) for part in self.parts))

    def epoch(self, number: int) -> Examples:
        """Return the examples of an epoch, from 0."""
        random = self.random(number)
        rows = [part.first + drawn_rows(part, random) for part in self.parts]
        return self.examples.take(np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64))

    def random(self, number: int) -> np.random.Generator:
        """Return an epoch's generator of random numbers."""
        return np.random.default_rng((self.config.seed, number, len(self.parts)))

    def encoded(self, pair: tuple[str, str], direction: str) -> Encoded | None:
        """Return a pair's token ids; None if a side is empty or too long."""
        return encode(pair, self.tokenizer, parse_direction(direction), max_length=self.max_length)


def drawn_rows(part: Part, random: np.random.Generator) -> np.ndarray:
    """Return each row int(times) times, and of the rest of `times` as large a share of the rows, by chance."""
    count, whole = len(part.pairs), int(part.times)
    more = random.permutation(count)[: round((part.times - whole) * count)]
    return np.concatenate([np.tile(np.arange(count), whole), more]).astype(np.int64)

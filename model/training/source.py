"""Where a training run's examples come from."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields

from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.training import corpora
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.mixture import Mixture
from attention_atlas.model.training.sources.readers import Corpus, Splits


@dataclass(frozen=True)
class Source:
    """What a run trains on: by default the corpora that the options of `attention-atlas train` name.

    `attention_atlas.model.train.main(argv, source)` takes another source.

    program: the command line, as --help shows it.
    config: a run's settings. What a subclass of TrainConfig adds becomes options, which --resume may change.
    mixture: draws the epochs: a Mixture, or a subclass that adds examples of its own.
    add_options: adds the options that name corpora.
    find: from these options and the directions, the corpora, without pairs that share a side with a held-out one.
    """

    program: str = "attention-atlas train"
    config: type[TrainConfig] = TrainConfig
    mixture: type[Mixture] = Mixture
    add_options: Callable[[argparse.ArgumentParser], None] = corpora.add_options
    find: Callable[[argparse.Namespace, list[str]], list[Splits]] = corpora.find

    @property
    def added(self) -> tuple[str, ...]:
        """The settings that config adds to TrainConfig's."""
        return tuple(field.name for field in fields(self.config) if field.name not in TrainConfig.__dataclass_fields__)

    def examples(
        self, found: list[Splits], config: TrainConfig, tokenizer: TextTokenizer, max_length: int
    ) -> tuple[Mixture, list[tuple[str, Corpus]]]:
        """Return what the epochs draw from, and the (direction, dev corpus) pairs to validate on."""
        held_out = [part for splits in found for part in (splits.dev, splits.test)]
        train = [splits.train for splits in found]
        mixture = self.mixture(train, config, tokenizer, max_length=max_length, held_out=held_out)
        return mixture, [
            (direction, splits.dev)
            for direction in config.directions
            for splits in found
            if splits.dev.oriented(direction)
        ]


CORPORA = Source()

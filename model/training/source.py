"""The data source of a training run: its options, settings and mixture of corpora."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields

from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.corpora import add_options, find
from attention_atlas.model.training.mixture import Mixture
from attention_atlas.model.training.sources.readers import Corpus, Splits


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

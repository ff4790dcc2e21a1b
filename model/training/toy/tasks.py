"""The tasks of toys: translation, classification, and prediction of the next word."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from torch import nn

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.recurrent import RecurrentConfig
from attention_atlas.model.nets.single import DecoderOnly, EncoderOnly
from attention_atlas.model.text.words import TwoWordTokenizers, WordTokenizer
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.training.batches import Batch, Examples, make_batch
from attention_atlas.model.training.toy import corpora, settings
from attention_atlas.model.training.toy.corpora import Pairs
from attention_atlas.model.training.toy.settings import ToyNetwork, ToySettings


class Translation:
    """Each line is a sentence and its translation.

    tokenizer  of whole words
    examples   the encoded lines
    opens      whether the network can be opened as a translator
    prefixes   by line, what decoding continues; mostly nothing
    max_steps  of decoding, or None
    """

    opens = True
    max_steps: int | None = None

    def __init__(self, pairs: Pairs, toy_settings: ToySettings) -> None:
        self.pairs, self.settings = pairs, toy_settings
        self.tokenizer = self._build_tokenizer()
        self.prefixes: list[tuple[int, ...]] = [()] * len(pairs)
        self.examples = self._encode()

    def build(self, config: ModelConfig | RecurrentConfig) -> nn.Module:
        """Return a new network of a config."""
        return networks.build(config)

    def batch(self, rows: np.ndarray) -> Batch:
        """Return the batch of these lines."""
        return make_batch(self.examples, rows, self.tokenizer)

    @cached_property
    def floor(self) -> float:
        """The smallest possible loss (corpora.floor)."""
        return corpora.floor(self.pairs, ordered=self.settings.ordered)

    @property
    def guess(self) -> float:
        """The loss of a guess, in nats per token."""
        return math.log(len(self.tokenizer))

    def _build_tokenizer(self) -> WordTokenizer:
        if self.settings.separate and not self.settings.is_recurrent:
            return TwoWordTokenizers(*zip(*self.pairs))
        return WordTokenizer(side for pair in self.pairs for side in pair)

    def _encode(self) -> Examples:
        return Examples.encode(list(self.pairs), self.tokenizer, "target", max_length=settings.MAX_LENGTH)


class Classification(Translation):
    """Each line is a sentence and its class, one word, which is read from the row of `<s>`."""

    opens, max_steps = False, 1

    def build(self, config: ModelConfig | RecurrentConfig) -> nn.Module:
        return EncoderOnly(config)

    def batch(self, rows: np.ndarray) -> Batch:
        batch = super().batch(rows)
        return Batch(batch.source, batch.inputs[:, :1], batch.outputs[:, :1], len(rows))

    @cached_property
    def floor(self) -> float:
        # In place of two tokens, the word and the end, there is one class.
        return 2 * corpora.floor(self.pairs, ordered=self.settings.ordered)

    @property
    def guess(self) -> float:
        return math.log(len(self.tokenizer.words))

    def _build_tokenizer(self) -> WordTokenizer:
        for number, (_, target) in enumerate(self.pairs, 1):
            if len(target.split()) > 1:
                raise Refusal("Line {line}: a class is one word: sentence | class.", line=number)
        return TwoWordTokenizers(*zip(*self.pairs))

    def _encode(self) -> Examples:
        tokenizer = self.tokenizer
        sources = [[tokenizer.begin_id, *tokenizer.encode_source(source, "target")] for source, _ in self.pairs]
        return Examples.of(list(zip(sources, (tokenizer.encode(target) for _, target in self.pairs))))


class Continuation(Translation):
    """Each line is the beginning of a text and how it goes on. Every word of both is predicted."""

    opens = False

    def build(self, config: ModelConfig | RecurrentConfig) -> nn.Module:
        return DecoderOnly(config)

    @cached_property
    def floor(self) -> float:
        return corpora.floor(tuple(("", " ".join(pair)) for pair in self.pairs), ordered=True)

    def _build_tokenizer(self) -> WordTokenizer:
        return WordTokenizer(side for pair in self.pairs for side in pair)

    def _encode(self) -> Examples:
        self.prefixes = [tuple(self.tokenizer.encode(begin)) for begin, _ in self.pairs]
        rows = [[*begin, *self.tokenizer.encode(end)] for begin, (_, end) in zip(self.prefixes, self.pairs)]
        return Examples.of([([*begin, self.tokenizer.end_id], row) for begin, row in zip(self.prefixes, rows)])


TASKS = {ToyNetwork.ENCODER: Classification, ToyNetwork.DECODER: Continuation}


def task_of(pairs: Pairs, toy_settings: ToySettings) -> Translation:
    """Return what a network of these settings learns from the pairs."""
    return TASKS.get(toy_settings.network, Translation)(pairs, toy_settings)

"""One stack alone, for networks trained on the page: an encoder that classifies, and a decoder that writes.

Both have Transformer's interface (encode, decode, project), so that training and decoding treat them alike.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.layer import Dropout, SourceMemory
from attention_atlas.model.nets.masks import causal_mask, padding_mask
from attention_atlas.model.nets.positions import position_modules
from attention_atlas.model.nets.products import Linear, linear
from attention_atlas.model.nets.records import LayerRecord
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import EncoderDecoder, Stack, embedding_of
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal

SYMBOLS = 3  # padding, begin and end, the first ids of a vocabulary of words: no classes


class OneStack(EncoderDecoder):
    """Layers of self-attention and a feed-forward over embedded tokens. kind: that of its attention."""

    kind: AttentionKind

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config: ModelConfig = config
        self.scale: float = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.embedding: nn.Embedding = embedding_of(config.vocabulary_size, config.d_model)
        self.dropout: Dropout = Dropout(config.dropout)
        self.positions: nn.Module = position_modules(config)[0]
        self.stack: Stack = Stack(config, decoder=False)

    @property
    def num_layers(self) -> dict[AttentionKind, int]:
        """The number of layers of its attention."""
        return {self.kind: len(self.stack.layers)}

    @property
    def num_heads(self) -> dict[AttentionKind, int]:
        """The number of heads in a layer."""
        return {self.kind: self.config.num_heads}

    def check(self, interventions: Changes, *, batch: int) -> None:
        """Raise a Refusal for any intervention."""
        if interventions:
            raise Refusal("This model is not a Transformer, but this question is about a Transformer's parts.")

    def new_cache(self) -> KeyValueCache:
        """Return an empty key/value cache."""
        return KeyValueCache(len(self.stack.layers))

    def embed(self, ids: Tensor, lengths: Tensor, first: int = 0) -> Tensor:
        """Return the first layer's input [batch, length, d_model]. lengths: of the sentences, int [batch]."""
        rows = F.embedding(ids, self.embedding.weight) * self.scale
        return self.dropout(self.stack.enter(rows, self.positions(first, ids.shape[1], lengths=lengths)))


class EncoderOnly(OneStack):
    """An encoder that gives each sentence a class, read from its first row, as in BERT (Devlin et al. 2019).

    The classes are the tokens of the target vocabulary after its symbols.
    """

    kind = AttentionKind.ENCODER_SELF

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.classes: nn.Linear = Linear(config.d_model, config.num_target_tokens - SYMBOLS)

    def encode(
        self, source_ids: Tensor, *, interventions: Changes = NO_INTERVENTIONS, record: bool = False
    ) -> SourceMemory:
        """Encode source_ids [batch, source], padded on the right."""
        mask = padding_mask(source_ids, self.config.pad_id)
        lengths = mask.sum(-1).flatten()
        memory, records = self.stack(self.embed(source_ids, lengths), mask, record=record)
        return SourceMemory(memory, mask, records, padded_lengths=lengths)

    def decode(
        self,
        target_ids: Tensor,
        source: SourceMemory,
        *,
        cache: KeyValueCache | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """Return the first row of each sentence, [batch, 1, d_model]; target_ids [batch, 1] are not read."""
        return source.memory[:, :1], ()

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits [.., target vocabulary] of hidden [.., d_model], minus infinity for symbols."""
        return F.pad(self.classes(hidden), (SYMBOLS, 0), value=-math.inf)


class DecoderOnly(OneStack):
    """A decoder without cross-attention, which predicts each next token from those before it (Radford et al. 2018).

    One embedding serves input and output. It reads no source: encode() returns an empty memory.
    """

    kind = AttentionKind.DECODER_SELF

    def encode(
        self, source_ids: Tensor, *, interventions: Changes = NO_INTERVENTIONS, record: bool = False
    ) -> SourceMemory:
        """Return a memory of no positions for source_ids [batch, source]."""
        return SourceMemory(self.embedding.weight.new_zeros(len(source_ids), 0, self.config.d_model), None)

    def decode(
        self,
        target_ids: Tensor,
        source: SourceMemory,
        *,
        cache: KeyValueCache | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """Return the output [batch, new, d_model] for target_ids [batch, new], and its records. With a cache,
        target_ids are the rows from position cache.length on."""
        first = 0 if cache is None else cache.length
        mask = padding_mask(target_ids, self.config.pad_id)
        if self.config.look_ahead_mask:
            mask = causal_mask(first + target_ids.shape[1], first_query=first, device=target_ids.device)
        elif first:
            mask = None  # decoding never pads
        # A decoder does not know its length in advance: codes that depend on it use the longest one.
        lengths = torch.full((len(target_ids),), self.config.max_length)
        return self.stack(self.embed(target_ids, lengths, first), mask, cache=cache, record=record)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits [.., vocabulary] of hidden [.., d_model]."""
        return linear(hidden, self.embedding.weight)

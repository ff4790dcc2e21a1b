"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.layer import Dropout, Layer, SourceMemory, build_norm
from attention_atlas.model.nets.masks import causal_mask, padding_mask
from attention_atlas.model.nets.places.visit import check_places, has_visits, project_logits, visit
from attention_atlas.model.nets.positions import RelativePositions, position_modules
from attention_atlas.model.nets.products import linear
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord
from attention_atlas.model.nets.sweep import Changes, Sweep, plain_part
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side


class Stack(nn.Module):
    """The layers of the encoder or the decoder, and the norms around them.

    norm      after the last layer, with pre-norm; else the identity
    entry     the norm of embeddings before the first layer; in most models the identity
    relative  tables of relative positions, one for all layers or one for each; in most models none
    """

    def __init__(self, config: ModelConfig, *, decoder: bool) -> None:
        super().__init__()
        num_layers = config.num_decoder_layers if decoder else config.num_encoder_layers
        self.layers: nn.ModuleList = nn.ModuleList(Layer(config, index, decoder=decoder) for index in range(num_layers))
        self.side: Side = Side.DECODER if decoder else Side.ENCODER
        self.config: ModelConfig = config
        self.norm_before_positions: bool = decoder and config.norm_before_positions
        self.norm: nn.Module = build_norm(config) if config.norm_first else nn.Identity()
        self.entry: nn.Module = build_norm(config) if config.norm_embedding else nn.Identity()
        tables = 0 if config.position_code is not PositionCode.RELATIVE else num_layers if config.layer_positions else 1
        self.relative: nn.ModuleList = nn.ModuleList(
            RelativePositions(config, both_ways=not decoder) for _ in range(tables)
        )

    def enter(self, rows: Tensor, code: Tensor | None) -> Tensor:
        """Return the first layer's input for embedded rows and the code of their positions."""
        if self.norm_before_positions:
            rows = self.entry(rows)
            return rows if code is None else rows + code
        return self.entry(rows if code is None else rows + code)

    def biases(self, first: int, new: int, changes: Changes = NO_INTERVENTIONS) -> list[Tensor | None]:
        """Return each layer's bias for the scores of the rows from position `first` on.

        It is [1, heads, new, first + new], or None in models without relative positions.
        """
        plain = plain_part(changes)
        positions = plain.target_positions if self.side is Side.DECODER else plain.source_positions
        biases = [table(first, new, first + new, positions) for table in self.relative] or [None]
        return biases if len(biases) == len(self.layers) else biases * len(self.layers)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        source: SourceMemory | None = None,
        *,
        cache: KeyValueCache | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
        start: int = 0,
        stop: int | None = None,
        last: int | None = None,
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """Run the layers on x [batch, new, d_model]; return the normed output, and one record a layer with record=True.

        start  the layer that x enters
        stop   end before this layer, and return its input without the closing norm
        last   return only this many of the last rows, [batch, last, d_model]; the last layer computes no others, and
               the rounding may differ from a recorded pass, also where `last` is all rows
        """
        records = []
        first_query = 0 if cache is None else cache.length
        biases, new = self.biases(first_query, x.shape[1], interventions), x.shape[1]
        for layer in self.layers[start:stop]:
            x, layer_record = layer(
                x,
                mask,
                source,
                bias=biases[layer.index],
                interventions=interventions,
                first_query=first_query,
                record=record,
                cache=None if cache is None else cache.layers[layer.index],
                last=last if last is None or layer.index + 1 == len(self.layers) else x.shape[1],
            )
            if record:
                records.append(layer_record)
        if stop is not None and stop < len(self.layers):
            return x, tuple(records)
        if cache is not None:
            cache.length += new
        edit_at = visit(interventions, self.side.value, first_query + new - x.shape[1], self.config)
        return edit_at("final", self.norm(x)), tuple(records)


class EncoderDecoder(nn.Module):
    """A network with an encoder and a decoder. Subclasses have encode(), decode() and project()."""

    def forward(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> ForwardOutput:
        """Run one teacher-forced pass over source_ids [batch, source] and target_ids [batch, target].

        target_ids are `<s> y1 .. yT`; row t of the logits predicts target t + 1.
        """
        return self.read(
            self.encode(source_ids, interventions=interventions, record=record),
            target_ids,
            interventions=interventions,
            record=record,
        )

    def read(
        self,
        source: SourceMemory,
        target_ids: Tensor,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> ForwardOutput:
        """Run the decoder's part of forward() over encoded sources, whose records become the encoder's."""
        hidden, records = self.decode(target_ids, source, interventions=interventions, record=record)
        project = partial(project_logits, self, changes=interventions) if has_visits(interventions) else self.project
        return ForwardOutput(project, source.memory, hidden, source.records, records)


class Transformer(EncoderDecoder):
    """The encoder-decoder of "Attention Is All You Need": source and target ids in, next-token logits out.

    One embedding serves source, target and output (section 3.4) unless the config says otherwise. All padding is on
    the right.

    >>> model = Transformer(ModelConfig(vocabulary_size=100)).eval()
    >>> output = model(torch.tensor([[4, 20, 2]]), torch.tensor([[1, 30]]), record=True)
    >>> output.logits.shape, output.weights(AttentionKind.CROSS).shape[-2:]
    (torch.Size([1, 2, 100]), torch.Size([2, 3]))
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config: ModelConfig = config
        self.scale: float = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.output_scale: float = config.d_model**-0.5 if config.scale_output else 1.0
        self.embedding: nn.Embedding = embedding_of(config.vocabulary_size, config.d_model)
        self.target_embedding: nn.Embedding | None = (
            None if config.shared_embeddings else embedding_of(config.num_target_tokens, config.d_model)
        )
        self.output: nn.Embedding | None = (
            None if config.tied_output else embedding_of(config.num_target_tokens, config.d_model)
        )
        self.output_bias: nn.Parameter | None = (
            nn.Parameter(torch.zeros(config.num_target_tokens)) if config.logits_bias else None
        )
        self.dropout: Dropout = Dropout(config.dropout)
        self.encoder: Stack = Stack(config, decoder=False)
        self.decoder: Stack = Stack(config, decoder=True)
        self.source_positions: nn.Module
        self.target_positions: nn.Module
        self.source_positions, self.target_positions = position_modules(config)

    @property
    def num_layers(self) -> dict[AttentionKind, int]:
        """The number of layers of each kind of attention."""
        return {kind: len(self._stack(kind.side).layers) for kind in TRANSFORMER_KINDS}

    @property
    def num_heads(self) -> dict[AttentionKind, int]:
        """The number of heads in a layer of each kind of attention."""
        return {kind: self.config.of(kind.side).num_heads for kind in TRANSFORMER_KINDS}

    def attention(self, kind: AttentionKind, layer: int) -> MultiHeadAttention:
        """Return the module of one attention."""
        module = self._stack(kind.side).layers[layer]
        return module.cross_attention if kind is AttentionKind.CROSS else module.self_attention

    def check(self, interventions: Changes, *, batch: int) -> None:
        """Raise ValueError if the interventions cannot be applied to this model and a batch of this size.

        Causes are a layer, head or place that does not exist, Interventions with patches, whose values only a Sweep
        has, and a sweep of another batch size.
        """
        if not interventions:
            return
        interventions.check(self.num_layers, self.num_heads)
        if isinstance(interventions, Sweep):
            if interventions.rows not in (1, batch):
                raise ValueError(f"a sweep of {interventions.rows} rows, the batch has {batch}")
        elif interventions.patches:
            raise ValueError("patches need their values: run these interventions in a sweep that holds them")
        check_places(interventions, self.config)

    def _stack(self, side: Side) -> Stack:
        return self.encoder if side == Side.ENCODER else self.decoder

    @property
    def target_matrix(self) -> Tensor:
        """The embeddings of target tokens, [target vocabulary, d_model]."""
        return (self.embedding if self.target_embedding is None else self.target_embedding).weight

    @property
    def output_matrix(self) -> Tensor:
        """The matrix of the output projection, [target vocabulary, d_model]."""
        return self.target_matrix if self.output is None else self.output.weight

    @cached_property
    def step_numbers(self) -> int:
        """The number of parameters that a decoding step reads: the decoder's and the output matrix."""
        return sum(weight.numel() for weight in self.decoder.parameters()) + self.output_matrix.numel()

    def token_rows(self, ids: Tensor, *, decoder: bool = False) -> Tensor:
        """Return embedding * sqrt(d_model) of ids [batch, length]: [batch, length, d_model] (section 3.4).

        ids: of the source, or with decoder=True of the target. Some families omit the factor.
        """
        return F.embedding(ids, self.target_matrix if decoder else self.embedding.weight) * self.scale

    def place(
        self,
        rows: Tensor,
        changes: Changes = NO_INTERVENTIONS,
        *,
        first: int = 0,
        decoder: bool = False,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Add positions to rows [batch, length, d_model], in some families with a norm: the first layer's input.

        Attribution methods pass rows that are no token's embedding; others pass token_rows(). lengths: the number of
        tokens of each source, int [batch], for position codes that depend on it; None: the number of rows.
        """
        code, stack = (self.target_positions, self.decoder) if decoder else (self.source_positions, self.encoder)
        plain = plain_part(changes)
        positions = plain.target_positions if decoder else plain.source_positions
        added = code(first, rows.shape[1], positions, lengths)
        edit_at = visit(changes, stack.side.value, first, self.config)
        rows = edit_at("embed", rows)
        added = None if added is None else edit_at("pos", added if added.dim() == 3 else added[None])
        return self.dropout(stack.enter(rows, added))

    def embed(
        self,
        ids: Tensor,
        changes: Changes = NO_INTERVENTIONS,
        *,
        first: int = 0,
        decoder: bool = False,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Return the first layer's input for ids [batch, length]: [batch, length, d_model] (sections 3.4 and 3.5)."""
        rows = self.token_rows(ids, decoder=decoder)
        return self.place(rows, changes, first=first, decoder=decoder, lengths=lengths)

    def new_cache(self) -> KeyValueCache:
        """Return an empty key/value cache."""
        return KeyValueCache(len(self.decoder.layers))

    def encode(
        self,
        source_ids: Tensor,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        record: bool = False,
    ) -> SourceMemory:
        """Encode source_ids [batch, source], padded on the right with pad_id."""
        self.check(interventions, batch=len(source_ids))
        mask = padding_mask(source_ids, self.config.pad_id)
        # Attention without a mask is faster, but looking for padding waits for a device, on which an update is queued.
        is_queued = self.training and mask.device.type != "cpu"
        mask = None if not is_queued and mask.all() else mask
        lengths = None if mask is None else mask.sum(-1).flatten()
        x = self.embed(source_ids, interventions, lengths=lengths)
        memory, records = self.encoder(x, mask, interventions=interventions, record=record)
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
        """Return the decoder's output [batch, new, d_model] for target_ids [batch, new], and its records.

        With a cache, target_ids are the rows from position cache.length on, and the cache grows by them.
        """
        self.check(interventions, batch=len(target_ids))
        first = 0 if cache is None else cache.length
        mask = self.target_mask(target_ids, first)
        x = self.embed(target_ids, interventions, first=first, decoder=True, lengths=source.lengths)
        return self.decoder(x, mask, source, interventions=interventions, cache=cache, record=record)

    def encode_rows(
        self, rows: Tensor, keys: Tensor | None = None, *, interventions: Changes = NO_INTERVENTIONS
    ) -> SourceMemory:
        """Encode rows [batch, source, d_model] in place of token embeddings.

        keys: bool [batch, source], the positions that encoder and decoder may read; None: all.
        """
        mask = None if keys is None else keys[:, None, None, :]
        memory, _ = self.encoder(self.place(rows, interventions), mask, interventions=interventions, last=rows.shape[1])
        return SourceMemory(memory, mask)

    def decode_last(
        self,
        rows: Tensor,
        source: SourceMemory,
        keys: Tensor | None = None,
        *,
        interventions: Changes = NO_INTERVENTIONS,
    ) -> Tensor:
        """Return the decoder's output [batch, d_model] at the last of rows [batch, target, d_model], which are in place
        of token embeddings.

        keys: bool [batch, target], the positions that later rows may read; each row reads itself.
        """
        mask = causal_mask(rows.shape[1], device=rows.device)
        if keys is not None:
            mask = mask & (keys[:, None, None, :] | torch.eye(rows.shape[1], dtype=torch.bool, device=rows.device))
        placed = self.place(rows, interventions, decoder=True, lengths=source.lengths)
        return self.decoder(placed, mask, source, interventions=interventions, last=1)[0][:, 0]

    def repeat_source(self, output: ForwardOutput, batch: int) -> SourceMemory:
        """Return the encoded source of a recorded pass of one sentence for every row of a batch, as views."""
        recorded, projected = SourceMemory(output.memory, None), {}
        for layer in self.decoder.layers:
            keys, values = recorded.keys_values(layer)
            projected[layer.index] = keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1)
        return SourceMemory(output.memory.expand(batch, -1, -1), None, projected=projected)

    def target_mask(self, target_ids: Tensor, first: int = 0) -> Tensor | None:
        """Return the mask of decoder self-attention for rows from position `first` on, [.., new, first + new].

        None: attend to all keys. With a look-ahead mask, padding on the right needs no mask of its own. Without one,
        rows attend to the whole prefix, which decoding never pads.
        """
        new = target_ids.shape[1]
        if not self.config.look_ahead_mask:
            mask = padding_mask(target_ids, self.config.pad_id)
            assert first == 0 or mask.all()
            return None if mask.all() else mask
        return None if new == 1 else causal_mask(first + new, first_query=first, device=target_ids.device)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits [.., target vocabulary] of hidden [.., d_model], in some families scaled or with a bias."""
        return linear(hidden * self.output_scale, self.output_matrix, self.output_bias)


def embedding_of(tokens: int, d_model: int) -> nn.Embedding:
    """Return a new embedding."""
    # Standard deviation d_model^-0.5: scaled by sqrt(d_model) at the input it is 1, and a tied output projection
    # starts with logits of the same order.
    weight = torch.empty(tokens, d_model)
    if not weight.is_meta:  # for normal numbers on "meta", torch imports its compiler, which takes a second
        nn.init.normal_(weight, std=d_model**-0.5)
    return nn.Embedding.from_pretrained(weight, freeze=False)

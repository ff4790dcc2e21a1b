"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import Activation, ModelConfig, PositionCode
from model.nets.attention import MultiHeadAttention
from model.nets.cache import KeyValueCache, LayerCache
from model.nets.dropout import Dropout
from model.nets.masks import causal_mask, padding_mask
from model.nets.positions import ComputedPositions, LearnedPositions
from model.nets.records import AttentionRecord, ForwardOutput, LayerRecord
from model.trace.interventions import NO_INTERVENTIONS, Interventions, Positions
from model.trace.kinds import AttentionKind


class SubLayer(nn.Module):
    """The residual connection and layer norm around one function f (section 3.1).

    pre-norm   x + dropout(f(norm(x)))    trains without care; needs one more norm at the end of the stack
    post-norm  norm(x + dropout(f(x)))    the paper's
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm_first

    def enter(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.norm_first else x

    def leave(self, x: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
        """The new residual stream, and what the norm read (for the record)."""
        added = x + (self.dropout(output) if self.training else output)
        return (added, x) if self.norm_first else (self.norm(added), added)


ACTIVATIONS = {Activation.RELU: torch.relu, Activation.SILU: F.silu, Activation.GELU: F.gelu}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 at each position (section 3.3, equation 2), or with the config's
    activation in the place of max(0, ..)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.expand = nn.Linear(config.d_model, config.d_feedforward)
        self.contract = nn.Linear(config.d_feedforward, config.d_model)
        for linear in (self.expand, self.contract):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [batch, length, d_model] -> the same shape, and the active units [batch, length, d_feedforward]"""
        active = self.activation(self.expand(x))
        return self.contract(active), active


class Layer(nn.Module):
    """One layer of either stack: self-attention, cross-attention (decoder only), feed-forward."""

    def __init__(self, config: ModelConfig, index: int, *, decoder: bool) -> None:
        super().__init__()
        self.index = index
        self.kind = AttentionKind.DECODER_SELF if decoder else AttentionKind.ENCODER_SELF

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(config.d_model, config.num_heads, config.attention_dropout)

        self.self_attention = attention()
        self.cross_attention = attention() if decoder else None
        self.feed_forward = FeedForward(config)
        self.sublayers = nn.ModuleList(SubLayer(config) for _ in range(3 if decoder else 2))

    def forward(
        self, x: Tensor, mask: Tensor | None, source: SourceMemory | None = None, *,
        interventions: Interventions = NO_INTERVENTIONS, cache: LayerCache | None = None, first_query: int = 0,
        record: bool = False,
    ) -> tuple[Tensor, LayerRecord | None]:
        """x [batch, new, d_model], the rows from position first_query on; a cache holds the rows before them."""
        residuals, read = [x], []

        def leave(sublayer: SubLayer, output: Tensor) -> Tensor:
            stream, norm_input = sublayer.leave(residuals[-1], output)
            residuals.append(stream)
            read.append(norm_input)
            return stream

        around_self, *around_cross, around_feed_forward = self.sublayers
        edit = interventions.for_attention(self.kind, self.index)
        queries, keys, values = self.self_attention.project(around_self.enter(x))
        if cache is not None:
            keys, values = cache.extend(first_query, keys, values)
        output, weights = self.self_attention(queries, keys, values, mask, edit=edit, first_query=first_query)
        x = leave(around_self, output)
        self_record = AttentionRecord(weights, queries, keys, values) if record else None

        cross_record = None
        if self.cross_attention is not None:
            edit = interventions.for_attention(AttentionKind.CROSS, self.index)
            queries = self.cross_attention.project_queries(around_cross[0].enter(x))
            keys, values = source.keys_values(self)
            output, weights = self.cross_attention(
                queries, keys, values, source.mask, edit=edit, first_query=first_query)
            x = leave(around_cross[0], output)
            cross_record = AttentionRecord(weights, queries, keys, values) if record else None

        output, active = self.feed_forward(around_feed_forward.enter(x))
        x = leave(around_feed_forward, output)
        if not record:
            return x, None
        epsilon = around_self.norm.eps
        return x, LayerRecord(self_record, cross_record, tuple(residuals), tuple(read), epsilon, active)


class Stack(nn.Module):
    """The layers of the encoder or the decoder, and with pre-norm the norm that closes them. entry: what embeddings go
    through before the first layer, in most models nothing."""

    def __init__(self, config: ModelConfig, *, decoder: bool) -> None:
        super().__init__()
        num_layers = config.num_decoder_layers if decoder else config.num_encoder_layers
        self.layers = nn.ModuleList(Layer(config, index, decoder=decoder) for index in range(num_layers))
        self.norm = nn.LayerNorm(config.d_model) if config.norm_first else nn.Identity()
        self.entry = nn.LayerNorm(config.d_model) if config.norm_embedding else nn.Identity()

    def forward(
        self, x: Tensor, mask: Tensor | None, source: SourceMemory | None = None, *,
        interventions: Interventions = NO_INTERVENTIONS, cache: KeyValueCache | None = None, record: bool = False,
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """x [batch, new, d_model] -> the same shape, normed; one record a layer if record."""
        records = []
        first_query = 0 if cache is None else cache.length
        for layer in self.layers:
            x, layer_record = layer(
                x, mask, source, interventions=interventions, first_query=first_query, record=record,
                cache=None if cache is None else cache.layers[layer.index])
            if record:
                records.append(layer_record)
        if cache is not None:
            cache.length += x.shape[1]
        return self.norm(x), tuple(records)


@dataclass(frozen=True, eq=False)
class SourceMemory:
    """An encoded batch of sources: memory [batch, source, d_model], its padding mask [batch, 1, 1, source] or None
    where nothing is padded, and the encoder's records. Whoever decodes over it shares its keys and values."""

    memory: Tensor
    mask: Tensor | None
    records: tuple[LayerRecord, ...] = ()
    projected: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # by decoder layer

    def keys_values(self, layer: Layer) -> tuple[Tensor, Tensor]:
        """What a decoder layer's cross-attention reads, each [batch, heads, source, d_head]: computed once."""
        found = self.projected.get(layer.index)
        if found is None:
            found = self.projected[layer.index] = layer.cross_attention.project_keys_values(self.memory)
        return found

    def select(self, rows: Tensor) -> SourceMemory:
        """The batch rows [new_batch], without records."""
        return SourceMemory(
            self.memory.index_select(0, rows), None if self.mask is None else self.mask.index_select(0, rows),
            projected={layer: (keys.index_select(0, rows), values.index_select(0, rows))
                       for layer, (keys, values) in self.projected.items()})


class Transformer(nn.Module):
    """Source ids and target ids in, next-token logits out. One embedding serves source, target and output
    (section 3.4) unless the config asks for more; all padding is on the right."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.embedding = _embedding(config.vocabulary_size, config.d_model)
        self.target_embedding = None if config.shared_embeddings else _embedding(
            config.num_target_tokens, config.d_model)
        self.output = None if config.tied_output else _embedding(config.num_target_tokens, config.d_model)
        self.output_bias = nn.Parameter(torch.zeros(config.num_target_tokens)) if config.logits_bias else None
        self.dropout = Dropout(config.dropout)
        self.encoder = Stack(config, decoder=False)
        self.decoder = Stack(config, decoder=True)
        learned = config.position_code is PositionCode.LEARNED
        self.source_positions = LearnedPositions(config) if learned else ComputedPositions(config)
        self.target_positions = LearnedPositions(config) if learned else self.source_positions

    @property
    def target_matrix(self) -> Tensor:
        """The embeddings of target tokens: [target vocabulary, d_model]."""
        return (self.embedding if self.target_embedding is None else self.target_embedding).weight

    @property
    def output_matrix(self) -> Tensor:
        """What the output projection multiplies by: [target vocabulary, d_model]."""
        return self.target_matrix if self.output is None else self.output.weight

    def token_rows(self, ids: Tensor, *, decoder: bool = False) -> Tensor:
        """ids [batch, length] of the source, or of the target -> embedding * sqrt(d_model), [batch, length, d_model]
        (section 3.4); in some families without the factor."""
        return F.embedding(ids, self.target_matrix if decoder else self.embedding.weight) * self.scale

    def place(self, rows: Tensor, positions: Positions = Positions(), *, first: int = 0, decoder: bool = False
              ) -> Tensor:
        """token_rows() [batch, length, d_model] + position: what the first layer reads (section 3.5), in some families
        after a norm. Apart from token_rows(), so that rows that are no token's can take their place."""
        code, stack = (self.target_positions, self.decoder) if decoder else (self.source_positions, self.encoder)
        added = code(first, rows.shape[1], positions)
        return self.dropout(stack.entry(rows if added is None else rows + added))

    def embed(self, ids: Tensor, positions: Positions = Positions(), *, first: int = 0, decoder: bool = False
              ) -> Tensor:
        """ids [batch, length] -> embedding * sqrt(d_model) + position, [batch, length, d_model] (sections 3.4, 3.5)"""
        return self.place(self.token_rows(ids, decoder=decoder), positions, first=first, decoder=decoder)

    def encode(
        self, source_ids: Tensor, *, interventions: Interventions = NO_INTERVENTIONS, record: bool = False,
    ) -> SourceMemory:
        """source_ids [batch, source], padded on the right with pad_id."""
        mask = padding_mask(source_ids, self.config.pad_id)
        mask = None if mask.all() else mask  # most steps of most decodes then need not mask at all
        x = self.embed(source_ids, interventions.source_positions)
        memory, records = self.encoder(x, mask, interventions=interventions, record=record)
        return SourceMemory(memory, mask, records)

    def decode(
        self, target_ids: Tensor, source: SourceMemory, *, cache: KeyValueCache | None = None,
        interventions: Interventions = NO_INTERVENTIONS, record: bool = False,
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """The decoder's output [batch, new, d_model] for target_ids [batch, new], and its records.

        With a cache, target_ids are the rows after cache.length, and the cache grows by them. Padding on the right
        needs no mask of its own: no earlier row looks that far.
        """
        first, new = (0 if cache is None else cache.length), target_ids.shape[1]
        mask = None if new == 1 else causal_mask(first + new, first_query=first, device=target_ids.device)
        x = self.embed(target_ids, interventions.target_positions, first=first, decoder=True)
        return self.decoder(x, mask, source, interventions=interventions, cache=cache, record=record)

    def project(self, hidden: Tensor) -> Tensor:
        """Logits over the target's vocabulary: hidden [.., d_model] times the output matrix transposed, plus the
        bias where there is one."""
        return F.linear(hidden, self.output_matrix, self.output_bias)

    def forward(
        self, source_ids: Tensor, target_ids: Tensor, *, interventions: Interventions = NO_INTERVENTIONS,
        record: bool = False,
    ) -> ForwardOutput:
        """One teacher-forced pass. source_ids [batch, source], target_ids [batch, target] = `<s> y1 .. yT`; row t of
        the logits predicts target t + 1."""
        return self.read(self.encode(source_ids, interventions=interventions, record=record), target_ids,
                         interventions=interventions, record=record)

    def read(
        self, source: SourceMemory, target_ids: Tensor, *, interventions: Interventions = NO_INTERVENTIONS,
        record: bool = False, logits: Tensor | None = None,
    ) -> ForwardOutput:
        """The teacher-forced pass over sources that are encoded already; the encoder's records are theirs. logits
        [batch, last, vocabulary]: where a decode has computed those of the last rows, they are not projected again."""
        hidden, records = self.decode(target_ids, source, interventions=interventions, record=record)
        if logits is None:
            logits = self.project(hidden)
        elif logits.shape[1] < hidden.shape[1]:
            logits = torch.cat((self.project(hidden[:, :-logits.shape[1]]), logits), dim=1)
        return ForwardOutput(logits, source.memory, hidden, source.records, records)


def _embedding(tokens: int, d_model: int) -> nn.Embedding:
    # Standard deviation d_model^-0.5: scaled by sqrt(d_model) at the input it is 1, and a tied output projection
    # starts with logits of the same order.
    weight = torch.empty(tokens, d_model)
    if not weight.is_meta:  # normal numbers without memory: torch would import its compiler for them (1 s)
        nn.init.normal_(weight, std=d_model**-0.5)
    return nn.Embedding.from_pretrained(weight, freeze=False)

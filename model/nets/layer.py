"""One layer of the encoder or decoder, its parts, and the encoded sources that a decoder's layers read.

The structure is that of Vaswani et al. 2017, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.config import Activation, ModelConfig, Norm
from attention_atlas.model.nets.attention import EditAt, MultiHeadAttention, no_edit
from attention_atlas.model.nets.cache import LayerCache
from attention_atlas.model.nets.places.registry import AFTER, SHORT
from attention_atlas.model.nets.places.visit import visit
from attention_atlas.model.nets.products import Linear
from attention_atlas.model.nets.records import AttentionRecord, LayerRecord, NormRecord, SubLayerRecord
from attention_atlas.model.nets.sweep import Changes, attention_edit
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, LayerEdit
from attention_atlas.model.trace.kinds import AttentionKind, SubLayerName


class Dropout(nn.Module):
    """Dropout that draws one random byte an element on the CPU.

    torch draws 64 bits an element, which takes a tenth of a training step. With a byte, the rate p is rounded to a
    multiple of 1/256; the remaining values are multiplied by 1 / (1 - p) of the rounded p.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        threshold = min(max(1, round(self.rate * 256)), 255)
        random_words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        mask = torch.empty_like(x, requires_grad=False, memory_format=torch.contiguous_format)
        torch.ge(random_words.view(torch.uint8)[: x.numel()].view(x.shape), threshold, out=mask)
        return x * mask.mul_(256.0 / (256 - threshold))


def build_norm(config: ModelConfig) -> nn.Module:
    """Return a new norm over d_model, of the kind that the config names."""
    kind = nn.LayerNorm if config.norm is Norm.LAYER else nn.RMSNorm
    return kind(config.d_model, config.norm_epsilon)


class SubLayer(nn.Module):
    """The residual connection and norm around one function f (section 3.1).

    pre-norm   x + dropout(f(norm(x)))    trains more easily; the stack ends in one more norm
    post-norm  norm(x + dropout(f(x)))    as in the paper

    Without residual connections "x +" is left out of both.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm: nn.Module = build_norm(config)
        self.dropout: Dropout = Dropout(config.dropout)
        self.norm_first: bool = config.norm_first
        self.residual: bool = config.residual

    def enter(self, x: Tensor) -> Tensor:
        """Return the input of f."""
        return self.norm(x) if self.norm_first else x

    def leave(self, x: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
        """Return the residual stream after the sub-layer, and what was added to it, for f's output."""
        added = self.dropout(output) if self.training else output
        summed = x + added if self.residual else added
        return (summed if self.norm_first else self.norm(summed)), added

    def norm_record(self) -> NormRecord:
        """Return the norm's parameters for a record."""
        bias = getattr(self.norm, "bias", None)
        return NormRecord(self.norm.weight, bias, self.norm.eps, self.norm_first)


ACTIVATIONS = {
    Activation.RELU: torch.relu,
    Activation.SILU: F.silu,
    Activation.GELU: F.gelu,
    Activation.GELU_TANH: partial(F.gelu, approximate="tanh"),
}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 at each position (section 3.3, equation 2).

    The config may name another activation than max(0, ..). Gated: (activation(x W_1) * x V) W_2 (Shazeer 2020).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation: Callable[[Tensor], Tensor] = ACTIVATIONS[config.activation]
        self.dropout: Dropout = Dropout(config.feedforward_dropout)
        narrow, wide = config.d_model, config.d_feedforward
        self.expand: nn.Linear = Linear(narrow, wide, bias=config.biases)
        self.gate: nn.Linear | None = Linear(narrow, wide, bias=config.biases) if config.gated else None
        self.contract: nn.Linear = Linear(wide, narrow, bias=config.biases)
        for linear in filter(None, (self.expand, self.gate, self.contract)):
            nn.init.xavier_uniform_(linear.weight)
            if config.biases:
                nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, edit_at: EditAt = no_edit) -> tuple[Tensor, Tensor]:
        """Return the output [batch, length, d_model] for x of that shape, and the hidden units that W_2 reads.

        The hidden units are [batch, length, d_feedforward], after the activation and the gate. edit_at: edits "pre",
        "gate" and "post".
        """
        active = self.activation(edit_at("pre", self.expand(x)))
        if self.gate is not None:
            active = active * edit_at("gate", self.gate(x))
        active = edit_at("post", active)
        return self.contract(self.dropout(active)), active


class Layer(nn.Module):
    """One layer of either stack: self-attention, cross-attention (decoder only), feed-forward."""

    def __init__(self, config: ModelConfig, index: int, *, decoder: bool) -> None:
        super().__init__()
        self.index: int = index
        self.config: ModelConfig = config
        self.kind = AttentionKind.DECODER_SELF if decoder else AttentionKind.ENCODER_SELF
        stack = config.of(self.kind.side)

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(
                config.d_model,
                stack.num_heads,
                config.attention_dropout,
                scaled=config.scale_scores,
                d_head=config.head_width,
                biases=config.biases,
            )

        self.self_attention: MultiHeadAttention = attention()
        self.cross_attention: MultiHeadAttention | None = attention() if decoder else None
        self.feed_forward: FeedForward = FeedForward(stack)
        self.sublayers: nn.ModuleList = nn.ModuleList(SubLayer(config) for _ in range(3 if decoder else 2))

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        source: SourceMemory | None = None,
        *,
        bias: Tensor | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        cache: LayerCache | None = None,
        first_query: int = 0,
        record: bool = False,
        last: int | None = None,
    ) -> tuple[Tensor, LayerRecord | None]:
        """Return x after the layer, and its record with record=True.

        x            [batch, new, d_model], the positions from first_query on
        mask         of self-attention, bool, broadcastable to [batch, heads, new, key]; None: attend to all. The mask
                     of cross-attention comes with the source
        source       the encoded sources, for a decoder's layer
        bias         what relative positions add to the scores of self-attention, [1, heads, new, key]
        cache        the keys and values of the positions before first_query; the new ones are added to it
        last         compute only this many of the last rows, with rounding that may differ from a recorded pass;
                     None: all. A pass with last cannot be recorded

        One pass serves training, decoding, records and interventions, so that they cannot differ.
        """
        if record and last is not None:
            raise ValueError("a recorded pass computes all rows: leave out last")
        sublayer_records: list[SubLayerRecord] = []
        edit_at = visit(interventions, f"{self.kind.side.value}.{self.index}", first_query, self.config)

        def leave(sublayer: SubLayer, name: SubLayerName, x: Tensor, output: Tensor) -> Tensor:
            after, added = sublayer.leave(x, edit_at(f"{SHORT[name]}.out", output))
            after = edit_at(AFTER[name], after)
            if record:
                sublayer_records.append(
                    SubLayerRecord(name, x, added, after, sublayer.norm_record(), sublayer.residual)
                )
            return after

        x = edit_at(AFTER[None], x)
        self_sublayer, *cross_sublayers, feed_forward_sublayer = self.sublayers
        edit = attention_edit(interventions, self.kind, self.index)
        # Other passes may use the fused kernel, which rounds differently and returns no weights. On the CPU, a pass
        # that returns all rows equals a recorded one to the last bit.
        exact = record or bool(edit_at) or (last is None and not self.training and x.device.type == "cpu")
        entered, first_key = self_sublayer.enter(x), first_query
        if last in (None, x.shape[1]) or edit_at:  # edits at places are defined for all rows
            queries, keys, values = self.self_attention.project(entered)
        else:
            first_query, x = first_query + x.shape[1] - last, x[:, -last:]
            queries = self.self_attention.project_queries(entered[:, -last:])
            keys, values = self.self_attention.project_keys_values(entered)
            mask, bias = (None if each is None else each[..., -last:, :] for each in (mask, bias))
        edit_part = edit_at.within(SubLayerName.SELF_ATTENTION)
        queries, keys, values = edit_part("q", queries), edit_part("k", keys), edit_part("v", values)
        bias = None if bias is None else edit_part("bias", bias)
        if cache is not None:
            keys, values = cache.extend(first_key, keys, values)
        output, weights = self.self_attention(
            queries, keys, values, mask, bias=bias, edit=edit, first_query=first_query, edit_at=edit_part, exact=exact
        )
        x = leave(self_sublayer, SubLayerName.SELF_ATTENTION, x, output)
        scaled, plain = self.self_attention.scaled, edit.plain if edit else LayerEdit()
        self_record = AttentionRecord(weights, queries, keys, values, plain, bias, scaled) if record else None

        cross_record = None
        if self.cross_attention is not None:
            edit = attention_edit(interventions, AttentionKind.CROSS, self.index)
            queries = self.cross_attention.project_queries(cross_sublayers[0].enter(x))
            keys, values = source.keys_values(self)
            edit_part = edit_at.within(SubLayerName.CROSS_ATTENTION)
            queries, keys, values = edit_part("q", queries), edit_part("k", keys), edit_part("v", values)
            output, weights = self.cross_attention(
                queries, keys, values, source.mask, edit=edit, first_query=first_query, edit_at=edit_part, exact=exact
            )
            x = leave(cross_sublayers[0], SubLayerName.CROSS_ATTENTION, x, output)
            plain = edit.plain if edit else LayerEdit()
            cross_record = AttentionRecord(weights, queries, keys, values, plain, None, scaled) if record else None

        output, active = self.feed_forward(feed_forward_sublayer.enter(x), edit_at.within(SubLayerName.FEED_FORWARD))
        x = leave(feed_forward_sublayer, SubLayerName.FEED_FORWARD, x, output)
        x = x if last is None else x[:, -last:]
        return x, LayerRecord(self_record, cross_record, tuple(sublayer_records), active) if record else None


@dataclass(frozen=True, eq=False)
class SourceMemory:
    """An encoded batch of sources, with the cross-attention keys and values that all decodes over it share.

    memory          [batch, source, d_model]
    mask            padding mask [batch, 1, 1, source]; None where nothing is padded
    records         the encoder's, if the pass was recorded
    projected       keys and values by decoder layer, filled when they are first read
    padded_lengths  the number of tokens of each source, int [batch]; None: all of memory's positions
    """

    memory: Tensor
    mask: Tensor | None
    records: tuple[LayerRecord, ...] = ()
    projected: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    padded_lengths: Tensor | None = None

    @property
    def lengths(self) -> Tensor:
        """The number of tokens of each source, int [batch], or [1] where all have one length."""
        if self.padded_lengths is not None:
            return self.padded_lengths
        return torch.tensor([self.memory.shape[1]])

    def keys_values(self, layer: Layer) -> tuple[Tensor, Tensor]:
        """Return the keys and values of a decoder layer's cross-attention, each [batch, heads, source, d_head]."""
        if layer.index not in self.projected:
            keys, values = layer.cross_attention.project_keys_values(self.memory)
            if not self.memory.requires_grad:  # decoding, where each step would copy them
                keys, values = keys.contiguous(), values.contiguous()
            self.projected[layer.index] = keys, values
        return self.projected[layer.index]

    def select(self, rows: Tensor) -> SourceMemory:
        """Return the batch rows [new_batch], without records."""

        def take(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.index_select(0, rows)

        projected = {layer: (take(keys), take(values)) for layer, (keys, values) in self.projected.items()}
        return SourceMemory(
            take(self.memory), take(self.mask), projected=projected, padded_lengths=take(self.padded_lengths)
        )

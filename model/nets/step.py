"""The decoder for one new token a sentence, with little around the arithmetic.

One step of decoding is so little work that looking up modules and weights through torch.nn, splitting into small
operations, and reshaping between them take most of its time. This looks everything up once for many steps, keeps rows
as plain matrices, and uses torch's fused attention (4 operations in 1). It computes what Transformer.decode computes;
tests hold them equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import cache, cached_property, lru_cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor

from model.config import ModelConfig
from model.nets.attention import MultiHeadAttention
from model.nets.cache import KeyValueCache, LayerCache
from model.nets.layer import Layer, SourceMemory, SubLayer
from model.nets.places.visit import Visit, has_visits, visit, visited
from model.nets.sweep import Changes, Sweep, attention_edit
from model.nets.transformer import Transformer
from model.trace.interventions import NO_INTERVENTIONS, Interventions
from model.trace.kinds import AttentionKind


class DecoderStep:
    """Steps of one model in evaluation mode, without records and with the interventions that it supports().
    Holds the model's own weights, so it follows changes made to them in place."""

    def __init__(self, model: Transformer, interventions: Changes = NO_INTERVENTIONS) -> None:
        """ValueError for interventions that it does not support: none is ever left out silently."""
        assert not model.training
        if unknown := _unsupported(interventions, model.config):
            raise ValueError(f"the lean step does not support {', '.join(unknown)}: take the model's own path")
        self.embedding = model.target_matrix
        self.encoding = partial(model.target_positions, length=1, positions=interventions.target_positions)
        self.config, self.changes = model.config, interventions if has_visits(interventions) else None
        self.scale = model.scale
        self.entry = model.decoder.entry
        self.layers = [_LayerStep(layer, interventions) for layer in model.decoder.layers]
        self.norm = model.decoder.norm
        self.logits = _Affine(model.output_matrix, model.output_bias)

    @staticmethod
    def supports(interventions: Changes, config: ModelConfig) -> bool:
        """Whether a step honours all of them: heads off, gates that are the same at all positions, positions, and what
        happens at any place but the inside of an attention."""
        return not _unsupported(interventions, config)

    def __call__(self, ids: Tensor, source: SourceMemory, cache: KeyValueCache) -> Tensor:
        """ids [batch], the tokens after the cache's rows -> logits [batch, vocabulary] of the next ones. The cache
        grows by a row."""
        position = cache.length
        x, encoding = torch.embedding(self.embedding, ids) * self.scale, self.encoding(position)
        at = self._at("decoder", position)
        if at is not None:
            x = at("embed", x[:, None])[:, 0]
            encoding = None if encoding is None else at("pos", encoding[None])[0]
        x = self.entry(x if encoding is None else x + encoding)
        for layer, layer_cache in zip(self.layers, cache.layers):
            x = layer(x, source, layer_cache, position, self._at(f"decoder.{layer.layer.index}", position))
        cache.length += 1
        x = self.norm(x)
        if at is not None:
            x = at("final", x[:, None])[:, 0]
        logits, at = self.logits(x), self._at("", position)
        return logits if at is None else at("logits", logits[:, None])[:, 0]

    def _at(self, prefix: str, position: int) -> Visit | None:
        return None if self.changes is None else visit(self.changes, prefix, position, self.config)


class _LayerStep:
    """What model.nets.layer.Layer does in the decoder, for one row x [batch, d_model] a sentence."""

    def __init__(self, layer: Layer, interventions: Changes) -> None:
        d_model = layer.self_attention.d_model
        self.layer = layer
        self.norm_first, self.residual = layer.sublayers[0].norm_first, layer.sublayers[0].residual
        self.scale = None if layer.self_attention.scaled else 1.0  # None: 1 / sqrt(d_k)
        self.norms = [_norm(sublayer) for sublayer in layer.sublayers]
        self.heads = layer.self_attention.num_heads
        self.projection = _linear(layer.self_attention.projection)
        self.output = _linear(layer.self_attention.output)
        self.self_gate = _gate(layer.self_attention, interventions, AttentionKind.DECODER_SELF, layer.index)
        self.cross_gate = _gate(layer.cross_attention, interventions, AttentionKind.CROSS, layer.index)
        cross: MultiHeadAttention = layer.cross_attention
        self.cross_queries = _Affine(cross.projection.weight[:d_model], cross.projection.bias[:d_model])
        self.cross_output = _linear(cross.output)
        self.activation = layer.feed_forward.activation
        self.expand, self.contract = _linear(layer.feed_forward.expand), _linear(layer.feed_forward.contract)

    def __call__(
        self, x: Tensor, source: SourceMemory, cache: LayerCache, position: int, at: Visit | None = None
    ) -> Tensor:
        batch, d_model = x.shape
        heads, d_head = self.heads, d_model // self.heads
        around_self, around_cross, around_feed_forward = self.norms

        if at is not None:
            x = at("resid_pre", x[:, None])[:, 0]
        joined = self.projection(self._enter(x, around_self))  # [batch, 3 * d_model]
        queries, keys, values = joined.view(batch, 3, heads, 1, d_head).unbind(1)  # each [batch, heads, 1, d_head]
        if at is not None:
            queries, keys, values = at("self.q", queries), at("self.k", keys), at("self.v", values)
        keys, values = cache.extend(position, keys, values)
        context = F.scaled_dot_product_attention(queries, keys, values, scale=self.scale)  # [batch, heads, 1, d_head]
        if self.self_gate is not None:
            context = context * self.self_gate
        if at is not None:
            context = at("self.z", context)
        x = self._leave(x, self.output(context.reshape(batch, d_model)), around_self, at, "self", "resid_mid")

        queries = self.cross_queries(self._enter(x, around_cross)).view(batch, heads, 1, d_head)
        keys, values = source.keys_values(self.layer)
        if at is not None:
            queries, keys, values = at("cross.q", queries), at("cross.k", keys), at("cross.v", values)
        context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=source.mask, scale=self.scale)
        if self.cross_gate is not None:
            context = context * self.cross_gate
        if at is not None:
            context = at("cross.z", context)
        x = self._leave(x, self.cross_output(context.reshape(batch, d_model)), around_cross, at, "cross", "resid_cross")

        hidden = self.expand(self._enter(x, around_feed_forward))
        if at is not None:
            hidden = at("ffn.pre", hidden[:, None])[:, 0]
        active = self.activation(hidden)
        if at is not None:
            active = at("ffn.post", active[:, None])[:, 0]
        return self._leave(x, self.contract(active), around_feed_forward, at, "ffn", "resid_post")

    def _enter(self, x: Tensor, norm: tuple) -> Tensor:
        return torch.layer_norm(x, *norm) if self.norm_first else x

    def _leave(self, x: Tensor, output: Tensor, norm: tuple, at: Visit | None, part: str, after: str) -> Tensor:
        """The stream after a sub-layer. Six parameters: what it adds, and the names of where that may be changed."""
        if at is not None:
            output = at(f"{part}.out", output[:, None])[:, 0]
        summed = x + output if self.residual else output
        x = summed if self.norm_first else torch.layer_norm(summed, *norm)
        return x if at is None else at(after, x[:, None])[:, 0]


SMALL, LARGE, HUGE = 1 << 17, 2_000_000, 8_000_000  # numbers of a matrix


class _Affine:
    """x W^T + b for rows x [batch, in], in inference mode: no gradient flows back. torch uses several cores badly for
    few rows, and not at all for a single one: where it has several, each gets a share of the matrix that lies in one
    piece of memory.

    A row's product is the sum of the matrix's rows, weighted by x: that is what an embedding bag computes, and its
    kernel fetches ahead, which no matrix product does. It needs the inputs to lie one after the other, as a checkpoint
    is loaded. Many rows, and other processors, take a share of the output's columns, or, of large matrices and of those
    whose columns cannot be shared out (a vocabulary may be odd), of the input's. A small matrix is read before a second
    core has begun.

    GB/s read on 2 cores as matrix products and as bags, from memory, where a sum reads 43: one row, [1536, 512] 29 and
    38, [512, 2048] 29 and 38, [58101, 512] 42 and 46, [256, 256] 18 and 20, [1024, 256] 20 and 28, [8000, 256] 23 and
    36; two rows, [1536, 512] 18 and 35, [58101, 512] 26 and 31; five, 17 and 22, and 17 and 14."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        """weight [out, in], bias [out] or None"""
        self.weight, self.bias = weight.t(), bias
        inputs, outputs = self.weight.shape
        numbers = inputs * outputs
        self.large = numbers >= LARGE
        self.shares = torch.get_num_threads() if numbers >= SMALL and weight.device.type == "cpu" else 1
        self.few = 0  # rows up to which bags are faster
        if _fits_bags(self.weight):
            self.few = 5 if numbers < HUGE else 3
            apart = self.weight.stride(0) // outputs  # more than 1: some columns of a wider matrix
            self.table = self.weight.detach().as_strided((apart * (inputs - 1) + 1, outputs), (outputs, 1))
            self.bag_shares = next(count for count in range(self.shares, 0, -1) if inputs % count == 0)
            self.bags = partial(_bags, inputs, apart, self.bag_shares)

    def __call__(self, x: Tensor) -> Tensor:
        return self._as_bags(x) if len(x) <= self.few else self.product(x)

    def _as_bags(self, x: Tensor) -> Tensor:
        batch = len(x)
        by = x.reshape(-1) if batch == 1 else x.unflatten(1, (self.bag_shares, -1)).transpose(0, 1).reshape(-1)
        found = torch.embedding_bag(self.table, *self.bags(batch), False, 0, False, by)[0]  # [shares * batch, out]
        if self.bag_shares == 2:  # of two, adding takes less than a sum's reduction
            found, other = found.split(batch)
            found = found.add_(other)
        elif self.bag_shares > 2:
            found = found.view(self.bag_shares, batch, -1).sum(0)
        return found if self.bias is None else found.add_(self.bias)

    @cached_property
    def product(self) -> Callable[[Tensor], Tensor]:
        """x [batch, in] -> [batch, out] by matrix products, made when it is first needed."""
        (inputs, outputs), shares = self.weight.shape, self.shares
        by_input = (self.large and self.weight.stride(1) == 1) or outputs % shares != 0
        if shares > 1 and by_input and inputs % shares == 0:
            self.split = self.weight.unflatten(0, (shares, -1))  # [shares, in / shares, out]
            return self._by_input
        if shares > 1 and outputs % shares == 0:
            self.split = self.weight.unflatten(1, (shares, -1)).transpose(0, 1)  # [shares, in, out / shares]
            self.split_bias = None if self.bias is None else self.bias.view(shares, 1, -1)
            return self._by_output
        return self._whole

    def _whole(self, x: Tensor) -> Tensor:
        return x @ self.weight if self.bias is None else torch.addmm(self.bias, x, self.weight)

    def _by_input(self, x: Tensor) -> Tensor:
        shares = len(self.split)
        rows = x.view(shares, 1, -1) if len(x) == 1 else x.unflatten(1, (shares, -1)).transpose(0, 1)
        found = torch.bmm(rows, self.split).sum(0)  # [batch, out]
        return found if self.bias is None else found.add_(self.bias)

    def _by_output(self, x: Tensor) -> Tensor:
        rows, batch = x.expand(len(self.split), -1, -1), len(x)
        found = (
            torch.bmm(rows, self.split) if self.split_bias is None else torch.baddbmm(self.split_bias, rows, self.split)
        )  # [shares, batch, out / shares]
        return found.view(1, -1) if batch == 1 else found.transpose(0, 1).reshape(batch, -1)


def _fits_bags(weight: Tensor) -> bool:
    """Whether a product with weight [in, out] can be an embedding bag's: float32, on a processor that its kernel is
    written for, and the inputs one after the other, or as many outputs apart."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and _has_vectors()
        and weight.stride(1) == 1
        and weight.stride(0) % weight.shape[1] == 0
    )


@cache
def _has_vectors() -> bool:
    return torch.backends.cpu.get_cpu_capability().startswith("AVX")


@lru_cache(maxsize=1024)
def _bags(inputs: int, apart: int, shares: int, batch: int) -> tuple[Tensor, Tensor]:
    """Which rows of a table [inputs * apart, out] are summed, share by share and in each for every row of the batch:
    rows [shares * batch * inputs / shares], starts [shares * batch], where each sum's begin."""
    rows = torch.arange(0, apart * inputs, apart, dtype=torch.int32).view(shares, 1, -1).expand(-1, batch, -1)
    return rows.reshape(-1), torch.arange(shares * batch, dtype=torch.int32) * (inputs // shares)


def _linear(module) -> _Affine:
    return _Affine(module.weight, module.bias)


# What a step honours. Every other field of interventions or of a sweep has to be at its default, and so has every one
# that is added later, until it is honoured and named here.
_SUPPORTED = {
    Interventions: {"heads_off", "source_positions", "target_positions", "patches", "edits"},
    Sweep: {"interventions", "gates", "values", "edits"},
}


def _unsupported(changes: Changes, config: ModelConfig) -> list[str]:
    """Names of what a step would leave out."""
    supported = _SUPPORTED.get(type(changes))
    if supported is None:
        return [type(changes).__name__]
    found = [f.name for f in fields(changes) if f.name not in supported and getattr(changes, f.name) != _default(f)]
    if isinstance(changes, Sweep):
        found += ["gates that differ by position" for gates in changes.gates.values() if gates.ndim > 3]
        found += _unsupported(changes.interventions, config)
    # Of the inside of an attention the fused one shows nothing.
    return found + [place.name for place in visited(changes, config) if place.name.endswith((".scores", ".pattern"))]


def _default(field: Field) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _gate(attention: MultiHeadAttention, interventions: Changes, kind: AttentionKind, layer: int) -> Tensor | None:
    """What each head is multiplied by, [batch or 1, heads, 1, 1]; None where all speak."""
    edit = attention_edit(interventions, kind, layer)
    if edit is None:
        return None
    return edit.gate_for(attention.output.weight.new_empty(1, attention.num_heads, 1, 1))


def _norm(sublayer: SubLayer) -> tuple:
    norm = sublayer.norm
    return norm.normalized_shape, norm.weight, norm.bias, norm.eps

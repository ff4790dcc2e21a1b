"""The decoder for one new token a sentence, with little around the arithmetic.

One step of decoding is so little work that looking up modules and weights through torch.nn, splitting into small
operations, and reshaping between them take most of its time. This looks everything up once for many steps, keeps rows
as plain matrices, and uses torch's fused attention (4 operations in 1). It computes what Transformer.decode computes;
tests hold them equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import partial
from itertools import repeat
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.attention import MultiHeadAttention, scaled_dot_product
from attention_atlas.model.nets.cache import KeyValueCache, LayerCache
from attention_atlas.model.nets.layer import Layer, SourceMemory
from attention_atlas.model.nets.lean.attention import attend
from attention_atlas.model.nets.lean.products import Affine, Products
from attention_atlas.model.nets.places.visit import Visit, has_visits, visit
from attention_atlas.model.nets.sweep import Changes, Sweep, attention_edit
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import AttentionKind

Norm = Callable[[Tensor], Tensor]


class LayerRows(NamedTuple):
    """What a layer's attentions were computed of in a step, beside the rows before it and the source: each [batch,
    heads, 1, d_head]."""

    queries: Tensor
    keys: Tensor
    cross_queries: Tensor


class DecoderStep:
    """Steps of one model in evaluation mode, without records and with the interventions that it supports().
    Holds the model's own weights, so it follows changes made to them in place."""

    def __init__(
        self, model: Transformer, interventions: Changes = NO_INTERVENTIONS, products: Products | None = None
    ) -> None:
        """products: of the step that this one takes the place of. ValueError for interventions that it does not
        support: none is ever left out silently."""
        assert not model.training
        if unknown := _unsupported(interventions):
            raise ValueError(f"the lean step does not support {', '.join(unknown)}: take the model's own path")
        self.embedding = model.target_matrix
        self.encoding = partial(model.target_positions, length=1, positions=interventions.target_positions)
        self.needs_lengths = model.config.position_code is PositionCode.NORMALISED
        self.config, self.changes = model.config, interventions if has_visits(interventions) else None
        # As tensors: of a plain number, a product makes one each time, which takes ten times as long.
        self.scale, self.output_scale = map(self.embedding.new_tensor, (model.scale, model.output_scale))
        self.scales_output = model.output_scale != 1.0
        products = products or Products(model)
        self.layers = [_LayerStep(layer, interventions, products) for layer in model.decoder.layers]
        self.biases = None
        if model.decoder.relative:
            self.biases = partial(model.decoder.biases, new=1, changes=interventions)
        self.entry, self.norm = _norm(model.decoder.entry), _norm(model.decoder.norm)
        self.norm_before_positions = model.decoder.norm_before_positions
        self.logits = products(model.output_matrix, model.output_bias)

    @staticmethod
    def supports(interventions: Changes) -> bool:
        """Whether a step honours all of them: heads off, gates that are the same at all positions, positions, and what
        happens at any place."""
        return not _unsupported(interventions)

    def __call__(
        self, ids: Tensor, source: SourceMemory, cache: KeyValueCache, rows: list[LayerRows] | None = None
    ) -> Tensor:
        """ids [batch], the tokens after the cache's rows -> logits [batch, vocabulary] of the next ones. The cache
        grows by a row. rows: receives what each layer's attentions were computed of."""
        position = cache.length
        x = torch.embedding(self.embedding, ids) * self.scale
        encoding = self.encoding(position, lengths=source.lengths if self.needs_lengths else None)
        if self.needs_lengths and encoding is not None:
            encoding = encoding[:, 0]  # [batch, d_model], elsewhere [1, d_model]
        at = self._at("decoder", position)
        if at is not None:
            x = at("embed", x[:, None])[:, 0]
            encoding = None if encoding is None else at("pos", encoding[:, None])[:, 0]
        if self.norm_before_positions:
            x = self.entry(x)
        x = x if encoding is None else x + encoding
        x = x if self.norm_before_positions else self.entry(x)
        biases = repeat(None) if self.biases is None else self.biases(position)
        for layer, layer_cache, bias in zip(self.layers, cache.layers, biases):
            x, left = layer(x, source, layer_cache, bias, position, self._at(layer.name, position))
            if rows is not None:
                rows.append(left)
        cache.length += 1
        x = self.norm(x)
        if at is not None:
            x = at("final", x[:, None])[:, 0]
        logits, at = self.logits(x * self.output_scale if self.scales_output else x), self._at("", position)
        return logits if at is None else at("logits", logits[:, None])[:, 0]

    def _at(self, prefix: str, position: int) -> Visit | None:
        return None if self.changes is None else visit(self.changes, prefix, position, self.config)


class _LayerStep:
    """What model.nets.layer.Layer does in the decoder, for one row x [batch, d_model] a sentence."""

    def __init__(self, layer: Layer, interventions: Changes, products: Products) -> None:
        def linear(module: nn.Linear) -> Affine:
            return products(module.weight, module.bias)

        self.layer, self.name = layer, f"decoder.{layer.index}"
        self.norm_first, self.residual = layer.sublayers[0].norm_first, layer.sublayers[0].residual
        self.scale = None if layer.self_attention.scaled else 1.0  # None: 1 / sqrt(d_k)
        self.norms = [_norm(sublayer.norm) for sublayer in layer.sublayers]
        self.heads, self.d_head = layer.self_attention.num_heads, layer.self_attention.d_head
        self.projection = linear(layer.self_attention.projection)
        self.output = linear(layer.self_attention.output)
        self.self_gate = _gate(layer.self_attention, interventions, AttentionKind.DECODER_SELF, layer.index)
        self.cross_gate = _gate(layer.cross_attention, interventions, AttentionKind.CROSS, layer.index)
        cross: MultiHeadAttention = layer.cross_attention
        self.cross_queries = products(cross.projection.weight, cross.projection.bias, slice(cross.width))
        self.cross_output = linear(cross.output)
        self.activation = layer.feed_forward.activation
        self.activated = torch.relu_ if self.activation is torch.relu else self.activation  # of what nobody else has
        self.expand, self.contract = linear(layer.feed_forward.expand), linear(layer.feed_forward.contract)
        self.gate = None if layer.feed_forward.gate is None else linear(layer.feed_forward.gate)

    def __call__(
        self,
        x: Tensor,
        source: SourceMemory,
        cache: LayerCache,
        bias: Tensor | None,
        position: int,
        at: Visit | None = None,
    ) -> tuple[Tensor, LayerRows]:
        """x after the layer, and what its attentions were computed of. Six parameters: what a layer reads, and what may
        change it."""
        batch, heads, d_head = x.size(0), self.heads, self.d_head
        around_self, around_cross, around_feed_forward = self.norms

        if at is not None:
            x = at("resid_pre", x[:, None])[:, 0]
        joined = self.projection(self._enter(x, around_self))  # [batch, 3 * width]
        queries, keys, values = joined.view(batch, 3, heads, 1, d_head).unbind(1)  # each [batch, heads, 1, d_head]
        if at is not None:
            queries, keys, values = at("self.q", queries), at("self.k", keys), at("self.v", values)
            bias = None if bias is None else at("self.bias", bias)
        own = queries, keys
        keys, values = cache.extend(position, keys, values)
        context = None if at is None else self._changed("self", at, queries, keys, values, bias=bias)
        if context is None:  # [batch, heads, 1, d_head]
            context = attend(queries, keys, values, bias, self.scale)
        if self.self_gate is not None:
            context = context * self.self_gate
        if at is not None:
            context = at("self.z", context)
        x = self._leave(x, self.output, context.reshape(batch, -1), around_self, at, ("self", "resid_mid"))

        queries = self.cross_queries(self._enter(x, around_cross)).view(batch, heads, 1, d_head)
        keys, values = source.keys_values(self.layer)
        if at is not None:
            queries, keys, values = at("cross.q", queries), at("cross.k", keys), at("cross.v", values)
        context = None if at is None else self._changed("cross", at, queries, keys, values, mask=source.mask)
        if context is None:
            context = attend(queries, keys, values, source.mask, self.scale)
        if self.cross_gate is not None:
            context = context * self.cross_gate
        if at is not None:
            context = at("cross.z", context)
        x = self._leave(x, self.cross_output, context.reshape(batch, -1), around_cross, at, ("cross", "resid_cross"))

        entered = self._enter(x, around_feed_forward)
        hidden = self.expand(entered)
        if at is None:
            active = self.activated(hidden)
        else:
            active = self.activation(at("ffn.pre", hidden[:, None])[:, 0])
        if self.gate is not None:
            gate = self.gate(entered)
            active = active * (gate if at is None else at("ffn.gate", gate[:, None])[:, 0])
        if at is not None:
            active = at("ffn.post", active[:, None])[:, 0]
        x = self._leave(x, self.contract, active, around_feed_forward, at, ("ffn", "resid_post"))
        return x, LayerRows(*own, queries)

    def _changed(
        self,
        part: str,
        at: Visit,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor | None:
        """What the heads read, [batch, heads, 1, d_head], where scores or pattern are changed: the fused attention
        shows nothing of its inside. None where they are not, so that an edit that changes nothing changes no bit.
        Seven parameters: those of an attention, and what happens inside."""
        if not at.is_at(f"{part}.scores", f"{part}.pattern"):
            return None
        changed = False

        def watched(name: str, x: Tensor) -> Tensor:
            nonlocal changed
            found = at(f"{part}.{name}", x)
            changed = changed or not torch.equal(found, x)
            return found

        context, _ = scaled_dot_product(queries, keys, values, mask, bias=bias, scaled=self.scale is None, at=watched)
        return context if changed else None

    def _enter(self, x: Tensor, norm: Norm) -> Tensor:
        return norm(x) if self.norm_first else x

    def _leave(self, x: Tensor, last: Affine, inner: Tensor, norm: Norm, at: Visit | None, names: tuple) -> Tensor:
        """The stream after a sub-layer whose last matrix is given what is inside. Six parameters: that, and the names
        of the places where what it adds, and the stream, may be changed."""
        if at is None:
            summed = last(inner, x if self.residual else None)
            return summed if self.norm_first else norm(summed)
        part, after = names
        output = at(f"{part}.out", last(inner)[:, None])[:, 0]
        summed = x + output if self.residual else output
        x = summed if self.norm_first else norm(summed)
        return at(after, x[:, None])[:, 0]


# What a step honours. Every other field of interventions or of a sweep has to be at its default, and so has every one
# that is added later, until it is honoured and named here.
_SUPPORTED = {
    Interventions: {"heads_off", "source_positions", "target_positions", "patches", "edits"},
    Sweep: {"interventions", "gates", "values", "edits"},
}


def _unsupported(changes: Changes) -> list[str]:
    """Names of what a step would leave out."""
    supported = _SUPPORTED.get(type(changes))
    if supported is None:
        return [type(changes).__name__]
    found = [f.name for f in fields(changes) if f.name not in supported and getattr(changes, f.name) != _default(f)]
    if isinstance(changes, Sweep):
        found += ["gates that differ by position" for gates in changes.gates.values() if gates.ndim > 3]
        found += _unsupported(changes.interventions)
    return found


def _default(field: Field) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _gate(attention: MultiHeadAttention, interventions: Changes, kind: AttentionKind, layer: int) -> Tensor | None:
    """What each head is multiplied by, [batch or 1, heads, 1, 1]; None where all speak."""
    edit = attention_edit(interventions, kind, layer)
    if edit is None:
        return None
    return edit.gate_for(attention.output.weight.new_empty(1, attention.num_heads, 1, 1))


def _norm(module: nn.Module) -> Norm:
    """What a norm, or nothing in its place, does, without a look at the module each time."""
    if isinstance(module, nn.Identity):
        return lambda x: x
    shape, weight, epsilon = module.normalized_shape, module.weight, module.eps
    if isinstance(module, nn.RMSNorm):
        return partial(_rms_norm, weight, epsilon, torch.zeros_like(weight))
    bias = module.bias
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


def _rms_norm(weight: Tensor, epsilon: float, zeros: Tensor, x: Tensor) -> Tensor:
    """torch.rms_norm, which on a CPU is ten small operations, of a single row in two and a number between them."""
    if x.size(0) > 1 or x.dtype != torch.float32 or x.device.type != "cpu":
        return torch.rms_norm(x, weight.shape, weight, epsilon)
    length = torch.linalg.vector_norm(x).item()
    return torch.addcmul(zeros, x, weight, value=(length * length / x.size(1) + epsilon) ** -0.5)

"""The cached decoding step: one new token for each sentence, over the keys and values of the tokens before it.

DecoderStep computes what Transformer.decode computes for one row a sentence, with less overhead: modules and weights
are looked up once for many steps, rows stay plain matrices [batch, d_model], and attention is PyTorch's fused kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import partial
from itertools import repeat
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.attention import MultiHeadAttention, scaled_dot_product
from attention_atlas.model.nets.cache import KeyValueCache, LayerCache
from attention_atlas.model.nets.layer import Layer, SourceMemory
from attention_atlas.model.nets.places.visit import Visit, has_visits, visit
from attention_atlas.model.nets.products import StepProduct
from attention_atlas.model.nets.sweep import Changes, Sweep, attention_edit
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import AttentionKind

MANY_SENTENCES = 8  # from which plain products are faster than the fused attention kernel with its one query a head
MAX_PACKED = 64_000_000  # numbers that a step reads; packed copies of a larger model would take too much memory

Product = Callable[..., StepProduct]


class LayerRows(NamedTuple):
    """The queries and keys that one layer computed for the new tokens, each [batch, heads, 1, d_head]."""

    queries: Tensor
    keys: Tensor
    cross_queries: Tensor


class DecoderStep:
    """Decoding steps of one Transformer in evaluation mode, without records.

    It reads the model's own weights and follows changes that are written to them. Build a step for each text: changed
    modules are not noticed.

    >>> step = DecoderStep(model)
    >>> source, cache = model.encode(source_ids), model.new_cache()
    >>> logits = step(torch.tensor([begin_id]), source, cache)  # [1, vocabulary]
    """

    def __init__(
        self,
        model: Transformer,
        interventions: Changes = NO_INTERVENTIONS,
        products: dict[tuple, StepProduct] | None = None,
    ) -> None:
        """Raises ValueError for interventions that supports() rejects.

        products: those of an earlier step of the same text and model, which differed in its interventions only.
        """
        assert not model.training
        if unsupported := _unsupported(interventions):
            raise ValueError(f"the cached step does not support {', '.join(unsupported)}: use Transformer.decode")
        self.products: dict[tuple, StepProduct] = {} if products is None else products
        pack = model.step_numbers <= MAX_PACKED

        def product(weight: Tensor, bias: Tensor | None, rows: slice = slice(None)) -> StepProduct:
            key = weight.data_ptr(), rows.start, rows.stop
            if key not in self.products:
                self.products[key] = StepProduct(weight, bias, rows, pack=pack)
            return self.products[key]

        self.embedding = model.target_matrix
        self.encoding = partial(model.target_positions, length=1, positions=interventions.target_positions)
        self.needs_lengths = model.config.position_code is PositionCode.NORMALISED
        self.config, self.changes = model.config, interventions if has_visits(interventions) else None
        self.scale, self.output_scale = model.scale, model.output_scale
        self.layers = [_LayerStep(layer, interventions, product) for layer in model.decoder.layers]
        self.biases = None
        if model.decoder.relative:
            self.biases = partial(model.decoder.biases, new=1, changes=interventions)
        self.entry, self.norm = _norm_function(model.decoder.entry), _norm_function(model.decoder.norm)
        self.norm_before_positions = model.decoder.norm_before_positions
        self.logits = product(model.output_matrix, model.output_bias)

    @staticmethod
    def supports(interventions: Changes) -> bool:
        """Return whether a step applies all of these interventions: heads off, gates that are equal at all positions,
        changed target positions, edits and patches."""
        return not _unsupported(interventions)

    def __call__(
        self, ids: Tensor, source: SourceMemory, cache: KeyValueCache, rows: list[LayerRows] | None = None
    ) -> Tensor:
        """Read the next tokens, ids int64 [batch], and return the logits [batch, vocabulary] of those after them.

        The cache grows by one row. rows: a list to which each layer's LayerRows are appended.
        """
        position = cache.length
        x = torch.embedding(self.embedding, ids) * self.scale
        encoding = self.encoding(position, lengths=source.lengths if self.needs_lengths else None)
        if self.needs_lengths and encoding is not None:
            encoding = encoding[:, 0]  # [batch, d_model]; other codes give [1, d_model]
        at = self._visit("decoder", position)
        if at is not None:
            x = at("embed", x[:, None])[:, 0]
            encoding = None if encoding is None else at("pos", encoding[:, None])[:, 0]
        if self.norm_before_positions:
            x = self.entry(x)
        x = x if encoding is None else x + encoding
        x = x if self.norm_before_positions else self.entry(x)
        biases = repeat(None) if self.biases is None else self.biases(position)
        for layer, layer_cache, bias in zip(self.layers, cache.layers, biases):
            x, layer_rows = layer(x, source, layer_cache, bias, position, self._visit(layer.name, position))
            if rows is not None:
                rows.append(layer_rows)
        cache.length += 1
        x = self.norm(x)
        if at is not None:
            x = at("final", x[:, None])[:, 0]
        logits, at = self.logits(x if self.output_scale == 1.0 else x * self.output_scale), self._visit("", position)
        return logits if at is None else at("logits", logits[:, None])[:, 0]

    def _visit(self, prefix: str, position: int) -> Visit | None:
        return None if self.changes is None else visit(self.changes, prefix, position, self.config)


class _LayerStep:
    """The decoder's model.nets.layer.Layer for one row x [batch, d_model] a sentence."""

    def __init__(self, layer: Layer, interventions: Changes, product: Product) -> None:
        def module_product(module: nn.Linear) -> StepProduct:
            return product(module.weight, module.bias)

        self.layer, self.name = layer, f"decoder.{layer.index}"
        self.norm_first, self.residual = layer.sublayers[0].norm_first, layer.sublayers[0].residual
        self.scale = None if layer.self_attention.scaled else 1.0  # None: 1 / sqrt(d_k)
        self.norms = [_norm_function(sublayer.norm) for sublayer in layer.sublayers]
        self.heads, self.d_head = layer.self_attention.num_heads, layer.self_attention.d_head
        self.projection = module_product(layer.self_attention.projection)
        self.output = module_product(layer.self_attention.output)
        self.self_gate = _gate(layer.self_attention, interventions, AttentionKind.DECODER_SELF, layer.index)
        self.cross_gate = _gate(layer.cross_attention, interventions, AttentionKind.CROSS, layer.index)
        cross: MultiHeadAttention = layer.cross_attention
        self.cross_queries = product(cross.projection.weight, cross.projection.bias, slice(cross.width))
        self.cross_output = module_product(cross.output)
        feed_forward = layer.feed_forward
        self.activation = feed_forward.activation
        self.expand, self.contract = module_product(feed_forward.expand), module_product(feed_forward.contract)
        self.gate = None if feed_forward.gate is None else module_product(feed_forward.gate)

    def __call__(
        self,
        x: Tensor,
        source: SourceMemory,
        cache: LayerCache,
        bias: Tensor | None,
        position: int,
        at: Visit | None = None,
    ) -> tuple[Tensor, LayerRows]:
        """Return x after the layer, and what its attentions computed. bias: relative positions' share of the scores."""
        batch, heads, d_head = x.size(0), self.heads, self.d_head
        self_norm, cross_norm, feed_forward_norm = self.norms

        if at is not None:
            x = at("resid_pre", x[:, None])[:, 0]
        joined = self.projection(self._enter(x, self_norm))  # [batch, 3 * width]
        queries, keys, values = joined.view(batch, 3, heads, 1, d_head).unbind(1)  # each [batch, heads, 1, d_head]
        if at is not None:
            queries, keys, values = at("self.q", queries), at("self.k", keys), at("self.v", values)
            bias = None if bias is None else at("self.bias", bias)
        self_queries, new_keys = queries, keys
        keys, values = cache.extend(position, keys, values)
        context = self._attend("self", at, queries, keys, values, bias=bias)  # [batch, heads, 1, d_head]
        if self.self_gate is not None:
            context = context * self.self_gate
        if at is not None:
            context = at("self.z", context)
        x = self._leave(x, self.output, context.reshape(batch, -1), self_norm, at, ("self", "resid_mid"))

        queries = self.cross_queries(self._enter(x, cross_norm)).view(batch, heads, 1, d_head)
        keys, values = source.keys_values(self.layer)
        if at is not None:
            queries, keys, values = at("cross.q", queries), at("cross.k", keys), at("cross.v", values)
        context = self._attend("cross", at, queries, keys, values, mask=source.mask)
        if self.cross_gate is not None:
            context = context * self.cross_gate
        if at is not None:
            context = at("cross.z", context)
        x = self._leave(x, self.cross_output, context.reshape(batch, -1), cross_norm, at, ("cross", "resid_cross"))

        entered = self._enter(x, feed_forward_norm)
        hidden = self.expand(entered)
        active = self.activation(hidden if at is None else at("ffn.pre", hidden[:, None])[:, 0])
        if self.gate is not None:
            gate = self.gate(entered)
            active = active * (gate if at is None else at("ffn.gate", gate[:, None])[:, 0])
        if at is not None:
            active = at("ffn.post", active[:, None])[:, 0]
        x = self._leave(x, self.contract, active, feed_forward_norm, at, ("ffn", "resid_post"))
        return x, LayerRows(self_queries, new_keys, queries)

    def _attend(
        self,
        part: str,
        at: Visit | None,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Return the heads' outputs [batch, heads, 1, d_head] of the attention `part`, "self" or "cross"."""
        if at is not None and at.is_at(f"{part}.scores", f"{part}.pattern"):
            # The fused kernel exposes neither scores nor weights. Its result is used where an edit changes neither, so
            # that such an edit changes no bit.
            is_changed = False

            def apply(name: str, x: Tensor) -> Tensor:
                nonlocal is_changed
                edited = at(f"{part}.{name}", x)
                is_changed = is_changed or not torch.equal(edited, x)
                return edited

            scaled = self.scale is None
            context, _ = scaled_dot_product(queries, keys, values, mask, bias=bias, scaled=scaled, at=apply)
            if is_changed:
                return context
        if queries.size(0) >= MANY_SENTENCES:
            return scaled_dot_product(queries, keys, values, mask, bias=bias, scaled=self.scale is None)[0]
        added = mask if bias is None else bias  # self-attention has no mask here, cross-attention no bias
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=added, scale=self.scale)

    def _enter(self, x: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        return norm(x) if self.norm_first else x

    def _leave(
        self,
        x: Tensor,
        product: StepProduct,
        inner: Tensor,
        norm: Callable[[Tensor], Tensor],
        at: Visit | None,
        names: tuple[str, str],
    ) -> Tensor:
        """Return the stream after a sub-layer that ends in `product`. names: its part, and the place after it."""
        if at is None:
            summed = product(inner, x if self.residual else None)
            return summed if self.norm_first else norm(summed)
        part, after = names
        output = at(f"{part}.out", product(inner)[:, None])[:, 0]
        summed = x + output if self.residual else output
        x = summed if self.norm_first else norm(summed)
        return at(after, x[:, None])[:, 0]


# The fields that a step applies. Any other field, also one that is added later, must have its default value.
_SUPPORTED = {
    Interventions: {"heads_off", "source_positions", "target_positions", "patches", "edits"},
    Sweep: {"interventions", "gates", "values", "edits"},
}


def _unsupported(changes: Changes) -> list[str]:
    """Return the names of the fields that a step would ignore."""
    supported = _SUPPORTED.get(type(changes))
    if supported is None:
        return [type(changes).__name__]
    names = [f.name for f in fields(changes) if f.name not in supported and getattr(changes, f.name) != _default(f)]
    if isinstance(changes, Sweep):
        names += ["gates that differ by position" for gates in changes.gates.values() if gates.ndim > 3]
        names += _unsupported(changes.interventions)
    return names


def _default(field: Field) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _gate(attention: MultiHeadAttention, interventions: Changes, kind: AttentionKind, layer: int) -> Tensor | None:
    """Return the factor of each head's output, [batch or 1, heads, 1, 1]; None where all are 1."""
    edit = attention_edit(interventions, kind, layer)
    if edit is None:
        return None
    return edit.gate_for(attention.output.weight.new_empty(1, attention.num_heads, 1, 1))


def _norm_function(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a norm as a plain function (the identity if there is none)."""
    if isinstance(module, nn.Identity):
        return lambda x: x
    shape, weight, epsilon = module.normalized_shape, module.weight, module.eps
    if isinstance(module, nn.RMSNorm):
        return lambda x: torch.rms_norm(x, shape, weight, epsilon)
    bias = module.bias
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)

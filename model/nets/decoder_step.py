"""The cached decoding step: one new token for each sentence, over the keys and values of the tokens before it.

DecoderStep computes what Transformer.decode computes for one new token a sentence, with less overhead. Modules and
weights are looked up once for many steps, activations are plain matrices [batch, d_model] without a position axis, and
attention is PyTorch's fused kernel, except in batches of MANY_SENTENCES or more and where scores or weights are edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.attention import MultiHeadAttention, scaled_dot_product
from attention_atlas.model.nets.cache import KeyValueCache, LayerCache
from attention_atlas.model.nets.layer import Layer, SourceMemory
from attention_atlas.model.nets.places.visit import NO_VISIT, Visit, has_visits, visit
from attention_atlas.model.nets.products import StepProduct
from attention_atlas.model.nets.sweep import Changes, Sweep, attention_edit, plain_part
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import AttentionKind

# From this batch size on, attention by two matrix products is faster than the fused kernel, which is slow with a single
# query a head.
MANY_SENTENCES = 8
# Models with more weights in the decoder and output projection are not packed: the copies would take too much memory.
MAX_PACKED_WEIGHTS = 64_000_000

# Called with a weight, its bias or None, and optionally a slice of the weight's rows; returns the product with them.
ProductFactory = Callable[..., StepProduct]


class LayerQueriesKeys(NamedTuple):
    """The queries and keys that one layer computed for the new tokens, each [batch, heads, 1, d_head].

    model.decode.recorded computes attention maps from them, which need no values. The keys of cross-attention belong
    to the source and are read from SourceMemory.
    """

    queries: Tensor
    keys: Tensor
    cross_queries: Tensor


class DecoderStep:
    """Decoding steps of one Transformer in evaluation mode.

    A step keeps no LayerRecords; use Transformer.decode(record=True) for those. It reads the model's own weights, or
    packed copies: float16 matrices laid out for fast products (model.nets.products). After a write that PyTorch counts,
    such as `weight.mul_(2)`, a product stops using its copy and reads the weight itself.

    Build a new step for each text. A replaced module, and a write that PyTorch does not count (`weight.data`), are only
    noticed when a step is built.

    Changes at named places, such as "decoder.2.self.q", are made by a Visit: the edits that apply to one layer. The
    variable `edit_at` is that Visit, and `edit_at(place, x)` returns the edited x. has_visits() says whether any place
    is edited at all.

    >>> step = DecoderStep(model)
    >>> source, cache = model.encode(source_ids), model.new_cache()
    >>> logits = step(torch.tensor([begin_id]), source, cache)  # [1, vocabulary]
    """

    def __init__(self, model: Transformer, changes: Changes = NO_INTERVENTIONS) -> None:
        """Look up the model's weights. changes: Interventions or a Sweep that supports() accepts.

        Raises ValueError for other changes, and for a model in training mode.
        """
        if model.training:
            raise ValueError("a decoding step needs a model in evaluation mode: call model.eval() first")
        if not self.supports(changes):
            raise ValueError(
                f"the cached step does not support these changes, use Transformer.decode: {changes!r:.200}"
            )
        make_product = partial(StepProduct, pack=model.step_numbers <= MAX_PACKED_WEIGHTS)
        decoder = model.decoder
        self.config = model.config
        self.changes_at_places = changes if has_visits(changes) else None
        self.embedding, self.embedding_scale = model.target_matrix, model.scale
        self.encode_position = partial(model.target_positions, length=1, positions=plain_part(changes).target_positions)
        self.needs_lengths = model.config.position_code is PositionCode.NORMALISED
        # The norm of embeddings, before or after positions are added; in most models the identity.
        self.embedding_norm = _norm_function(decoder.entry)
        self.norm_before_positions = decoder.norm_before_positions
        self.layers = [_LayerStep(layer, changes, make_product) for layer in decoder.layers]
        self.no_biases = [None] * len(self.layers)
        self.compute_biases = partial(decoder.biases, new=1, changes=changes) if decoder.relative else None
        self.norm = _norm_function(decoder.norm)
        self.logits, self.output_scale = make_product(model.output_matrix, model.output_bias), model.output_scale

    @staticmethod
    def supports(changes: Changes) -> bool:
        """Return whether a step can make all of these changes.

        It can: heads off, gates that are equal at all positions, changed target positions, edits and patches. Changed
        source positions are accepted too: they act in the encoder, before the first step.
        """
        if isinstance(changes, Sweep):
            has_gates_by_query = any(gates.ndim == 4 for gates in changes.gates.values())
            if has_gates_by_query or changes.replacements or changes.capture:
                return False
        plain = plain_part(changes)
        return not (plain.cut_edges or plain.zeroed_edges or plain.in_words)

    def __call__(
        self,
        ids: Tensor,
        source: SourceMemory,
        cache: KeyValueCache,
        queries_keys: list[LayerQueriesKeys] | None = None,
    ) -> Tensor:
        """Read the next tokens, ids int64 [batch], and return the logits [batch, vocabulary] of those after them.

        The cache grows by one position. queries_keys: a list to which each layer's LayerQueriesKeys are appended.
        """
        position = cache.length
        encoding = self.encode_position(position, lengths=source.lengths if self.needs_lengths else None)
        if self.needs_lengths and encoding is not None:
            encoding = encoding[:, 0]  # [batch, d_model]; other codes give [1, d_model]
        biases = self.no_biases if self.compute_biases is None else self.compute_biases(position)
        logits = self.compute(ids, source, cache.layers, encoding, biases, position, queries_keys)
        cache.length += 1
        return logits

    def compute(
        self,
        ids: Tensor,
        source: SourceMemory,
        layer_caches: Sequence[LayerCache],
        encoding: Tensor | None,
        biases: Sequence[Tensor | None],
        position: int,
        queries_keys: list[LayerQueriesKeys] | None = None,
    ) -> Tensor:
        """Return the logits as a call does, for given parts of it that depend on the position.

        encoding      the code of the position, [batch or 1, d_model]; None: none is added
        layer_caches  of each layer, where extend() returns all keys and values that the new token may attend to
        biases        what is added to the scores of each layer's self-attention, as in _LayerStep
        position      of the new tokens, for edits
        """
        edit_at = self._visit("decoder", position)
        x = torch.embedding(self.embedding, ids) * self.embedding_scale
        x = _edit_matrix(edit_at, "embed", x)
        encoding = None if encoding is None else _edit_matrix(edit_at, "pos", encoding)
        if self.norm_before_positions:
            x = self.embedding_norm(x)
        x = x if encoding is None else x + encoding
        x = x if self.norm_before_positions else self.embedding_norm(x)
        for layer, layer_cache, bias in zip(self.layers, layer_caches, biases, strict=True):
            x, layer_queries_keys = layer(x, source, layer_cache, bias, position, self._visit(layer.name, position))
            if queries_keys is not None:
                queries_keys.append(layer_queries_keys)
        x = _edit_matrix(edit_at, "final", self.norm(x))
        logits = self.logits(x if self.output_scale == 1.0 else x * self.output_scale)
        return _edit_matrix(self._visit("", position), "logits", logits)  # the place "logits" has no prefix

    def _visit(self, prefix: str, position: int) -> Visit:
        """Return the edits at the places PREFIX.part."""
        if self.changes_at_places is None:
            return NO_VISIT
        return visit(self.changes_at_places, prefix, position, self.config)


class _LayerStep:
    """The decoder's model.nets.layer.Layer for one new token a sentence, x [batch, d_model]."""

    def __init__(self, layer: Layer, changes: Changes, make_product: ProductFactory) -> None:
        def module_product(module: nn.Linear) -> StepProduct:
            return make_product(module.weight, module.bias)

        self.layer, self.name = layer, f"decoder.{layer.index}"
        # All three sub-layers, and both attentions, are built from one config.
        self.norm_first, self.residual = layer.sublayers[0].norm_first, layer.sublayers[0].residual
        self.score_scale = None if layer.self_attention.scaled else 1.0  # None: PyTorch's default, 1 / sqrt(d_head)
        self.norms = [_norm_function(sublayer.norm) for sublayer in layer.sublayers]
        self.heads, self.d_head = layer.self_attention.num_heads, layer.self_attention.d_head
        self.projection = module_product(layer.self_attention.projection)
        self.output = module_product(layer.self_attention.output)
        self.self_head_factor = _head_factor(layer.self_attention, changes, AttentionKind.DECODER_SELF, layer.index)
        cross: MultiHeadAttention = layer.cross_attention
        self.cross_queries = make_product(cross.projection.weight, cross.projection.bias, slice(cross.width))
        self.cross_output = module_product(cross.output)
        self.cross_head_factor = _head_factor(cross, changes, AttentionKind.CROSS, layer.index)
        feed_forward = layer.feed_forward
        self.activation = feed_forward.activation
        self.expand, self.contract = module_product(feed_forward.expand), module_product(feed_forward.contract)
        self.ffn_gate = None if feed_forward.gate is None else module_product(feed_forward.gate)

    def __call__(
        self,
        x: Tensor,
        source: SourceMemory,
        cache: LayerCache,
        bias: Tensor | None,
        position: int,
        edit_at: Visit,
    ) -> tuple[Tensor, LayerQueriesKeys]:
        """Return x after the layer, and the queries and keys of its attentions.

        bias: what relative positions add to the scores of self-attention, [1, heads, 1, position + 1]; None: nothing.
        """
        batch, heads, d_head = x.size(0), self.heads, self.d_head
        self_norm, cross_norm, feed_forward_norm = self.norms

        x = _edit_matrix(edit_at, "resid_pre", x)
        projected = self.projection(self._enter(x, self_norm))  # [batch, 3 * heads * d_head]
        queries, keys, values = projected.view(batch, 3, heads, 1, d_head).unbind(1)  # each [batch, heads, 1, d_head]
        queries, keys, values = edit_at("self.q", queries), edit_at("self.k", keys), edit_at("self.v", values)
        bias = None if bias is None else edit_at("self.bias", bias)
        self_queries, new_keys = queries, keys
        keys, values = cache.extend(position, keys, values)
        context = self._attend("self", edit_at, queries, keys, values, bias=bias)  # [batch, heads, 1, d_head]
        if self.self_head_factor is not None:
            context = context * self.self_head_factor
        context = edit_at("self.z", context).reshape(batch, -1)
        x = self._leave(x, self.output, context, self_norm, edit_at, ("self.out", "resid_mid"))

        cross_queries = self.cross_queries(self._enter(x, cross_norm)).view(batch, heads, 1, d_head)
        keys, values = source.keys_values(self.layer)
        cross_queries = edit_at("cross.q", cross_queries)
        keys, values = edit_at("cross.k", keys), edit_at("cross.v", values)
        context = self._attend("cross", edit_at, cross_queries, keys, values, mask=source.mask)
        if self.cross_head_factor is not None:
            context = context * self.cross_head_factor
        context = edit_at("cross.z", context).reshape(batch, -1)
        x = self._leave(x, self.cross_output, context, cross_norm, edit_at, ("cross.out", "resid_cross"))

        entered = self._enter(x, feed_forward_norm)
        active = self.activation(_edit_matrix(edit_at, "ffn.pre", self.expand(entered)))
        if self.ffn_gate is not None:
            active = active * _edit_matrix(edit_at, "ffn.gate", self.ffn_gate(entered))
        active = _edit_matrix(edit_at, "ffn.post", active)
        x = self._leave(x, self.contract, active, feed_forward_norm, edit_at, ("ffn.out", "resid_post"))
        return x, LayerQueriesKeys(self_queries, new_keys, cross_queries)

    def _attend(
        self,
        attention: str,
        edit_at: Visit,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Return the heads' outputs [batch, heads, 1, d_head]. attention: "self" or "cross", as in names of places."""
        scaled = self.score_scale is None
        if edit_at and edit_at.is_at(f"{attention}.scores", f"{attention}.pattern"):
            # The fused kernel exposes neither scores nor weights, so they are computed here. If the edit is a no-op,
            # fall through to the normal path, so that the output stays bit-identical.
            is_changed = False

            def edit(part: str, x: Tensor) -> Tensor:
                nonlocal is_changed
                edited = edit_at(f"{attention}.{part}", x)
                is_changed = is_changed or not torch.equal(edited, x)
                return edited

            context, _ = scaled_dot_product(queries, keys, values, mask, bias=bias, scaled=scaled, edit_at=edit)
            if is_changed:
                return context
        if queries.size(0) >= MANY_SENTENCES:
            return scaled_dot_product(queries, keys, values, mask, bias=bias, scaled=scaled)[0]
        # Self-attention of the last position needs no mask, and cross-attention has no bias: at most one is a tensor.
        mask_or_bias = mask if bias is None else bias
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask_or_bias, scale=self.score_scale)

    def _enter(self, x: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        return norm(x) if self.norm_first else x

    def _leave(
        self,
        x: Tensor,
        last_product: StepProduct,
        inner: Tensor,
        norm: Callable[[Tensor], Tensor],
        edit_at: Visit,
        places: tuple[str, str],
    ) -> Tensor:
        """Return the residual stream [batch, d_model] after a sub-layer that ends in last_product(inner).

        places: the names of the sub-layer's output, and of the stream after it.
        """
        if not edit_at:
            summed = last_product(inner, x if self.residual else None)
            return summed if self.norm_first else norm(summed)
        output_place, stream_place = places
        output = _edit_matrix(edit_at, output_place, last_product(inner))
        summed = x + output if self.residual else output
        return _edit_matrix(edit_at, stream_place, summed if self.norm_first else norm(summed))


def _edit_matrix(edit_at: Visit, place: str, x: Tensor) -> Tensor:
    """Return x [batch, width] after the edits at a place, which get a position axis: [batch, 1, width]."""
    return edit_at(place, x[:, None])[:, 0] if edit_at else x


def _head_factor(attention: MultiHeadAttention, changes: Changes, kind: AttentionKind, layer: int) -> Tensor | None:
    """Return the factor of each head's output, [batch or 1, heads, 1, 1]; None where all are 1."""
    edit = attention_edit(changes, kind, layer)
    if edit is None:
        return None
    # head_factor() takes the heads' outputs, but reads only the number of heads, dtype and device.
    return edit.head_factor(attention.output.weight.new_empty(1, attention.num_heads, 1, 1))


def _norm_function(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a norm as a plain function (the identity if there is none), which skips the module's call overhead."""
    if isinstance(module, nn.Identity):
        return lambda x: x
    if not isinstance(module, (nn.LayerNorm, nn.RMSNorm)):  # a mistake in a toy
        return module
    shape, weight, epsilon = module.normalized_shape, module.weight, module.eps
    if isinstance(module, nn.RMSNorm):
        return lambda x: torch.rms_norm(x, shape, weight, epsilon)
    bias = module.bias
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)

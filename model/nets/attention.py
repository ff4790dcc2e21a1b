"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2).

Conventions:
  axes are  [batch, heads, query, key]
  masks are boolean, True = may attend, broadcastable to those axes
  d_head is the width of one head, d_k in the paper
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.nets.products import Linear, linear
from attention_atlas.model.nets.sweep import AttentionEdit
from attention_atlas.model.trace.language import Refusal

# Called with the name of a part, such as "scores", and its tensor; returns the edited tensor, with which the pass
# continues (model.nets.places.visit).
EditAt = Callable[[str, Tensor], Tensor]


def no_edit(part: str, x: Tensor) -> Tensor:
    """Return x: the EditAt of a pass without edits."""
    return x


def attention_weights(
    queries: Tensor,
    keys: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    scaled: bool = True,
    edit_at: EditAt = no_edit,
) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_head)), the weights of equation 1: [batch, heads, query, key].

    queries  [batch, heads, query, d_head]
    keys     [batch, heads, key, d_head]
    mask     True = may attend, None = all; every row needs a True, as model.nets.masks guarantees
    bias     is added to the scores
    scaled   False: without the division
    edit_at  edits "scores"

    Rows sum to 1, and masked cells are exactly 0.
    """
    scores = attention_scores(queries, keys, scaled=scaled)
    if bias is not None:
        scores = scores + bias
    return _softmax(edit_at("scores", scores), mask)


def attention_scores(queries: Tensor, keys: Tensor, *, scaled: bool = True) -> Tensor:
    """Return Q K^T / sqrt(d_head), [batch, heads, query, key]."""
    # Dividing the queries gives the same scores with far fewer divisions.
    divided = queries / math.sqrt(queries.shape[-1]) if scaled else queries
    return divided @ keys.transpose(-2, -1)


def _softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the softmax over the keys, in float32 for scores of half precision."""
    masked = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    return masked.softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))


def scaled_dot_product(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    keep: Tensor | None = None,
    scaled: bool = True,
    edit_at: EditAt = no_edit,
) -> tuple[Tensor, Tensor]:
    """Return Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V and its weights (Vaswani et al. 2017, equation 1).

    queries  [batch, heads, query, d_head]
    keys     [batch, heads, key, d_head], as values
    bias     what relative positions add to the scores, [1, heads, query, key] (Raffel et al. 2020, section 2.1)
    keep     an intervention: cells that are False lose their weight after the softmax, without renormalising
    edit_at  edits "scores" and "pattern"

    The output is [batch, heads, query, d_head]. The weights [batch, heads, query, key] are those of the softmax, before
    dropout, `keep` and edits of the pattern.
    """
    weights = attention_weights(queries, keys, mask, bias=bias, scaled=scaled, edit_at=edit_at)
    used = edit_at("pattern", weights if keep is None else weights * keep)
    if dropout > 0.0:
        used = F.dropout(used, dropout)
    return used.to(values.dtype) @ values, weights


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 .. head_h) W_O, all heads at once (section 3.2.2).

    One matrix holds W_Q, W_K and W_V, so that self-attention needs one product. Projecting is separate from attending,
    because a decoder with a key/value cache projects new rows only.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        *,
        scaled: bool = True,
        d_head: int | None = None,
        biases: bool = True,
    ) -> None:
        """d_head: width of a head; None: d_model / num_heads. Raises ValueError if that is not a whole number."""
        super().__init__()
        if d_head is None and d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not a multiple of the {num_heads} heads: pass d_head")
        self.d_model: int = d_model
        self.num_heads: int = num_heads
        self.dropout: float = dropout
        self.scaled: bool = scaled
        self.d_head: int = d_head or d_model // num_heads
        self.width: int = num_heads * self.d_head  # of all heads together
        self.projection: nn.Linear = Linear(d_model, 3 * self.width, bias=biases)  # rows: queries, keys, values
        self.output: nn.Linear = Linear(self.width, d_model, bias=biases)
        for part in self.projection.weight.chunk(3):  # each matrix by its own fan-in and fan-out
            nn.init.xavier_uniform_(part)
        nn.init.xavier_uniform_(self.output.weight)
        for bias in (self.projection.bias, self.output.bias) if biases else ():
            nn.init.zeros_(bias)

    def split_heads(self, x: Tensor) -> Tensor:
        """Return x [batch, length, width] as [batch, heads, length, d_head]."""
        return x.view(*x.shape[:-1], self.num_heads, self.d_head).transpose(1, 2)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of x [batch, length, d_model], for self-attention."""
        joined = self.projection(x).view(*x.shape[:-1], 3, self.num_heads, self.d_head)
        queries, keys, values = joined.permute(2, 0, 3, 1, 4).unbind()  # each [batch, heads, length, d_head]
        return queries, keys, values

    def project_rows(self, x: Tensor, rows: slice) -> Tensor:
        """Return x [.., d_model] times some rows of the joint matrix: [.., rows]."""
        return linear(x, self.projection.weight, self.projection.bias, rows)

    def project_queries(self, x: Tensor) -> Tensor:
        """Return the queries of x [batch, query, d_model]: in cross-attention the decoder's stream."""
        return self.split_heads(self.project_rows(x, slice(self.width)))

    def project_keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of memory [batch, key, d_model]: in cross-attention the encoder's output."""
        keys, values = self.project_rows(memory, slice(self.width, None)).chunk(2, dim=-1)
        return self.split_heads(keys), self.split_heads(values)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        edit: AttentionEdit | None = None,
        first_query: int = 0,
        edit_at: EditAt = no_edit,
        exact: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend with projected heads, join them and apply W_O.

        queries      [batch, heads, query, d_head]
        keys         [batch, heads, key, d_head], as values
        mask, bias   as in scaled_dot_product()
        first_query  position of the first query row, for edits that name positions
        edit_at      edits "scores", "pattern" and "z"
        exact        False allows the fused kernel, which rounds differently, returns no weights and edits only "z"

        Returns the output [batch, query, d_model] and the weights [batch, heads, query, key] or None.
        """
        keep = None
        if edit is not None and (edit.plain.cut or edit.plain.zeroed):
            shape = (self.num_heads, queries.shape[2], keys.shape[2])
            mask = _cut(mask, edges_mask(edit.plain.cut, shape, first_query).to(queries.device), first_query)
            keep = edges_mask(edit.plain.zeroed, shape, first_query).to(queries.device)
        dropout = self.dropout if self.training else 0.0
        plain = keep is None and bias is None
        on_cpu = queries.device.type == "cpu"
        # torch's fused kernel is a twentieth faster on the CPU. Its last bit may differ, which training tolerates, but
        # not the gradients of attribution methods: integrated gradients amplify rounding a hundredfold.
        allowed = not dropout and not torch.is_grad_enabled()
        if plain and not exact and (allowed or (self.training and not on_cpu)):
            scale, weights = None if self.scaled else 1.0, None
            context = F.scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout, scale=scale)
        else:
            context, weights = scaled_dot_product(
                queries,
                keys,
                values,
                mask,
                bias=bias,
                dropout=dropout,
                keep=keep,
                scaled=self.scaled,
                edit_at=edit_at,
            )
        if edit is not None:
            context = edit.apply(context, first_query)
        joined = edit_at("z", context).transpose(1, 2).flatten(2)  # [batch, query, heads * d_head]
        return self.output(joined), weights


def edges_mask(edges: tuple, shape: tuple[int, int, int], first_query: int = 0) -> Tensor:
    """Return a boolean mask [heads, query, key], False at the edges (query, key, head or None for all heads).

    Edges outside the shape, such as those of rows that are not decoded yet, are ignored.
    """
    mask = torch.ones(shape, dtype=torch.bool)
    for query, key, head in edges:
        row = query - first_query
        if 0 <= row < shape[1] and key < shape[2]:
            mask[slice(None) if head is None else head, row, key] = False
    return mask


def _cut(mask: Tensor | None, kept_edges: Tensor, first_query: int) -> Tensor:
    mask = kept_edges if mask is None else mask & kept_edges
    if not mask.any(-1).all():
        row = first_query + int((~mask.any(-1)).nonzero()[0][-1])
        raise Refusal("cutting these edges would leave query position {row} nothing to attend to", row=row)
    return mask

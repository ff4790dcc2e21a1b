"""Multi-head attention over inputs of different widths and any scoring function, with heads folded into the batch.

Courses write multi-head attention in this way, from one attention without heads. The networks of this project use
model.nets.attention, whose one matrix projects queries, keys and values of one width.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.nets.attention import attention_scores
from attention_atlas.model.nets.products import Linear

# Called with queries [rows, query, d_head] and keys [rows, key, d_head]; returns scores [rows, query, key].
Score = Callable[[Tensor, Tensor], Tensor]


def fold_heads(x: Tensor, num_heads: int) -> Tensor:
    """Return x [batch, length, width] as [batch * heads, length, width / heads]; courses name it transpose_qkv.

    A sentence's heads are consecutive rows, so an attention without heads computes all of them at once.
    """
    batch, length, width = x.shape
    return x.reshape(batch, length, num_heads, width // num_heads).transpose(1, 2).flatten(0, 1)


def unfold_heads(x: Tensor, num_heads: int) -> Tensor:
    """Return x [batch * heads, length, d_head] as [batch, length, heads * d_head], the inverse of fold_heads()."""
    return x.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)


def cosine_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the cosines of queries and keys (Graves et al. 2014, equation 6, with strength 1)."""
    return F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-2, -1)


def gaussian_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return -|q - k|^2 / (2 sqrt(d_head)), whose softmax is the Gaussian kernel of Nadaraya and Watson (1964)."""
    squares = (queries[..., :, None, :] - keys[..., None, :, :]).square().sum(-1)
    return squares / (-2 * math.sqrt(queries.shape[-1]))


class AdditiveScores(nn.Module):
    """v . tanh(W q + U k), for all heads with the same weights (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, d_head: int) -> None:
        super().__init__()
        self.of_query, self.of_key = Linear(d_head, d_head, bias=False), Linear(d_head, d_head)
        self.vector = Linear(d_head, 1, bias=False)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the scores [rows, query, key]."""
        sums = self.of_query(queries)[..., :, None, :] + self.of_key(keys)[..., None, :, :]
        return self.vector(torch.tanh(sums))[..., 0]


class FoldedAttention(nn.Module):
    """Multi-head attention whose query, key and value inputs may differ in width (section 3.2.2), over any scores.

    >>> attention = FoldedAttention(8, num_heads=2, query_width=8, key_width=5, value_width=3, score=cosine_scores)
    >>> output, weights = attention(torch.rand(1, 4, 8), torch.rand(1, 6, 5), torch.rand(1, 6, 3))
    >>> output.shape, weights.shape
    (torch.Size([1, 4, 8]), torch.Size([1, 2, 4, 6]))
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        *,
        query_width: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        score: Score = attention_scores,
        biases: bool = True,
    ) -> None:
        """width: of the output and of all heads together; the inputs' widths are the same unless they are given.

        score: a function, or a module with weights of its own; by default the scaled dot product.
        """
        super().__init__()
        if width % num_heads:
            raise ValueError(f"the width {width} is not a multiple of the {num_heads} heads")
        self.num_heads: int = num_heads
        self.score: Score = score
        self.queries, self.keys, self.values = (
            Linear(each or width, width, bias=biases) for each in (query_width, key_width, value_width)
        )
        self.output: nn.Linear = Linear(width, width, bias=biases)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the output [batch, query, width] and the weights [batch, heads, query, key].

        queries, keys, values  [batch, query, query_width], [batch, key, key_width], [batch, key, value_width]
        mask                   bool, broadcastable to [batch, heads, query, key], True = may attend; every row needs one
        """
        folded_queries, folded_keys, folded_values = (
            fold_heads(project(x), self.num_heads)
            for project, x in ((self.queries, queries), (self.keys, keys), (self.values, values))
        )
        scores = self.score(folded_queries, folded_keys).unflatten(0, (-1, self.num_heads))
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(dim=-1)
        context = weights.flatten(0, 1) @ folded_values
        return self.output(unfold_heads(context, self.num_heads)), weights

"""The attention of one query a sentence, in inference mode."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_atlas.model import processor

MANY, SHORT = 8, 16  # sentences; keys


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """What the heads read, [batch, heads, 1, d_head]. queries [batch, heads, 1, d_head]; keys, values [batch, heads,
    key, d_head]; mask: what is added to the scores, or False where nothing is read, [batch or 1, heads or 1, 1, key] or
    None; scale None: 1 / sqrt(d_head).

    Of many sentences torch's fused attention takes most of its time to begin with each head of each. A sum of values,
    weighted by a pattern, is what an embedding bag computes, whose kernel fetches ahead; and so are all scores of a
    query, as a sum of the keys' numbers, where those lie number by number (for_steps).

    us of 50 sentences of 8 heads of 32, one core of an AMD EPYC, fused and by bags: 8 keys 95 and 50, 17 keys 101 and
    52, 26 keys 155 and 85; of 8 sentences 16 and 17, 18 and 15, 24 and 18.
    """
    table = _rows(values) if queries.size(0) >= MANY and gains_by_bags() else None
    if table is None:
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
    batch, heads, length, d_head = values.shape
    scale, by_number = d_head**-0.5 if scale is None else scale, _rows(keys.mT)
    if by_number is None:
        scores = torch.baddbmm(_nothing(), queries.reshape(-1, 1, d_head), keys.flatten(0, 1).mT, beta=0, alpha=scale)
    else:
        read, starts = _bags(batch * heads, d_head, keys.stride(1) // length)
        scores = torch.embedding_bag(by_number, read, starts, False, 0, False, queries.mul(scale).reshape(-1))[0]
    if mask is not None:
        scores = scores.view(batch, heads, 1, length)
        scores = scores.masked_fill_(~mask, -math.inf) if mask.dtype is torch.bool else scores.add_(mask)
    if length < SHORT:  # torch's softmax takes short rows one by one, but columns side by side
        weights = scores.view(-1, length).t().contiguous().softmax(0).t()
    else:
        weights = scores.softmax(-1)
    read, starts = _bags(batch * heads, length, values.stride(1) // d_head)
    context = torch.embedding_bag(table, read, starts, False, 0, False, weights.reshape(-1))[0]
    return context.view(batch, heads, 1, d_head)


def for_steps(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The same, each [batch, heads, key, d_head], as attend() reads them fastest; to be worked out once for many steps,
    each of which would copy them. Of many sentences keys lie number by number, which takes a thirtieth off 1,000
    captions."""
    by_number = len(keys) >= MANY and gains_by_bags() and _have_bags(keys)
    return keys.mT.contiguous().mT if by_number else keys.contiguous(), values.contiguous()


def of_sentences(keys: Tensor, values: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
    """Those of some sentences, int64 [new batch], as attend() reads so many fastest."""
    by_number = keys.stride(-1) != 1 and len(sentences) >= MANY
    kept = keys.mT.index_select(0, sentences).mT if by_number else keys.index_select(0, sentences)
    return kept, values.index_select(0, sentences)


@cache
def gains_by_bags() -> bool:
    """Whether sums of rows are read faster by an embedding bag's kernel than by torch's products."""
    return torch.backends.cpu.get_cpu_capability().startswith("AVX") and not processor.is_intels()


def _have_bags(x: Tensor) -> bool:
    """Whether there is an embedding bag for these that reads faster."""
    return x.dtype is torch.float32 and x.device.type == "cpu"


@cache
def _nothing() -> Tensor:
    return torch.zeros(1, 1, 1)


def _rows(values: Tensor) -> Tensor | None:
    """The rows of memory that hold values [batch, heads, key, d_head], each head's one after the other: [row, d_head].
    None where they lie otherwise, or are not float32 on the CPU."""
    batch, heads, length, d_head = values.shape
    of_sentence, of_head, of_key, of_number = values.stride()
    whole = (of_key, of_number, of_sentence, of_head % d_head) == (d_head, 1, heads * of_head, 0)
    if not whole or not _have_bags(values):
        return None
    return values.as_strided(((batch * heads - 1) * (of_head // d_head) + length, d_head), (d_head, 1))


@lru_cache(maxsize=256)
def _bags(heads: int, length: int, apart: int) -> tuple[Tensor, Tensor]:
    """Which rows each head of each sentence sums, int32 [heads * length], and where each one's begin, int32 [heads].
    apart: rows from a head's first to the next one's."""
    first = torch.arange(0, heads * apart, apart, dtype=torch.int32)
    read = first[:, None] + torch.arange(length, dtype=torch.int32)
    return read.view(-1), torch.arange(0, heads * length, length, dtype=torch.int32)

"""Relative positions as curves: what a head adds to a score by how far the key is from the query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.nets.attention import attention_scores
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.transformer import Stack
from attention_atlas.model.trace.kinds import AttentionKind


@dataclass(frozen=True, eq=False)
class Curves:
    """distances int [n], the key's position less the query's; values float32 [heads, n], what is added."""

    distances: np.ndarray
    values: np.ndarray


@torch.inference_mode()
def curves(stack: Stack, layer: int) -> Curves:
    """Of one layer's table, as far as distances are told apart, and one further: from keys before the query to keys
    after it, in the decoder to the query's own. Of a stack that has relative positions."""
    table = stack.relative[min(layer, len(stack.relative) - 1)]
    reach = table.reach + 1
    distances = torch.arange(-reach, (reach if table.both_ways else 0) + 1, device=table.weight.device)
    return Curves(distances.cpu().numpy(), table.weight[table.bucket(distances)].t().float().cpu().numpy())


@dataclass(frozen=True)
class Spread:
    """Standard deviations over the cells of a head's map that are open: of q k^T (divided, where the network divides),
    of the bias, and of their sum."""

    content: float
    bias: float
    scores: float


def spread(output: ForwardOutput, kind: AttentionKind, layer: int, head: int) -> Spread:
    """Of one head of self-attention in one recorded pass, of a network that has relative positions."""
    record = output.attention(kind, layer)
    assert record.bias is not None
    content = exact(attention_scores(record.queries[0, head], record.keys[0, head], scaled=record.scaled))
    bias = exact(record.bias[0, head])
    seen = torch.ones_like(bias, dtype=torch.bool)
    seen = seen.tril() if kind is AttentionKind.DECODER_SELF else seen
    return Spread(*(float(part[seen].std(unbiased=False)) for part in (content, bias, content + bias)))

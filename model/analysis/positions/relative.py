"""Relative positions: the bias that a head adds to a score, by the distance from the query to the key."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.nets.attention import attention_scores
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.transformer import Stack
from attention_atlas.model.trace.kinds import AttentionKind


@torch.inference_mode()
def curves(stack: Stack, layer: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances, int [n], the position of the key minus that of the query, and one layer's biases there, float32
    [heads, n].

    They reach one position beyond the largest distance that the layer's table distinguishes; in the decoder they end
    with distance 0. The stack must have relative positions.
    """
    table = stack.relative[min(layer, len(stack.relative) - 1)]
    reach = table.reach + 1
    distances = torch.arange(-reach, (reach if table.both_ways else 0) + 1, device=table.weight.device)
    return distances.cpu().numpy(), table.weight[table.bucket(distances)].t().float().cpu().numpy()


def spread(output: ForwardOutput, kind: AttentionKind, layer: int, head: int) -> list[float]:
    """Return standard deviations over the open cells of a head's map in a recorded pass of self-attention.

    They are those of q k^T (scaled, if the network scales it), of the bias, and of their sum. The network must have
    relative positions.
    """
    record = output.attention(kind, layer)
    assert record.bias is not None
    content = exact(attention_scores(record.queries[0, head], record.keys[0, head], scaled=record.scaled))
    bias = exact(record.bias[0, head])
    is_open = torch.ones_like(bias, dtype=torch.bool)
    is_open = is_open.tril() if kind is AttentionKind.DECODER_SELF else is_open
    return [float(part[is_open].std(unbiased=False)) for part in (content, bias, content + bias)]

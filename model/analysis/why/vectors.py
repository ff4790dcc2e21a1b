"""What each head writes, as vectors: A v W_O key by key, in float64, from the records of a pass."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_atlas.model.nets.attention import MultiHeadAttention, edges_mask
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.records import AttentionRecord

Norm = nn.LayerNorm | nn.RMSNorm


def used_weights(record: AttentionRecord) -> Tensor:
    """The weights that values were summed with, float64 [batch, heads, query, key]: the softmax's, less what an
    intervention took away after it."""
    weights = exact(record.weights)
    weights = weights * edges_mask(record.edit.zeroed, weights.shape[1:]).to(weights.device)
    on = weights.new_ones(weights.shape[1])
    on[list(record.edit.heads_off)] = 0.0
    return weights * on[:, None, None]


def output_by_head(attention: MultiHeadAttention) -> Tensor:
    """W_O by head, float64 [heads, d_model, d_head]: what a head's output becomes in the residual stream."""
    return exact(attention.output.weight.detach()).unflatten(1, (attention.num_heads, -1)).transpose(0, 1)


def written_values(attention: MultiHeadAttention, record: AttentionRecord) -> Tensor:
    """What each head would write if it read one key alone: float64 [batch, heads, key, d_model], the values' bias
    inside."""
    return torch.einsum("bhjk,hdk->bhjd", exact(record.values), output_by_head(attention))


def frozen(norm: Norm, z: Tensor, read: Tensor) -> Tensor:
    """The norm's linear part on z [.., d_model] with the scale of what it read [.., d_model], without its bias:
    gamma * (z - mean z) / s, of an RMS norm gamma * z / s. float64."""
    return exact(norm.weight) * centred(norm, z) / scale(norm, read)


def transposed(norm: Norm, a: Tensor, read: Tensor) -> Tensor:
    """frozen() transposed, on a [.., d_model]: a . frozen(z) = transposed(a) . z."""
    return centred(norm, exact(norm.weight) * a) / scale(norm, read)


def scale(norm: Norm, read: Tensor) -> Tensor:
    """The standard deviation, or the root mean square, with epsilon, that a norm divided by, float64 [.., 1]."""
    return (centred(norm, exact(read)).square().mean(-1, keepdim=True) + norm.eps).sqrt()


def centred(norm: Norm, x: Tensor) -> Tensor:
    """x [.., d_model] less its mean, which an RMS norm leaves in it."""
    return x if isinstance(norm, nn.RMSNorm) else x - x.mean(-1, keepdim=True)

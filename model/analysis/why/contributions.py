"""Contributions of each token to each row of an attention block: vectors A v W_O, and ALTI's shares of them.

All vectors are float64, computed from the records of a pass. ALTI: Ferrando et al. (2022).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.model.nets.attention import MultiHeadAttention, edges_mask
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.layer import Layer
from attention_atlas.model.nets.records import AttentionRecord, ForwardOutput, LayerRecord
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.flow import decoder_flow, encoder_flow
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind

Norm = nn.LayerNorm | nn.RMSNorm
CHUNK = 4_000_000  # float64 numbers held at once


def applied_weights(record: AttentionRecord) -> Tensor:
    """Return the weights that values were summed with, float64 [batch, heads, query, key].

    They are the softmax's weights less those that an intervention removed after the softmax.
    """
    weights = exact(record.weights)
    weights = weights * edges_mask(record.edit.zeroed, weights.shape[1:]).to(weights.device)
    on = weights.new_ones(weights.shape[1])
    on[list(record.edit.heads_off)] = 0.0
    return weights * on[:, None, None]


def split_output_matrix(attention: MultiHeadAttention) -> Tensor:
    """Return W_O by head, float64 [heads, d_model, d_head]."""
    return exact(attention.output.weight.detach()).unflatten(1, (attention.num_heads, -1)).transpose(0, 1)


def project_values(attention: MultiHeadAttention, record: AttentionRecord) -> Tensor:
    """Return v W_O, what each head would write if it read one key alone: float64 [batch, heads, key, d_model].

    The values' bias is included.
    """
    return torch.einsum("bhjk,hdk->bhjd", exact(record.values), split_output_matrix(attention))


def apply_frozen_norm(norm: Norm, z: Tensor, norm_input: Tensor) -> Tensor:
    """Apply a norm's linear part to z [.., d_model], with the scale of its recorded input and without its bias.

    gamma * (z - mean z) / s for a layer norm, gamma * z / s for an RMS norm, in float64.
    """
    return exact(norm.weight) * _center(norm, z) / _norm_scale(norm, norm_input)


def apply_transposed_norm(norm: Norm, a: Tensor, norm_input: Tensor) -> Tensor:
    """Apply the transpose of apply_frozen_norm() to a [.., d_model]: a . frozen(z) = transposed(a) . z."""
    return _center(norm, exact(norm.weight) * a) / _norm_scale(norm, norm_input)


def _norm_scale(norm: Norm, norm_input: Tensor) -> Tensor:
    """Return the divisor of a norm, epsilon included: float64 [.., 1]."""
    return (_center(norm, exact(norm_input)).square().mean(-1, keepdim=True) + norm.eps).sqrt()


def _center(norm: Norm, x: Tensor) -> Tensor:
    """Subtract the mean of x [.., d_model], unless the norm is an RMS norm."""
    return x if isinstance(norm, nn.RMSNorm) else x - x.mean(-1, keepdim=True)


def contribution_vectors(
    layers: Sequence[Layer], records: Sequence[LayerRecord], kind: AttentionKind, rows: slice = slice(None)
) -> Tensor:
    """Return the sum over heads of A v W_O by key, float64 [layer, query, key, d_model], for some query rows.

    The batch must be one. With post-norm, after the linear part of the block's norm (Kobayashi et al. 2020, 2021).
    """
    cross = kind is AttentionKind.CROSS
    attention_records = [record.attention(kind) for record in records]
    weights = torch.stack([applied_weights(record)[0, :, rows] for record in attention_records])
    attentions = [layer.cross_attention if cross else layer.self_attention for layer in layers]
    values = torch.stack([project_values(*pair)[0] for pair in zip(attentions, attention_records)])
    vectors = torch.einsum("lhtj,lhjd->ltjd", weights, values)
    sublayers = [layer.sublayers[int(cross)] for layer in layers]
    if sublayers[0].norm_first:
        return vectors
    inputs = [record.sublayer(kind.sublayer).norm_input[0, rows, None] for record in records]
    return torch.stack(
        [apply_frozen_norm(sublayer.norm, *parts) for sublayer, *parts in zip(sublayers, vectors, inputs)]
    )


def alti_shares(parts: Tensor, whole: Tensor) -> Tensor:
    """Return ALTI's shares, [.., query, part] (Ferrando et al. 2022, equations 4 to 6).

    A part's raw share is how much smaller the L1 norm of the whole is without it, at least 0; a row's shares sum to 1.
    parts: [.., query, part, d_model]; whole: [.., query, d_model].
    """
    length = whole.abs().sum(-1, keepdim=True)
    raw = (length - (whole[..., None, :] - parts).abs_().sum(-1)).clamp_min(0.0)
    total = raw.sum(-1, keepdim=True)
    # If no part of a row reduces the norm, its residual, the last part, gets all.
    residual_only = torch.zeros_like(raw)
    residual_only[..., -1] = 1.0
    return torch.where(total > 0, raw / total.clamp_min(torch.finfo(total.dtype).tiny), residual_only)


def alti_flow(model: Transformer, output: ForwardOutput) -> np.ndarray:
    """Return ALTI+: contributions rolled out to the words of both sides (Ferrando et al. 2022, sections 2.2, 2.3).

    Float64 [layers, target, source + target], as decoder_flow() has it. output: of a recorded pass, a batch of one.
    """
    encoder, decoder, cross = (alti_contributions(model, output, kind) for kind in TRANSFORMER_KINDS)
    return decoder_flow(decoder, cross, encoder_flow(encoder)[-1])


@torch.inference_mode()
def alti_contributions(model: Transformer, output: ForwardOutput, kind: AttentionKind) -> np.ndarray:
    """Return the share of each key in each attention block of a kind, float64 [layers, query, key].

    Rows of self-attention sum to 1; rows of cross-attention lack the residual's share. output: of a recorded pass, a
    batch of one.
    """
    layers = (model.encoder if kind is AttentionKind.ENCODER_SELF else model.decoder).layers
    records, cross = output.records(kind), kind is AttentionKind.CROSS
    sublayer_records = [record.sublayer(kind.sublayer) for record in records]
    stream, whole = (
        torch.stack([exact(getattr(record, name)[0]) for record in sublayer_records]) for name in ("before", "after")
    )
    sublayers = [layer.sublayers[int(cross)] for layer in layers]
    if not sublayers[0].norm_first:
        inputs = [record.norm_input[0] for record in sublayer_records]
        stream = torch.stack(
            [apply_frozen_norm(sublayer.norm, *parts) for sublayer, *parts in zip(sublayers, stream, inputs)]
        )
    step = max(1, CHUNK // (len(layers) * records[0].attention(kind).weights.shape[-1] * stream.shape[-1]))
    chunks = []
    for start in range(0, stream.shape[1], step):
        rows = slice(start, start + step)
        by_key, residual = contribution_vectors(layers, records, kind, rows), stream[:, rows]
        if cross:
            chunks.append(alti_shares(torch.cat((by_key, residual[:, :, None]), dim=2), whole[:, rows]))
        else:
            chunks.append(_self_shares(by_key, residual, whole[:, rows], start))
    return torch.cat(chunks, dim=1)[..., :-1].cpu().numpy()


def _self_shares(by_key: Tensor, residual: Tensor, whole: Tensor, start: int) -> Tensor:
    """Return self-attention's shares [layer, query, key + 1], with residual and own position as one part.

    The last column is 0: its share is added to the row's own position.
    """
    at = torch.arange(residual.shape[-2], device=residual.device)
    by_key[:, at, start + at] += residual
    shares = alti_shares(torch.cat((by_key, torch.zeros_like(residual)[:, :, None]), dim=2), whole)
    shares[:, at, start + at] += shares[..., -1]
    shares[..., -1] = 0.0
    return shares

"""What each token contributes to each row of one attention block: vectors, and ALTI's shares (Ferrando et al. 2022)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from model.analysis.why.vectors import frozen, used_weights, written_values
from model.nets.layer import Layer
from model.nets.records import ForwardOutput, LayerRecord
from model.nets.transformer import Transformer
from model.trace.kinds import AttentionKind

CHUNK = 4_000_000  # numbers of float64 held at once


def mixed(layer: Layer, record: LayerRecord, kind: AttentionKind, rows: slice = slice(None)) -> Tensor:
    """The sum over heads of A v W_O by key: float64 [query, key, d_model], for some query rows of a batch of one; with
    post-norm after the linear part of the block's norm (Kobayashi et al. 2020, 2021)."""
    cross = kind is AttentionKind.CROSS
    attention, found = layer.cross_attention if cross else layer.self_attention, record.attention(kind)
    weights = used_weights(found)[0, :, rows]
    summed = torch.einsum("htj,hjd->tjd", weights, written_values(attention, found)[0])
    sublayer = layer.sublayers[int(cross)]
    if sublayer.norm_first:
        return summed
    return frozen(sublayer.norm, summed, record.sublayer(kind.sublayer).norm_input[0, rows, None])


def shares(parts: Tensor, whole: Tensor) -> Tensor:
    """How much nearer to nothing the whole [query, d_model] is without each of its parts [query, part, d_model], by the
    sum of absolute differences, as shares of the row: [query, part] (Ferrando et al. 2022, equations 4 to 6)."""
    length = whole.abs().sum(-1, keepdim=True)
    nearer = (length - (whole[:, None] - parts).abs().sum(-1)).clamp_min(0.0)
    total = nearer.sum(-1, keepdim=True)
    # A row of which no part comes near the whole: its own residual, the last part, stands for it.
    alone = torch.zeros_like(nearer)
    alone[:, -1] = 1.0
    return torch.where(total > 0, nearer / total.clamp_min(torch.finfo(total.dtype).tiny), alone)


def block_shares(layer: Layer, record: LayerRecord, kind: AttentionKind) -> Tensor:
    """Shares of one block's output, float64 [query, key + 1]: each key's through attention, then the residual's."""
    index = int(kind is AttentionKind.CROSS)
    sublayer, passed, found = layer.sublayers[index], record.sublayer(kind.sublayer), record.attention(kind)
    stream, whole, read = passed.before[0].double(), passed.after[0].double(), passed.norm_input[0]
    step = max(1, CHUNK // (found.weights.shape[-1] * stream.shape[-1]))
    parts = []
    for start in range(0, len(stream), step):
        rows = slice(start, start + step)
        by_key, residual = mixed(layer, record, kind, rows), stream[rows]
        if not sublayer.norm_first:
            residual = frozen(sublayer.norm, residual, read[rows])
        if index:
            parts.append(shares(torch.cat((by_key, residual[:, None]), dim=1), whole[rows]))
        else:
            parts.append(_with_itself(by_key, residual, whole[rows], start))
    return torch.cat(parts)


def _with_itself(by_key: Tensor, residual: Tensor, whole: Tensor, start: int) -> Tensor:
    """Self-attention: the residual and what a row reads at its own position are one part. [query, key + 1], the last
    column 0: the own position's share is where it belongs."""
    at = torch.arange(len(residual), device=residual.device)
    by_key[at, start + at] += residual
    found = shares(torch.cat((by_key, torch.zeros_like(residual)[:, None]), dim=1), whole)
    found[at, start + at] += found[:, -1]
    found[:, -1] = 0.0
    return found


@torch.inference_mode()
def encoder_contributions(model: Transformer, output: ForwardOutput) -> np.ndarray:
    """float64 [layers, source, source], rows sum to 1. output: recorded, a batch of one."""
    return _shares(model.encoder.layers, output, AttentionKind.ENCODER_SELF)


@torch.inference_mode()
def decoder_contributions(model: Transformer, output: ForwardOutput) -> tuple[np.ndarray, np.ndarray]:
    """Self-attention's float64 [layers, target, target], whose rows sum to 1, and cross-attention's [layers, target,
    source], whose rows lack the residual's share. output: recorded, a batch of one."""
    own, cross = (
        _shares(model.decoder.layers, output, kind) for kind in (AttentionKind.DECODER_SELF, AttentionKind.CROSS)
    )
    return own, cross


def _shares(layers: Iterable[Layer], output: ForwardOutput, kind: AttentionKind) -> np.ndarray:
    by_layer = [
        block_shares(layer, record, kind)[:, :-1] for layer, record in zip(layers, output.records(kind), strict=True)
    ]
    return torch.stack(by_layer).cpu().numpy()

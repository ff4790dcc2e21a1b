"""What each token contributes to each row of one attention block: vectors, and ALTI's shares (Ferrando et al. 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.vectors import frozen, used_weights, written_values
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.layer import Layer
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind

CHUNK = 4_000_000  # numbers of float64 held at once


def mixed(layer: Layer, record: LayerRecord, kind: AttentionKind, rows: slice = slice(None)) -> Tensor:
    """The sum over heads of A v W_O by key: float64 [query, key, d_model], for some query rows of a batch of one; with
    post-norm after the linear part of the block's norm (Kobayashi et al. 2020, 2021)."""
    return _mixed([layer], [record], kind, rows)[0]


def _mixed(layers: Sequence[Layer], records: Sequence[LayerRecord], kind: AttentionKind, rows: slice) -> Tensor:
    """The same of all layers of a stack at once, as many small products take longer: [layer, query, key, d_model]."""
    cross = kind is AttentionKind.CROSS
    found = [record.attention(kind) for record in records]
    weights = torch.stack([used_weights(one)[0, :, rows] for one in found])
    attention = [layer.cross_attention if cross else layer.self_attention for layer in layers]
    values = torch.stack([written_values(*each)[0] for each in zip(attention, found)])
    summed = torch.einsum("lhtj,lhjd->ltjd", weights, values)
    norms = [layer.sublayers[int(cross)] for layer in layers]
    if norms[0].norm_first:
        return summed
    read = [record.sublayer(kind.sublayer).norm_input[0, rows, None] for record in records]
    return torch.stack([frozen(one.norm, part, seen) for one, part, seen in zip(norms, summed, read)])


def shares(parts: Tensor, whole: Tensor) -> Tensor:
    """How much nearer to nothing the whole [.., query, d_model] is without each of its parts [.., query, part,
    d_model], by the sum of absolute differences, as shares of the row: [.., query, part] (Ferrando et al. 2022,
    equations 4 to 6)."""
    length = whole.abs().sum(-1, keepdim=True)
    nearer = (length - (whole[..., None, :] - parts).abs_().sum(-1)).clamp_min(0.0)
    total = nearer.sum(-1, keepdim=True)
    # A row of which no part comes near the whole: its own residual, the last part, stands for it.
    alone = torch.zeros_like(nearer)
    alone[..., -1] = 1.0
    return torch.where(total > 0, nearer / total.clamp_min(torch.finfo(total.dtype).tiny), alone)


def _with_itself(by_key: Tensor, residual: Tensor, whole: Tensor, start: int) -> Tensor:
    """Self-attention: the residual and what a row reads at its own position are one part. [layer, query, key + 1], the
    last column 0: the own position's share is where it belongs."""
    at = torch.arange(residual.shape[-2], device=residual.device)
    by_key[:, at, start + at] += residual
    found = shares(torch.cat((by_key, torch.zeros_like(residual)[:, :, None]), dim=2), whole)
    found[:, at, start + at] += found[..., -1]
    found[..., -1] = 0.0
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
    """Of each block of a kind, what each key brings through attention: [layer, query, key]."""
    layers, records, cross = list(layers), output.records(kind), kind is AttentionKind.CROSS
    passed = [record.sublayer(kind.sublayer) for record in records]
    stream, whole = (torch.stack([exact(getattr(one, name)[0]) for one in passed]) for name in ("before", "after"))
    norms = [layer.sublayers[int(cross)] for layer in layers]
    if not norms[0].norm_first:
        read = [one.norm_input[0] for one in passed]
        stream = torch.stack([frozen(one.norm, part, seen) for one, part, seen in zip(norms, stream, read)])
    step = max(1, CHUNK // (len(layers) * records[0].attention(kind).weights.shape[-1] * stream.shape[-1]))
    parts = []
    for start in range(0, stream.shape[1], step):
        rows = slice(start, start + step)
        by_key, residual = _mixed(layers, records, kind, rows), stream[:, rows]
        if cross:
            parts.append(shares(torch.cat((by_key, residual[:, :, None]), dim=2), whole[:, rows]))
        else:
            parts.append(_with_itself(by_key, residual, whole[:, rows], start))
    return torch.cat(parts, dim=1)[..., :-1].cpu().numpy()

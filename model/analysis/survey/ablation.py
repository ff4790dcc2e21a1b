"""What a translation loses without each head, measured for whole batches: mean ablation from a recorded pass on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.survey.batch import Pass, mean_log_probability
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask, padding_mask
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.why.means import Means

ENCODER, DECODER = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF


@torch.inference_mode()
def losses(model: Transformer, found: Pass, means: Means) -> dict[AttentionKind, np.ndarray]:
    """Mean log-probability a token less the same with one head's mean output in place of what it says: kind -> float64
    [batch, layers, heads]. What comes before the head's layer is taken from the pass."""
    plain = mean_log_probability(model, found.output.hidden, found.target_ids, found.target_lengths)
    padding = padding_mask(found.source_ids, model.config.pad_id)
    rows = _repeated(model, ENCODER, padding)
    result = {kind: [] for kind in model.num_layers}
    for layer, record in enumerate(found.output.layers(Side.ENCODER)):
        sweep = _one_head(model, ENCODER, layer, len(plain), means.at(ENCODER, found.source_ids.shape[1]))
        memory, _ = model.encoder(_repeated(model, ENCODER, record.before), rows, interventions=sweep, start=layer)
        source = SourceMemory(memory, rows, padded_lengths=rows.sum(-1).flatten())
        hidden, _ = model.decode(_repeated(model, ENCODER, found.decoder_ids), source)
        result[ENCODER].append(_loss(model, ENCODER, found, plain, hidden))
    source = SourceMemory(_repeated(model, DECODER, found.output.memory), _repeated(model, DECODER, padding))
    length = found.decoder_ids.shape[1]
    causal = causal_mask(length, device=padding.device)
    for layer, record in enumerate(found.output.layers(Side.DECODER)):
        for kind in (DECODER, AttentionKind.CROSS):
            sweep = _one_head(model, kind, layer, len(plain), means.at(kind, length))
            before = _repeated(model, kind, record.before)
            hidden, _ = model.decoder(before, causal, source, interventions=sweep, start=layer)
            result[kind].append(_loss(model, kind, found, plain, hidden))
    return {kind: np.stack(layers, axis=1) for kind, layers in result.items()}


def _repeated(model: Transformer, kind: AttentionKind, x: Tensor) -> Tensor:
    return x.detach().repeat_interleave(model.num_heads[kind], dim=0)


def _one_head(model: Transformer, kind: AttentionKind, layer: int, batch: int, instead: np.ndarray) -> Sweep:
    """Rows sentence by sentence, head by head: row r of a sentence is without head r of the layer."""
    layers, heads = model.num_layers[kind], model.num_heads[kind]
    gates = model.embedding.weight.new_ones(heads, layers, heads)
    gates[:, layer] -= torch.eye(heads, device=gates.device)
    return Sweep(gates={kind: gates.repeat(batch, 1, 1)}, instead={kind: torch.from_numpy(instead[None]).to(gates)})


def _loss(model: Transformer, kind: AttentionKind, found: Pass, plain: Tensor, hidden: Tensor) -> np.ndarray:
    heads = model.num_heads[kind]
    lengths = [length for length in found.target_lengths for _ in range(heads)]
    without = mean_log_probability(model, hidden, _repeated(model, kind, found.target_ids), lengths)
    return (plain.repeat_interleave(heads) - without).cpu().double().reshape(-1, heads).numpy()

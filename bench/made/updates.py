"""Updates of the weights in bfloat16, and how much they compute."""

from __future__ import annotations

from collections.abc import Callable

import torch

from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.training.batches import Batch
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.loss import SummedLoss


def training_step(model: Transformer) -> Callable[[Batch], None]:
    """One update as model.train makes it."""
    config = TrainConfig()
    summed = SummedLoss(model, config.label_smoothing)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step(batch: Batch) -> None:
        with torch.autocast(batch.source.device.type, torch.bfloat16):
            loss = summed(batch.source, batch.inputs, batch.outputs)
        (loss / batch.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def update_operations(model: Transformer, batch: Batch) -> float:
    """Operations of the matrix products of one update: two a weight and token forward, four backward; padding counts
    in the layers, not in the projection onto the vocabulary. The attention's own products are left out."""
    encoder, decoder = (
        sum(p.numel() for p in stack.parameters() if p.ndim > 1) for stack in (model.encoder, model.decoder)
    )
    return 6.0 * (
        encoder * batch.source.numel() + decoder * batch.inputs.numel() + model.embedding.weight.numel() * batch.tokens
    )

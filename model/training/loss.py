"""The training loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.networks import AnyNetwork


class SummedLoss(nn.Module):
    """The label-smoothed cross-entropy of a batch, summed over its tokens (Vaswani et al. 2017, section 5.4)."""

    def __init__(self, model: AnyNetwork, label_smoothing: float) -> None:
        super().__init__()
        self.model: AnyNetwork = model
        self.label_smoothing: float = label_smoothing

    def forward(self, source: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return the loss as a scalar. source [batch, source]; inputs, outputs [batch, target]."""
        hidden, _ = self.model.decode(inputs, self.model.encode(source))
        pad_id, is_training = self.model.config.pad_id, torch.is_grad_enabled()
        if is_training and outputs.device.type != "cpu":
            # Finding the tokens would wait for the device, which would then wait for the next update.
            hidden, targets = hidden.flatten(0, 1), outputs.flatten()
        else:
            is_token = outputs != pad_id
            hidden, targets = hidden[is_token], outputs[is_token]  # padding is not projected
        # Without a backward pass, the logits [tokens, vocabulary] need not exist at once.
        parts = [slice(None)] if is_training else blocks(len(targets), self.model.config.num_target_tokens)
        losses = [
            F.cross_entropy(
                self.model.project(hidden[part]).float(),
                targets[part],
                ignore_index=pad_id,
                label_smoothing=self.label_smoothing,
                reduction="sum",
            )
            for part in parts
        ]
        return torch.stack(losses).sum()

"""The training loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.networks import AnyNetwork
from attention_atlas.model.training.batches import Packing
from attention_atlas.model.training.packing import decode_packed


class SummedLoss(nn.Module):
    """The label-smoothed cross-entropy of a batch, summed over its tokens (Vaswani et al. 2017, section 5.4)."""

    def __init__(self, model: AnyNetwork, label_smoothing: float) -> None:
        super().__init__()
        self.model: AnyNetwork = model
        self.label_smoothing: float = label_smoothing

    def forward(
        self,
        source: Tensor,
        inputs: Tensor,
        outputs: Tensor,
        packing: Packing | None = None,
        *,
        with_plain: bool = False,
    ) -> Tensor:
        """Return the loss as a scalar. source [batch, source]; inputs, outputs [batch, target]; packing as in Batch.

        with_plain: return [2], the loss and the cross-entropy without smoothing, which has no gradient.
        """
        if packing is None:
            hidden, _ = self.model.decode(inputs, self.model.encode(source))
        else:
            hidden = decode_packed(self.model, source, inputs, packing)
        is_training = torch.is_grad_enabled()
        if is_training and (packing is not None or outputs.device.type != "cpu"):
            # Selecting the tokens would make the host wait for the device, and give each packed batch another shape.
            hidden, targets = hidden.flatten(0, 1), outputs.flatten()
        else:
            is_token = outputs != self.model.config.pad_id
            hidden, targets = hidden[is_token], outputs[is_token]  # padding is not projected
        # Without a backward pass, the logits [tokens, vocabulary] need not exist at once.
        parts = [slice(None)] if is_training else blocks(len(targets), self.model.config.num_target_tokens)
        losses = torch.stack([self._losses(hidden[part], targets[part]) for part in parts]).sum(0)
        return losses if with_plain else losses[0]

    def _losses(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the loss and the plain cross-entropy of some tokens, [2]; padding counts as nothing."""
        log_probability = self.model.project(hidden).float().log_softmax(-1)
        pad_id = self.model.config.pad_id
        plain = F.nll_loss(log_probability, targets, ignore_index=pad_id, reduction="sum")
        loss = plain
        if self.label_smoothing:
            # The cross-entropy of the uniform distribution.
            uniform = -(log_probability.mean(-1) * (targets != pad_id)).sum()
            loss = (1 - self.label_smoothing) * plain + self.label_smoothing * uniform
        return torch.stack((loss, plain.detach()))

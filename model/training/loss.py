"""The loss, and the pieces of a training step that torch's CPU kernels do slowly: those took a third of an update.

Tests hold them equal to torch's own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from model.nets.blocks import blocks
from model.nets.networks import AnyNetwork


class SummedLoss(nn.Module):
    """The label-smoothed cross-entropy of a batch, summed over its real tokens (section 5.4)."""

    def __init__(self, model: AnyNetwork, label_smoothing: float) -> None:
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing

    def forward(self, source: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor:
        """source [batch, source]; inputs, outputs [batch, target] -> a scalar."""
        hidden, _ = self.model.decode(inputs, self.model.encode(source))
        real = outputs != self.model.config.pad_id
        hidden, targets = hidden[real], outputs[real]  # padding is not even projected
        if torch.is_grad_enabled():
            return summed_cross_entropy(self.model.project(hidden), targets, self.label_smoothing)
        # Of [tokens, vocabulary] nothing has to be kept for the way back.
        return torch.stack(
            [
                summed_cross_entropy(self.model.project(hidden[part]), targets[part], self.label_smoothing)
                for part in blocks(len(targets), self.model.config.num_target_tokens)
            ]
        ).sum()


def summed_cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    """F.cross_entropy(.., label_smoothing=.., reduction="sum"), in float32, with the gradient written out.

    logits [tokens, vocabulary], targets int64 [tokens]. With q = 1 - smoothing at the target plus smoothing /
    vocabulary everywhere (Szegedy et al. 2016, section 7), the gradient is softmax(logits) - q: one array that is
    reused, where autograd would make four.
    """
    return _SummedCrossEntropy.apply(logits, targets, label_smoothing)


class _SummedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        probabilities = logits.softmax(-1, dtype=torch.float32)
        top, where = probabilities.max(-1, keepdim=True)
        log_sum = logits.gather(1, where).float() - top.log()  # [tokens, 1], without overflow
        chosen = logits.gather(1, targets[:, None]).float()
        mean = logits.mean(-1, keepdim=True, dtype=torch.float32)
        ctx.probabilities, ctx.targets, ctx.smoothing, ctx.dtype = probabilities, targets, label_smoothing, logits.dtype
        return (log_sum - (1.0 - label_smoothing) * chosen - label_smoothing * mean).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        result, ctx.probabilities = ctx.probabilities, None  # ours alone: free to overwrite
        result -= ctx.smoothing / result.shape[1]
        result.scatter_add_(1, ctx.targets[:, None], torch.full_like(result[:, :1], ctx.smoothing - 1.0))
        result *= gradient
        return result.to(ctx.dtype), None, None

"""The loss, and the pieces of a training step that torch's CPU kernels do slowly: those took a third of an update.

Tests hold them equal to torch's own.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.networks import AnyNetwork

IN_CACHE = 1 << 17  # logits that are worked on at once: 512 kB in float32; with 2 MB it takes twice as long


class SummedLoss(nn.Module):
    """The label-smoothed cross-entropy of a batch, summed over its real tokens (section 5.4)."""

    def __init__(self, model: AnyNetwork, label_smoothing: float) -> None:
        super().__init__()
        self.model: AnyNetwork = model
        self.label_smoothing: float = label_smoothing

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
    vocabulary everywhere (Szegedy et al. 2016, section 7), the gradient is softmax(logits) - q. It is found on the way
    forward, some rows at a time: what is passed over six times then stays in the processor's cache. Elsewhere it is
    torch's own.
    """
    if logits.device.type != "cpu":  # which has no such cache, and waits at each launch
        return F.cross_entropy(logits.float(), targets, label_smoothing=label_smoothing, reduction="sum")
    return _SummedCrossEntropy.apply(logits, targets, label_smoothing)


class _SummedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        loss = torch.zeros((), device=logits.device)
        ctx.slope = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        for part in blocks(*logits.shape, max_logits=IN_CACHE):
            rows, chosen = logits[part].float(), targets[part, None]
            probabilities = rows.softmax(-1)
            score, mean = rows.gather(1, chosen), rows.mean(-1, keepdim=True)
            log_probability = probabilities.gather(1, chosen).log()
            if log_probability.isinf().any():  # too small for float32
                log_probability = score - rows.logsumexp(-1, keepdim=True)
            # -(1 - s) log p(target) - s mean(log p), where log p of any token is its logit less (score - log p(target))
            loss += (label_smoothing * (score - mean) - log_probability).sum()
            if ctx.slope is not None:
                probabilities -= label_smoothing / probabilities.shape[1]
                probabilities.scatter_add_(1, chosen, torch.full_like(score, label_smoothing - 1.0))
                ctx.slope[part] = probabilities
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        slope, ctx.slope = ctx.slope, None  # ours alone: free to overwrite
        slope *= gradient
        return slope, None, None

"""The next-token distributions of decoding steps: what a trace stores of the logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

TOP_TOKENS = 10  # candidates stored for each step of a trace


@dataclass(frozen=True, eq=False)
class Distributions:
    """The next-token distributions of one sentence's steps, in float32 unless said otherwise:

    top_ids            int64 [step, k], the k most probable tokens
    top_probabilities  [step, k]
    chosen_rank        int64 [step], rank of the token that was chosen, from 1
    log_probability    [step], natural logarithm, of that token
    entropy            [step], bits
    """

    top_ids: Tensor
    top_probabilities: Tensor
    chosen_rank: Tensor
    log_probability: Tensor
    entropy: Tensor

    def __len__(self) -> int:
        return len(self.entropy)

    @property
    def columns(self) -> tuple[Tensor, ...]:
        """All tensors, in the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def map(self, function: Callable[[Tensor], Tensor]) -> Distributions:
        """Return the distributions with function(tensor) in place of each tensor."""
        return Distributions(*map(function, self.columns))

    def split(self, lengths: Sequence[int]) -> list[Distributions]:
        """Return each sentence's distributions on the CPU, where these are of a batch: [sentence, step, ..].

        lengths: the number of steps of each sentence; later ones are padding.
        """
        on_cpu = self.map(Tensor.cpu)
        return [
            on_cpu.map(lambda column, row=row, steps=steps: column[row, :steps]) for row, steps in enumerate(lengths)
        ]


def concatenate(parts: Sequence[Distributions], axis: int = 0) -> Distributions:
    """Return the steps of all parts, in order."""
    return Distributions(*(torch.cat(columns, axis) for columns in zip(*(part.columns for part in parts))))


def summarize(logits: Tensor, chosen: Tensor) -> Distributions:
    """Summarize logits [step, vocabulary] of any floating type; chosen int64 [step] are the tokens that were chosen."""
    logits = logits.float()
    log_p, p = logits.log_softmax(-1), logits.softmax(-1)  # a second softmax is faster than log_p.exp()
    top, top_ids = log_p.topk(min(TOP_TOKENS, log_p.shape[-1]), dim=-1)  # [step, k]
    chosen_log_p = log_p.gather(1, chosen[:, None])  # [step, 1]
    if logits.device.type == "cpu":
        rank = (top > chosen_log_p).count_nonzero(-1) + 1
        below_top = chosen_log_p[:, 0] < top[:, -1]  # few steps: ranking all of them would take as long as the rest
        if below_top.any():
            rank[below_top] = (log_p[below_top] > chosen_log_p[below_top]).count_nonzero(-1) + 1
    else:  # finding the few would wait for the device
        rank = (log_p > chosen_log_p).count_nonzero(-1) + 1
    return Distributions(
        top_ids,
        top.exp(),
        rank,
        chosen_log_p[:, 0],
        torch.linalg.vecdot(p, log_p) / -math.log(2),
    )

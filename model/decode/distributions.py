"""Summaries of next-token distributions: a full row for a vocabulary of 256,000 would outweigh the rest of a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def concatenate(parts: Sequence[Distributions]) -> Distributions:
    """Return the steps of all parts, in order."""
    return Distributions(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Distributions)))


def summarize(logits: Tensor, chosen: Tensor) -> Distributions:
    """Summarize logits [step, vocabulary] of any floating type; chosen int64 [step] are the tokens that were chosen."""
    logits = logits.float()
    log_p, p = logits.log_softmax(-1), logits.softmax(-1)  # a second softmax is faster than log_p.exp()
    top, top_ids = log_p.topk(min(TOP_TOKENS, log_p.shape[-1]), dim=-1)  # [step, k]
    chosen_log_p = log_p.gather(1, chosen[:, None])  # [step, 1]
    rank = (top > chosen_log_p).count_nonzero(-1) + 1
    below_top = chosen_log_p[:, 0] < top[:, -1]  # few steps: ranking all of them would take as long as the rest
    if below_top.any():
        rank[below_top] = (log_p[below_top] > chosen_log_p[below_top]).count_nonzero(-1) + 1
    return Distributions(
        top_ids,
        top.exp(),
        rank,
        chosen_log_p[:, 0],
        torch.linalg.vecdot(p, log_p) / -math.log(2),
    )


def split_by_sentence(steps: Sequence[Distributions], sentences: Sequence[int]) -> list[Distributions]:
    """Return each sentence's steps, in order. sentences: the sentence of each row of all steps, one after the other."""
    summary, owners = concatenate(steps), torch.tensor(sentences)
    order, counts = owners.argsort(stable=True).to(summary.entropy.device), owners.bincount().tolist()
    columns = (getattr(summary, field.name)[order].split(counts) for field in fields(Distributions))
    return [Distributions(*values) for values in zip(*columns)]

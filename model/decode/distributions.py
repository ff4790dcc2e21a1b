"""What is kept of the distributions that a decode chose by, without the distributions: a row of 256,000 numbers a step
would outweigh all that a translation leaves behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from attention_atlas.model.nets.blocks import ROOM

TOP_TOKENS = 10  # candidates kept at each step of a trace


@dataclass(frozen=True, eq=False)
class Distributions:
    """Of each step of one sentence, in float32 unless said otherwise:

    top_ids            int64 [step, k], the k most probable tokens
    top_probabilities  [step, k]
    chosen_rank        int64 [step], of the token that was taken, from 1
    log_probability    [step], natural, of that token
    entropy            [step], bits
    """

    top_ids: Tensor
    top_probabilities: Tensor
    chosen_rank: Tensor
    log_probability: Tensor
    entropy: Tensor

    def __len__(self) -> int:
        return len(self.entropy)


def joined(parts: Sequence[Distributions]) -> Distributions:
    """The steps of all parts, in order."""
    return Distributions(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Distributions)))


def summarised(logits: Tensor, chosen: Tensor) -> Distributions:
    """logits [step, vocabulary], of any floating type; chosen int64 [step], the tokens that were taken."""
    logits = logits.float()
    log_p, p = logits.log_softmax(-1), logits.softmax(-1)  # the latter is faster than an exponential of the former
    top, top_ids = log_p.topk(min(TOP_TOKENS, log_p.shape[-1]), dim=-1)  # [step, k]
    taken = log_p.gather(1, chosen[:, None])  # [step, 1]
    rank = (top > taken).count_nonzero(-1) + 1
    beyond = taken[:, 0] < top[:, -1]  # of few: to count all others takes as long as the rest
    if beyond.any():
        rank[beyond] = (log_p[beyond] > taken[beyond]).count_nonzero(-1) + 1
    return Distributions(
        top_ids,
        top.exp(),
        rank,
        taken[:, 0],
        torch.linalg.vecdot(p, log_p) / -math.log(2),
    )


class Choices:
    """The steps of a batch of sentences as a decode takes them. Logits wait until there is a block of them: many small
    ones would cost more time, all of them too much memory."""

    def __init__(self, sentences: int, *, room: int = ROOM) -> None:
        """room: how many logits may wait."""
        self._room, self._numbers = room, 0
        self._waiting: list[tuple[list[int], Tensor, Tensor]] = []
        self._found: list[list[Distributions]] = [[] for _ in range(sentences)]

    def add(self, sentences: list[int], logits: Tensor, chosen: Tensor) -> None:
        """A step of some of the sentences: logits [sentences, vocabulary], the tokens taken int64 [sentences]."""
        if self._numbers + logits.numel() > self._room:
            self._settle()
        self._waiting.append((sentences, logits, chosen))
        self._numbers += logits.numel()

    def of_each(self) -> list[Distributions]:
        """Each sentence's steps, in order."""
        self._settle()
        return [joined(parts) for parts in self._found]

    def _settle(self) -> None:
        if not self._waiting:
            return
        owners = torch.tensor([sentence for sentences, _, _ in self._waiting for sentence in sentences])
        logits = [logits for _, logits, _ in self._waiting]
        chosen = torch.cat([chosen for _, _, chosen in self._waiting])
        found = summarised(logits[0] if len(logits) == 1 else torch.cat(logits), chosen)
        order, counts = owners.argsort(stable=True).to(chosen.device), owners.bincount().tolist()
        columns = (getattr(found, field.name)[order].split(counts) for field in fields(Distributions))
        for parts, count, one in zip(self._found, counts, zip(*columns)):
            if count:
                parts.append(Distributions(*one))
        self._waiting, self._numbers = [], 0

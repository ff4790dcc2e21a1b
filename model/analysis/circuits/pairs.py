"""Two sources of one length, what is written so far, and the two tokens between which their difference decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.nets.masks import pad
from model.trace.language import Refusal
from model.translator import Translator


@dataclass(frozen=True)
class Pair:
    """source_ids and other_ids: of the sentence and of the changed one; target_ids: `<s>` and what is written; token:
    what is right for the sentence; instead: for the changed one. sentences: as they were typed."""

    source_ids: tuple[int, ...]
    other_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    token: int
    instead: int
    sentences: tuple[str, str] = ("", "")


def pair(
    translator: Translator,
    sentence: str,
    changed: str,
    words: tuple[str, str],
    *,
    prefix: str = "",
    direction: str | None = None,
) -> Pair:
    """Of two sentences that differ in a word. words: the token after `prefix` that is right for the first sentence, and
    the one for the changed sentence. A Refusal, in words, where the two have different numbers of tokens (which of them
    would stand for which?), or where a word is more than one token. Six parameters: each of them is the pair's own."""
    first, second = (tuple(translator.encode(text, direction)) for text in (sentence, changed))
    if len(first) != len(second):
        raise Refusal(
            "The two sentences have {n} and {m} tokens: a circuit needs as many in both.", n=len(first), m=len(second)
        )
    ids = []
    for word in words:
        pieces = translator.tokenizer.encode(word)
        if len(pieces) != 1:
            raise Refusal("{word} is {n} tokens: a circuit decides between single ones.", word=word, n=len(pieces))
        ids += pieces
    before = (*translator.forced_prefix(direction), *(translator.tokenizer.encode(prefix) if prefix else ()))
    target = (translator.tokenizer.begin_id, *before)
    return Pair(first, second, target, ids[0], ids[1], (sentence, changed))


@dataclass(frozen=True, eq=False)
class Batch:
    """source, other [batch, source]; target [batch, target], all padded; last int64 [batch], the row that decides;
    tokens int64 [batch, 2]."""

    source: Tensor
    other: Tensor
    target: Tensor
    last: Tensor
    tokens: Tensor

    def at_last(self, hidden: Tensor) -> Tensor:
        """hidden [batch, target, d_model] at the row that decides, [batch, d_model]."""
        return hidden[torch.arange(len(hidden), device=hidden.device), self.last]


def batch(pairs: Sequence[Pair], pad_id: int, device: torch.device) -> Batch:
    """Of pairs, as tensors. ValueError for none."""
    if not pairs:
        raise ValueError("there are no pairs")
    source, other, target = (
        pad([list(ids) for ids in side], pad_id).to(device)
        for side in zip(*((p.source_ids, p.other_ids, p.target_ids) for p in pairs))
    )
    last = torch.tensor([len(p.target_ids) - 1 for p in pairs], device=device)
    return Batch(source, other, target, last, torch.tensor([[p.token, p.instead] for p in pairs], device=device))

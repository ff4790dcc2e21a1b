"""From a recorded pass of the model to the traces of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from model.trace.decoding import GREEDY, Decoding
from model.trace.interventions import NO_INTERVENTIONS, Interventions
from model.trace.kinds import AttentionKind
from model.trace.maps import AttentionMaps
from model.trace.tokens import Token
from model.trace.translation import TranslationTrace, tokens_of

TOP_TOKENS = 10  # candidates kept at each step of a trace


@dataclass(frozen=True)
class Request:
    """One text that stands in line: its tidied form, its source ids and what it asks for."""

    text: str
    source_ids: tuple[int, ...]
    direction: str
    interventions: Interventions = NO_INTERVENTIONS
    decoding: Decoding = GREEDY


class Recorded(Protocol):
    """What a pass left behind, of a batch: logits [batch, target, vocabulary], and of each kind of attention that it
    has weights [layers, batch, heads, query, key]."""

    logits: Tensor

    @property
    def kinds(self) -> tuple[AttentionKind, ...]: ...

    def weights(self, kind: AttentionKind) -> Tensor: ...


class Names(Protocol):
    """What a trace needs of a tokenizer (model.text.interface has the whole)."""

    begin_id: int
    end_id: int

    def source_tokens(self, ids: Sequence[int], text: str) -> tuple[Token, ...]: ...

    def tokens(self, ids: Iterable[int]) -> tuple[Token, ...]: ...

    def in_words(self, tokens: Sequence[Token]) -> tuple[Token, ...]: ...

    def decode(self, ids: Iterable[int]) -> str: ...


class TraceBuilder:
    """Turns rows of a recorded batch into traces, without their padding."""

    def __init__(self, output: Recorded, tokenizer: Names, *, seconds: float, device: str, checkpoint: str,
                 digest: str) -> None:
        """output: recorded. The rest is the traces' own record of where they come from.

        Six parameters: each is a field of the trace.
        """
        self.tokenizer = tokenizer
        self.origin = {"seconds": seconds, "device": device, "checkpoint": checkpoint, "digest": digest}
        self.weights = {kind: output.weights(kind).float().cpu().numpy() for kind in output.kinds}
        # A symbol that decoding may never choose is still a probability of the model: nothing is hidden here.
        self.logits = output.logits

    def __call__(self, row: int, request: Request, target_ids: list[int]) -> TranslationTrace:
        """The trace of batch row `row`; target_ids y1 .. yT, the last one predicted but not read."""
        source_ids = request.source_ids
        tokenizer = self.tokenizer
        source_tokens = tokenizer.in_words(tokenizer.source_tokens(source_ids, request.text))
        decoder_ids = (tokenizer.begin_id, *target_ids[:-1])
        inputs = tokenizer.in_words(tokenizer.tokens(decoder_ids))
        logits = self.logits[row, :len(target_ids)].float()  # [step, vocabulary]
        log_p, p = logits.log_softmax(-1), logits.softmax(-1)  # the latter is faster than an exponential of the former
        top, top_ids = log_p.topk(min(TOP_TOKENS, log_p.shape[-1]), dim=-1)  # [step, k]
        chosen = log_p.gather(1, torch.tensor(target_ids, device=log_p.device)[:, None])  # [step, 1]
        entropy = torch.linalg.vecdot(p, log_p) / -math.log(2)  # [step], bits
        top_ids = top_ids.cpu().numpy().astype(np.int32)
        return TranslationTrace(
            source_text=request.text, direction=request.direction,
            source_ids=source_ids, source_tokens=source_tokens,
            decoder_ids=decoder_ids, decoder_inputs=inputs,
            target_ids=tuple(target_ids), target_tokens=tokenizer.in_words(tokenizer.tokens(target_ids)),
            finished=target_ids[-1] == tokenizer.end_id, translation=tokenizer.decode(target_ids),
            **self._maps(row, source_tokens, inputs),
            top_ids=top_ids, top_tokens=tuple(map(tokenizer.tokens, top_ids.tolist())),
            top_probabilities=top.exp().cpu().numpy(),
            chosen_rank=((log_p > chosen).count_nonzero(-1) + 1).cpu().numpy().astype(np.int32),
            entropy=entropy.cpu().numpy(), log_probability=chosen[:, 0].cpu().numpy(),
            interventions=request.interventions, decoding=request.decoding, **self.origin)

    def _maps(self, row: int, source: tuple[str, ...], inputs: tuple[str, ...]) -> dict[str, AttentionMaps | None]:
        """The maps of one row by kind, without its padding; None for a kind that the model does not have."""
        found: dict[str, AttentionMaps | None] = {kind.value: None for kind in AttentionKind}
        for kind, weights in self.weights.items():
            queries, keys = tokens_of(kind, source, inputs)
            mine = np.ascontiguousarray(weights[:, row, :, :len(queries), :len(keys)])  # [layers, heads, query, key]
            found[kind.value] = AttentionMaps(mine, queries, keys)
        return found

"""From a recorded pass of the model to the traces of its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.nets.records import ForwardOutput
from model.text.interface import TextTokenizer
from model.trace.interventions import Interventions
from model.trace.maps import AttentionMaps
from model.trace.translation import TranslationTrace

TOP_TOKENS = 10  # candidates kept at each step of a trace


@dataclass(frozen=True)
class Request:
    """One text that stands in line: its tidied form, its source ids and what it asks for."""

    text: str
    source_ids: tuple[int, ...]
    direction: str
    interventions: Interventions


class TraceBuilder:
    """Turns rows of a recorded batch into traces, without their padding."""

    def __init__(self, output: ForwardOutput, tokenizer: TextTokenizer, *, seconds: float, device: str, checkpoint: str,
                 digest: str) -> None:
        """output: recorded. The rest is the traces' own record of where they come from."""
        self.tokenizer = tokenizer
        self.origin = {"seconds": seconds, "device": device, "checkpoint": checkpoint, "digest": digest}
        self.encoder_self = _stacked([r.self_attention.weights for r in output.encoder_records])
        self.decoder_self = _stacked([r.self_attention.weights for r in output.decoder_records])
        self.cross = _stacked([r.cross_attention.weights for r in output.decoder_records])
        # A symbol that decoding may never choose is still a probability of the model: nothing is hidden here.
        self.logits = output.logits

    def __call__(self, row: int, request: Request, target_ids: list[int]) -> TranslationTrace:
        """The trace of batch row `row`; target_ids y1 .. yT, the last one predicted but not read."""
        source_ids = request.source_ids
        tokenizer = self.tokenizer
        source, target = len(source_ids), len(target_ids)
        source_tokens = tokenizer.source_tokens(source_ids, request.text)
        decoder_ids = (tokenizer.begin_id, *target_ids[:-1])
        inputs = tokenizer.tokens(decoder_ids)
        logits = self.logits[row, :target].float()  # [step, vocabulary]
        log_p, p = logits.log_softmax(-1), logits.softmax(-1)  # the latter is faster than an exponential of the former
        top, top_ids = log_p.topk(min(TOP_TOKENS, log_p.shape[-1]), dim=-1)  # [step, k]
        chosen = log_p.gather(1, torch.tensor(target_ids, device=log_p.device)[:, None])  # [step, 1]
        entropy = torch.linalg.vecdot(p, log_p) / -math.log(2)  # [step], bits
        top_ids = top_ids.cpu().numpy().astype(np.int32)
        return TranslationTrace(
            source_text=request.text, direction=request.direction,
            source_ids=source_ids, source_tokens=source_tokens,
            decoder_ids=decoder_ids, decoder_inputs=inputs,
            target_ids=tuple(target_ids), target_tokens=tokenizer.tokens(target_ids),
            finished=target_ids[-1] == tokenizer.end_id, translation=tokenizer.decode(target_ids),
            encoder_self=AttentionMaps(_cut_out(self.encoder_self, row, source, source), source_tokens, source_tokens),
            decoder_self=AttentionMaps(_cut_out(self.decoder_self, row, target, target), inputs, inputs),
            cross=AttentionMaps(_cut_out(self.cross, row, target, source), inputs, source_tokens),
            top_ids=top_ids, top_tokens=tuple(map(tokenizer.tokens, top_ids.tolist())),
            top_probabilities=top.exp().cpu().numpy(),
            chosen_rank=((log_p > chosen).count_nonzero(-1) + 1).cpu().numpy().astype(np.int32),
            entropy=entropy.cpu().numpy(), log_probability=chosen[:, 0].cpu().numpy(),
            interventions=request.interventions.describe(), **self.origin)


def _stacked(weights: list[Tensor]) -> np.ndarray:
    return torch.stack(weights).float().cpu().numpy()  # [layers, batch, heads, query, key]


def _cut_out(weights: np.ndarray, row: int, queries: int, keys: int) -> np.ndarray:
    return np.ascontiguousarray(weights[:, row, :, :queries, :keys])  # [layers, heads, query, key]

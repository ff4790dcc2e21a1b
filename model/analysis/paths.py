"""Paths through decoding that a person chooses: go on from any prefix, and look at any target as if the model wrote it.

Everything starts from token ids; caches are rebuilt from them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from model.analysis.lenses.decoder import DecoderLens, decoder_lens
from model.decode.recorded import Recorded, forced_with_records, greedy_with_records
from model.decode.trace_builder import Request, TraceBuilder
from model.nets.blocks import blocks
from model.nets.layer import SourceMemory
from model.trace.decoding import Decoding
from model.trace.interventions import NO_INTERVENTIONS, Interventions
from model.trace.language import Refusal
from model.trace.tokens import whole_ids
from model.trace.translation import TranslationTrace
from model.translator import Translator, tidy

TEMPERATURES = tuple(round(0.1 * i, 1) for i in range(1, 21))  # 0.1 to 2.0


@dataclass(frozen=True, eq=False)
class Details:
    """What a trace leaves out because it needs the whole vocabulary.

    lens             the logit lens at each step
    log_normalisers  float32 [temperature, step]: log of the sum over the vocabulary of p^(1/T), so that the
                     probability at temperature T is p^(1/T) / exp(log_normaliser)
    entropies        float32 [temperature, step], bits, at each temperature
    """

    lens: DecoderLens
    log_normalisers: np.ndarray
    entropies: np.ndarray


def check_target(translator: Translator, target_ids: Sequence[int]) -> list[int]:
    """The ids as a list. ValueError if there are none, too many, an unknown one, or `</s>` before the end."""
    ids, limit = whole_ids(target_ids, translator.config.num_target_tokens), translator.max_tokens - 1
    if not ids:
        raise Refusal("The target is empty: there is nothing to follow.")
    if len(ids) > limit:
        raise Refusal("The target is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=limit)
    if translator.tokenizer.end_id in ids[:-1]:
        raise Refusal("Nothing can follow the end of the sentence.")
    return ids


@torch.inference_mode()
def follow(
    translator: Translator,
    text: str,
    target_ids: Sequence[int],
    direction: str | None = None,
    *,
    interventions: Interventions = NO_INTERVENTIONS,
    decoding: Decoding | None = None,
) -> TranslationTrace:
    """Force-decode y1 .. yT, with `</s>` or (unfinished) without. The model's own ids give its own trace again.

    decoding: how the ids came about, where that is known; None: they are given.
    ValueError for a text, target or interventions that cannot be used.
    Six parameters: a translation's, and those of its target.
    """
    started, ids = time.perf_counter(), check_target(translator, target_ids)
    request = translator.request(text, direction, interventions, decoding or Decoding(given=len(ids)))
    recorded = forced_with_records(
        translator.model,
        _encoded(translator, request),
        ids,
        begin_id=translator.tokenizer.begin_id,
        given=_given(translator, request, ids),
        interventions=request.interventions,
    )
    return _trace(translator, request, ids, recorded, started)


@torch.inference_mode()
def complete(
    translator: Translator,
    text: str,
    prefix: Sequence[int],
    direction: str | None = None,
    *,
    interventions: Interventions = NO_INTERVENTIONS,
) -> TranslationTrace:
    """The prefix (it may be empty) and how greedy decoding goes on from it, within the usual limit of steps.
    ValueError as in follow()."""
    started, ids = time.perf_counter(), check_target(translator, prefix) if len(prefix) else []
    request, tokenizer = (
        translator.request(text, direction, interventions, Decoding(given=len(ids))),
        translator.tokenizer,
    )
    ids = ids or list(translator.forced_prefix(request.direction))
    # A long prefix still gets a few steps of its own, as far as the model reaches.
    left = min(max(translator.step_limit(len(request.source_ids)) - len(ids), 10), translator.max_tokens - 1 - len(ids))
    if left == 0 or tokenizer.end_id in ids[-1:]:
        return follow(translator, text, ids, direction, interventions=interventions)
    (found,), recorded = greedy_with_records(
        translator.model,
        _encoded(translator, request),
        [left],
        begin_id=tokenizer.begin_id,
        end_id=tokenizer.end_id,
        prefix=ids,
        interventions=request.interventions,
    )
    return _trace(translator, request, found, recorded, started)


def _given(translator: Translator, request: Request, ids: list[int]) -> int:
    """How many of the ids a translation would not have chosen, but been given."""
    forced = translator.forced_prefix(request.direction)
    return len(forced) if tuple(ids[: len(forced)]) == forced else 0


def _encoded(translator: Translator, request: Request) -> SourceMemory:
    ids = torch.tensor([request.source_ids], device=translator.device)
    return translator.model.encode(ids, interventions=request.interventions, record=True)


def _trace(
    translator: Translator,
    request: Request,
    ids: list[int],
    recorded: Recorded,
    started: float,
) -> TranslationTrace:
    build = TraceBuilder(
        recorded,
        translator.tokenizer,
        seconds=time.perf_counter() - started,
        device=str(translator.device),
        checkpoint=translator.name,
        digest=translator.digest,
    )
    return build(0, request, ids)


def details(
    translator: Translator,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    interventions: Interventions = NO_INTERVENTIONS,
) -> Details:
    """The logit lens, and what every temperature makes of each step's distribution. ValueError as in follow()."""
    ids = check_target(translator, target_ids)
    output = translator.inspect(source_ids, ids, interventions=interventions)
    hidden, parts = output.hidden[0], blocks(len(ids), translator.config.num_target_tokens)
    with torch.inference_mode():
        found = [_tempered(translator.model.project(hidden[part]).float().log_softmax(-1)) for part in parts]
    return Details(
        decoder_lens(translator.model, output, ids), *(np.concatenate(columns, axis=1) for columns in zip(*found))
    )


def typed_ids(translator: Translator, text: str, *, joined: bool) -> list[int]:
    """Ids of text that a person puts into a target. joined: without the space that starts a word.
    ValueError, in words, for no text."""
    if not text.strip():
        raise Refusal("There is no text: type a word or more.")
    encode = translator.tokenizer.encode_joined if joined else translator.tokenizer.encode
    return encode(tidy(text))


def typed_target(translator: Translator, text: str, direction: str | None = None) -> list[int]:
    """Ids of a whole translation that a person typed, from what every one begins with to the end symbol. ValueError as
    in typed_ids()."""
    ids = typed_ids(translator, text, joined=False)
    return [*translator.forced_prefix(direction), *ids, translator.tokenizer.end_id]


def _tempered(log_p: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """log_p [step, vocabulary], natural -> log-normalisers and entropies in bits, each [temperature, step]."""
    largest = log_p.max(-1, keepdim=True).values  # taken out, so that no exponent overflows or all of them vanish
    normalisers, entropies = [], []
    for temperature in TEMPERATURES:
        scaled = (log_p - largest) / temperature
        powers = scaled.exp()
        total = powers.sum(-1)
        mean = (powers * scaled).sum(-1) / total  # of the exponents, under the new distribution
        normalisers.append(total.log() + largest[:, 0] / temperature)
        entropies.append((total.log() - mean) / math.log(2))
    return torch.stack(normalisers).cpu().numpy(), torch.stack(entropies).cpu().numpy()

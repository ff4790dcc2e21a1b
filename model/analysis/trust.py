"""How far to trust a translation: what its signals are read from; and its probabilities while units are left out."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model.analysis.again import check_again
from attention_atlas.model.analysis.why.contributions import decoder_contributions, encoder_contributions
from attention_atlas.model.files import read_json
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.flow import decoder_flow, encoder_flow
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.trust import Reading, Trust
from attention_atlas.model.translator import Translator
from attention_atlas.model.translator.tracing import CPU_COPY_BYTES

FILE = "truth.json"
AT_ONCE = 10  # passes with dropout in one batch

log = logging.getLogger(__name__)


def reading(translator: Translator, trace: TranslationTrace) -> Reading:
    """Of a trace. The model must be a Transformer. Errors as in recorded()."""
    check_again(translator, trace)
    ids, tokens = (trace.source_ids, trace.target_ids), (trace.source_tokens, trace.target_tokens)
    return read(translator, trace.direction, ids, tokens, trace.interventions)


@torch.inference_mode()
def read(
    translator: Translator,
    direction: str,
    ids: tuple[Sequence[int], Sequence[int]],
    tokens: tuple[Sequence[str], Sequence[str]],
    interventions: Interventions = NO_INTERVENTIONS,
) -> Reading:
    """The same of a source and y1 .. yT, in one recorded pass: an empty source, of which nothing but the symbols around
    one is left, is its second row. Interventions may name what that lacks: the plain model then reads it."""
    source, target = parse_direction(direction)
    empty = [translator.tokenizer.encode_source("", target, source)]
    output = translator.inspect(*ids, interventions=interventions, more_sources=() if interventions else empty)
    steps, wanted = range(len(ids[1])), list(ids[1])
    found = output.logits.double().log_softmax(-1)[:, steps, wanted].cpu().numpy()
    without = np.array(translator.log_probabilities(empty, [wanted])[0]) if interventions else found[1]
    own, cross = decoder_contributions(translator.model, output)
    encoder = encoder_flow(encoder_contributions(translator.model, output))[-1]
    flow = decoder_flow(own, cross, encoder)[-1][:, : len(ids[0])]
    return Reading(found[0], without, flow.sum(-1), flow.sum(0), *tokens)


@lru_cache(maxsize=8)
def stored(folder: Path | None, digest: str) -> Mapping[str, Trust]:
    """By direction, what model.truth measured of these weights; nothing where nobody did. A damaged file, or one of
    other weights, is none, and the log says so."""
    path = folder and folder / FILE
    if not path or not path.is_file():
        return {}
    try:
        found = read_json(path)
        if found["digest"] != digest:
            raise ValueError(
                f"it is of other weights ({found['digest']}, here {digest}): run attention-atlas truth again"
            )
        return {direction: Trust.from_json(values) for direction, values in found["trust"].items()}
    except (ValueError, KeyError, TypeError) as error:
        log.warning("%s is not used: %s", path, error)
        return {}


@dataclass(frozen=True, eq=False)
class Passes:
    """log_probability float64 [pass, target] of each target token with dropout's units left out at random; ids int64
    [pass, target], the most probable token of each pass."""

    log_probability: np.ndarray
    ids: np.ndarray


@torch.inference_mode()
def dropout_passes(translator: Translator, trace: TranslationTrace, count: int) -> Iterator[Passes]:
    """The translation's probabilities under `count` draws of dropout, as they become more (Gal and Ghahramani 2016;
    Fomicheva et al. 2020, section 3.3). ValueError for a model without dropout, or one too large to be held twice."""
    check_again(translator, trace)
    if not translator.config.dropout:
        raise Refusal("This model has no dropout to be left on.")
    if translator.weight_bytes > CPU_COPY_BYTES:
        raise Refusal("This model is too large to be held twice, once with dropout.")
    with torch.inference_mode(False):
        twin = copy.deepcopy(translator.model).train()  # the model itself serves others at the same time
    parts = []
    for start in range(0, count, AT_ONCE):
        rows = min(AT_ONCE, count - start)
        source, target = (
            torch.tensor([ids] * rows, device=translator.device) for ids in (trace.source_ids, trace.decoder_ids)
        )
        found = twin(source, target, interventions=trace.interventions).logits.double().log_softmax(-1)
        wanted = torch.tensor(trace.target_ids, device=found.device).expand(rows, -1)
        parts.append((found.gather(-1, wanted[..., None])[..., 0].cpu().numpy(), found.argmax(-1).cpu().numpy()))
        yield Passes(*(np.concatenate(some) for some in zip(*parts)))

"""Read the values behind a translation's trust signals, and its probabilities under dropout.

`read_trace` computes a Reading for the signals of model.trace.trust; `load_trust` reads what was measured of them;
`load_alignment_errors` reads what was measured of the heads; `run_dropout_passes` is Monte Carlo dropout.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.analysis.why.contributions import alti_flow
from attention_atlas.model.files import read_json, read_or_none
from attention_atlas.model.trace.alignment import RowToken
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.trust import Reading, Trust
from attention_atlas.model.translator import Translator
from attention_atlas.model.translator.tracing import CPU_COPY_BYTES

FILE = "truth.json"
BATCH_SIZE = 10  # passes with dropout


@dataclass(frozen=True, eq=False)
class AlignmentErrors:
    """The alignment error rate of each cross-attention head against links by hand.

    sentences  the number of sentences with links by hand
    rates      for each reading of a decoder row, float64 percent [layers, heads]
    """

    sentences: int
    rates: Mapping[RowToken, np.ndarray]


def read_trace(translator: Translator, trace: TranslationTrace) -> Reading:
    """Return the reading of a trace. Raises what record_pass() raises; the model must be a Transformer."""
    check_rerun(translator, trace)
    ids, tokens = (trace.source_ids, trace.target_ids), (trace.source_tokens, trace.target_tokens)
    return read_translation(translator, trace.direction, ids, tokens, trace.interventions)


@torch.inference_mode()
def read_translation(
    translator: Translator,
    direction: str,
    ids: tuple[Sequence[int], Sequence[int]],
    tokens: tuple[Sequence[str], Sequence[str]],
    interventions: Interventions = NO_INTERVENTIONS,
) -> Reading:
    """Return the reading of a source and its target y1 .. yT, (source, target) ids and tokens, in one recorded pass.

    An empty source, only symbols, is the second row of the batch. Interventions may name positions that it lacks, so
    under interventions the plain model reads it in a pass of its own.
    """
    source, target = parse_direction(direction)
    empty = [translator.tokenizer.encode_source("", target, source)]
    output = translator.inspect(*ids, interventions=interventions, more_sources=() if interventions else empty)
    steps, targets = range(len(ids[1])), list(ids[1])
    log_p = output.logits.double().log_softmax(-1)[:, steps, targets].cpu().numpy()
    without = np.array(translator.log_probabilities(empty, [targets])[0]) if interventions else log_p[1]
    flow = alti_flow(translator.model, output)[-1][:, : len(ids[0])]
    return Reading(log_p[0], without, flow.sum(-1), flow.sum(0), *tokens)


@lru_cache(maxsize=8)
def load_trust(folder: Path | None, digest: str) -> Mapping[str, Trust]:
    """Return what model.truth measured of these weights, by direction; empty if there is no file.

    A damaged file, or one of other weights, is logged and counts as none.
    """
    return _load(folder, digest, _read_trust)


@lru_cache(maxsize=8)
def load_alignment_errors(folder: Path | None, digest: str) -> Mapping[str, AlignmentErrors]:
    """Return each head's alignment error rate, which model.truth measured of these weights, by direction, as
    load_trust()."""
    return _load(folder, digest, _read_alignment_errors)


def _load(folder: Path | None, digest: str, read: Callable[[Mapping], dict]) -> dict:
    def read_measurements(path: Path) -> dict:
        try:
            measured = read_json(path)
            if measured["digest"] != digest:
                raise ValueError(
                    f"it is of other weights ({measured['digest']}, here {digest}): run attention-atlas truth again"
                )
            return read(measured)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not used: {error}") from error

    return (folder and read_or_none(folder / FILE, read_measurements)) or {}


def _read_trust(measured: Mapping) -> dict[str, Trust]:
    return {direction: Trust.from_json(values) for direction, values in measured["trust"].items()}


def _read_alignment_errors(measured: Mapping) -> dict[str, AlignmentErrors]:
    return {
        result["direction"]: AlignmentErrors(
            int(result["found"]["sentences"]),
            {row: np.array(result["found"]["heads"][row.value], np.float64) for row in RowToken},
        )
        for result in measured["results"]
        if result["kind"] == "alignment"
    }


@torch.inference_mode()
def run_dropout_passes(
    translator: Translator, trace: TranslationTrace, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Run `count` passes with dropout over a translation, and yield all passes so far after each batch.

    Yields the log-probability of each target token, float64 [pass, target], and the most probable ids, int64 of the
    same shape. Monte Carlo dropout (Gal and Ghahramani 2016; Fomicheva et al. 2020, section 3.3). Raises a Refusal for
    a model without dropout, or one too large to be copied.
    """
    check_rerun(translator, trace)
    if not translator.config.dropout:
        raise Refusal("This model has no dropout to leave on.")
    if translator.weight_bytes > CPU_COPY_BYTES:
        raise Refusal("This model is too large to keep in memory twice, once with dropout.")
    with torch.inference_mode(False):
        model = copy.deepcopy(translator.model).train()  # a copy, since the model serves other requests meanwhile
    parts = []
    for start in range(0, count, BATCH_SIZE):
        rows = min(BATCH_SIZE, count - start)
        source, target = (
            torch.tensor([ids] * rows, device=translator.device) for ids in (trace.source_ids, trace.decoder_ids)
        )
        log_p = model(source, target, interventions=trace.interventions).logits.double().log_softmax(-1)
        targets = torch.tensor(trace.target_ids, device=log_p.device).expand(rows, -1)
        parts.append((log_p.gather(-1, targets[..., None])[..., 0].cpu().numpy(), log_p.argmax(-1).cpu().numpy()))
        log_probability, ids = map(np.concatenate, zip(*parts))
        yield log_probability, ids

"""Measure what the key/value cache saves: decode a translation again with and without it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

MAX_STEPS = 64  # without the cache, the rows grow with the square of the steps


@dataclass(frozen=True, eq=False)
class DecodingCost:
    """Seconds of each step, float64 [step], without and with the cache, and the largest difference of any logit
    between the two."""

    uncached: np.ndarray
    cached: np.ndarray
    error: float

    @property
    def rows(self) -> tuple[int, int]:
        """The number of decoder rows computed without and with the cache."""
        steps = len(self.uncached)
        return steps * (steps + 1) // 2, steps


@torch.inference_mode()
def measure_cost(translator: Translator, trace: TranslationTrace, *, max_steps: int = MAX_STEPS) -> DecodingCost:
    """Time the first steps of a trace under its interventions.

    The encoder is not counted, since both need it once. Raises ValueError for interventions that cannot be run again.
    """
    check_rerun(translator, trace)
    model, changes, device = translator.model, trace.interventions, translator.device
    source = model.encode(torch.tensor([trace.source_ids], device=device), interventions=changes)
    inputs = torch.tensor([trace.decoder_ids[:max_steps]], device=device)
    uncached, cached, errors = [], [], []
    decoder = None
    for step in range(inputs.shape[1]):
        start = time.perf_counter()
        expected = StepDecoder(model, source, inputs[:, : step + 1], interventions=changes).logits
        middle = time.perf_counter()
        if decoder is None:
            decoder = StepDecoder(model, source, inputs[:, :1], interventions=changes)
        else:
            decoder.append(inputs[:, step])
        errors.append(float((decoder.logits - expected).abs().max()))  # also waits for an accelerator to finish
        uncached.append(middle - start)
        cached.append(time.perf_counter() - middle)
    return DecodingCost(np.array(uncached), np.array(cached), max(errors))

"""What the key/value cache saves: a translation written once more, each step from the start and each over the cache."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.again import check_again
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

MOST = 64  # steps: from the start, they grow with the square of their number


@dataclass(frozen=True, eq=False)
class Cost:
    """Of each step: seconds from the start and over the cache, float64 [step]; error: the largest difference of any
    logit between the two."""

    whole: np.ndarray
    cached: np.ndarray
    error: float

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of the decoder that were computed: from the start, and over the cache."""
        steps = len(self.whole)
        return steps * (steps + 1) // 2, steps


@torch.inference_mode()
def measure(translator: Translator, trace: TranslationTrace, *, most: int = MOST) -> Cost:
    """The first `most` steps of the trace, under its interventions, timed here and now. The encoder, which both need
    once, is not counted. ValueError for interventions that cannot be run again."""
    check_again(translator, trace)
    model, changes, device = translator.model, trace.interventions, translator.device
    source = model.encode(torch.tensor([trace.source_ids], device=device), interventions=changes)
    inputs = torch.tensor([trace.decoder_ids[:most]], device=device)
    whole, cached, errors = [], [], []
    decoder = None
    for step in range(inputs.shape[1]):
        started = time.perf_counter()
        again = StepDecoder(model, source, inputs[:, : step + 1], interventions=changes).logits
        between = time.perf_counter()
        if decoder is None:
            decoder = StepDecoder(model, source, inputs[:, :1], interventions=changes)
        else:
            decoder.append(inputs[:, step])
        errors.append(float((decoder.logits - again).abs().max()))  # which waits for a device, too
        whole.append(between - started)
        cached.append(time.perf_counter() - between)
    return Cost(np.array(whole), np.array(cached), max(errors))

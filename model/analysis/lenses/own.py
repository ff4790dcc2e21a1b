"""Lenses that visitors have fitted: to sentences of our own, part by part, kept as long as the model is served."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from attention_atlas.model.analysis.lenses import tuned
from attention_atlas.model.analysis.lenses.fit import Fitting
from attention_atlas.model.analysis.lenses.fitted import FILE, Lenses, save, stored
from attention_atlas.model.analysis.lenses.jacobian import TOGETHER, Jacobians
from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.decode.runs import Run
from attention_atlas.model.serve.owned_cache import cached_on_owner
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.translator import Translator

SENTENCES, SLOPES, STEPS, BATCH = 40, 8, 60, 4  # a part takes seconds, of the models for which the page offers it
LONGEST = 60.0  # seconds for which it does
FEW = 4  # steps of the tuned lens, to foretell all of them
FRESH = 60.0  # seconds that what was foretold holds


def fitted_to(translator: Translator) -> Lenses | None:
    """The lenses beside the weights, or those that were fitted here; None where there are neither."""
    found = stored(translator.folder, translator.config, translator.digest)
    if found is None and (translator.scratch / FILE).is_file():
        return stored(translator.scratch, translator.config, translator.digest)
    return found


def fitting(translator: Translator, direction: str) -> Fitting:
    """Those that can be fitted here. ValueError where there are no sentences of the source language."""
    return Fitting(translator, {direction: sentences(parse_direction(direction)[0])[:SENTENCES]}, SLOPES, STEPS, BATCH)


def step(translator: Translator, direction: str) -> tuple[int, int]:
    """The next part; how many are done, of how many. With the last one they are kept."""
    one = fitting(translator, direction)
    done, of = one.step()
    if done == of:
        save(translator.scratch / FILE, one.result())
    return done, of


def offered(translator: Translator, direction: str) -> float | None:
    """In how many seconds they can be fitted here; None where that takes too long, or where there are no sentences."""
    if parse_direction(direction)[0] not in languages():
        return None
    seconds = _foretold(translator, direction, time.monotonic() // FRESH)
    return seconds if seconds <= LONGEST else None


@cached_on_owner(maxsize=64)
def _foretold(translator: Translator, direction: str, when: float) -> float:
    """From a small piece of one part of each kind. when: asked later, a machine may have more to spare."""
    try:
        one = fitting(translator, direction)
    except ValueError:  # none of them fits into this model
        return float("inf")
    model, config = translator.model, translator.config
    jacobians = Jacobians(config)

    def run() -> Run:
        return translator.run([one.first], names=jacobians.names, direction=direction, grad=True)

    passes, kept = SLOPES * config.d_model, run()  # the first one takes longer: torch prepares itself
    if (least := passes * _seconds(run)) > 2 * LONGEST:  # a slope takes no less than half a pass
        return least
    jacobians.add(kept, 1)  # and here
    slopes = passes / TOGETHER * _seconds(lambda: jacobians.add(kept, TOGETHER))
    rows = torch.randn(2, tuned.ROWS, config.d_model, device=translator.device)

    def layer(steps: int) -> float:
        with torch.inference_mode(False):
            return _seconds(lambda: tuned.fit(lambda one: model.project(model.decoder.norm(one)), rows, steps=steps))

    layer(1)  # and here
    begun = layer(0)
    step = max(0.0, layer(FEW) - begun) / FEW
    return slopes + config.num_decoder_layers * (begun + STEPS * step)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started

"""What a stop of a tour, or a worksheet, may ask: functions of a StopScene, by name. Answers are computed from its
trace and its model, so that any sentence can be asked about; what cannot be says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from model.trace.language import words_of
from viz.ui.tours.asks import reading, trying
from viz.ui.tours.asks.task import Ask
from viz.ui.tours.scene import StopScene

ASKS: Mapping[str, Ask] = {**reading.ASKS, **trying.ASKS}


def asked(scene: StopScene, name: str) -> dict:
    """A question as the page gets it: a Task's fields, or why it cannot be asked."""
    try:
        return asdict(ASKS[name].find(scene))
    except ValueError as error:
        return {"missing": words_of(error)}

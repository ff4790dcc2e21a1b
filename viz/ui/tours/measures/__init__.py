"""What a tour's claims are measured by: functions of a StopScene and of what the claim gives, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from viz.ui.tours.measures import built, maps, runs
from viz.ui.tours.measures.measured import Measured

MEASURES: Mapping[str, Callable[..., Measured]] = {**built.MEASURES, **maps.MEASURES, **runs.MEASURES}

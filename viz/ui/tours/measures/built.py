"""What follows from how the network is built: the live checks of the tab Verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.checks import verify
from model.checks.evidence import Evidence
from viz.ui.tours.measures.measured import Measured, Unit
from viz.ui.tours.place import Place

CHECKS = {check.measure.__name__: check for check in verify.CHECKS}


def check(place: Place, name: str) -> Measured:
    """The error of one of the checks, as a share of what it tolerates."""
    output = place.translator.inspect(place.trace.source_ids, place.trace.target_ids)
    found = CHECKS[name]
    error, _ = found.measure(Evidence(place.translator, place.trace, output, {}))
    return Measured(float(error), Unit.ERROR)


MEASURES: Mapping[str, Callable[..., Measured]] = {check.__name__: check}

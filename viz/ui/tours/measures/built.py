"""What follows from how the network is built: the live checks of the tab Verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.analysis.again import recorded
from model.analysis.positions import geometry
from model.checks import verify
from model.checks.evidence import Evidence
from model.trace.kinds import Side
from viz.ui.tours.measures.measured import Measured, Unit
from viz.ui.tours.scene import StopScene

ROWS = 64  # positions
CHECKS = {check.measure.__name__: check for check in verify.CHECKS}


def check(scene: StopScene, name: str) -> Measured:
    """The error of one of the checks, as a share of what it tolerates."""
    output = recorded(scene.translator, scene.trace)
    found = CHECKS[name]
    error, _ = found.measure(Evidence(scene.translator, scene.trace, output, {}))
    return Measured(float(error), Unit.ERROR)


def rotation(scene: StopScene, shift: int) -> Measured:
    """How far the codes of positions are from those that stand `shift` places further on and are turned back to them
    (Vaswani et al. 2017, section 3.5)."""
    translator = scene.translator
    table = translator.model.source_positions(0, ROWS).detach().float().cpu().numpy()
    return Measured(geometry.rotation_residual(table, shift, geometry.waves_of(translator.config)), Unit.ERROR)


def wider(scene: StopScene) -> Measured:
    """How many times wider the feed-forward network's inner layer is than the model."""
    decoder = scene.translator.config.of(Side.DECODER)
    return Measured(decoder.d_feedforward / decoder.d_model, Unit.COUNT)


MEASURES: Mapping[str, Callable[..., Measured]] = {measure.__name__: measure for measure in (check, rotation, wider)}

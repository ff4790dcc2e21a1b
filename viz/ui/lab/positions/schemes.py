"""Five codes for positions, tried out."""

from __future__ import annotations

from model.analysis.positions import criteria
from model.analysis.positions.schemes import SCHEMES
from viz.ui.lab.controls import Slider
from viz.ui.lab.panel import Panel, Scene
from viz.ui.lab.tables import SECTION
from viz.ui.language import label
from viz.wire import blocks
from viz.words import Words, say


def schemes(scene: Scene, length: int, d_model: int) -> list[dict]:
    base = scene.translator.config.position_base
    rows = [[scheme.name, *(blocks.verdict(v.passed, v.shown_by) for v in
                            criteria.judge(scheme, length, d_model, base=base))] for scheme in SCHEMES]
    fewest = []
    for scheme in SCHEMES:
        exact, clear = (criteria.fewest_dimensions(scheme, length, margin=m, base=base) for m in (criteria.SAME, 0.5))
        fewest.append([scheme.name, scheme.formula, *(_width(found) for found in (exact, clear))])
    return [
        blocks.table((say("Code"), *(c.name for c in criteria.CRITERIA)), rows, marked=(len(rows) - 1,),
                     caption=say("For {n} positions and d_model {width}.", n=length, width=d_model)),
        blocks.table((say("Criterion"), say("Meaning")), [
            [c.name, c.meaning] for c in criteria.CRITERIA]),
        blocks.table((say("Code"), say("Value"), say("Fewest dimensions that tell {n} positions apart", n=length),
                      say("Fewest with every two at least 0.5 apart")), fewest, marked=(len(rows) - 1,))]


def _width(found: criteria.FewestDimensions) -> Words:
    pair = {"first": found.pair[0], "second": found.pair[1], "gap": blocks.compact(found.gap)}
    if found.width is None:
        return say("none: {first} and {second} stay {gap} apart", **pair)
    return say("{width}: positions {first} and {second} are {gap} apart", width=found.width, **pair)


PANEL = Panel(
    "position-schemes", label("Schemes"), say(
        "Why not just count? Five things a code for positions should do, tried out on five codes. Each answer is "
        "computed, and shows the positions that decide it."),
    SECTION, schemes,
    controls=(Slider(label("Positions"), 2, 128, 64), Slider("d_model", 2, 128, 64, step=2)))

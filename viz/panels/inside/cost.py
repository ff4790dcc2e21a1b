"""The panel "Cost of decoding": the measured time of each step with and without the cache."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.decoding_cost import MAX_STEPS, measure_cost
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def cost(scene: Scene) -> list[dict]:
    """Measure decoding this translation both ways, and draw the times."""
    times = measure_cost(scene.translator, scene.trace)
    steps, (whole, cached) = len(times.uncached), times.rows
    totals = [float(1000 * seconds.sum()) for seconds in (times.uncached, times.cached)]
    picture = plot_curves(
        {say("from the start"): 1000 * times.uncached, say("over the cache"): 1000 * times.cached},
        x=np.arange(1, steps + 1),
        x_title=say("step"),
        y_title=say("milliseconds, measured"),
    )
    return [
        blocks.facts(
            blocks.fact("From the start", f"{totals[0]:.1f} ms", "{n} rows of the decoder, 1 + 2 + … + T", n=whole),
            blocks.fact("Over the cache", f"{totals[1]:.1f} ms", "{n} rows, one a step", n=cached),
            blocks.fact("Rows saved", f"{whole / cached:.1f} ×", "exact; the time depends on what else runs here"),
            blocks.fact("Largest error", times.error, "of any logit between the two ways"),
        ),
        blocks.figure(picture, height=300, label=say("Milliseconds of each step, from the start and over the cache")),
        blocks.note(
            "Measured just now, on the first {n} steps of this translation, {most} at most. A short sentence "
            "hardly shows it: what a step costs besides its rows is then the larger part.",
            n=steps,
            most=MAX_STEPS,
        ),
    ]


PANEL = Panel(
    "cost",
    "Cost of decoding",
    "To write the next token, all rows before it could be computed anew. Their keys and values are the same as at "
    "the step before: a cache keeps them, and each step computes one row.",
    say("Paper, section {n}", n="3.1"),
    cost,
    of_any_network=True,
)

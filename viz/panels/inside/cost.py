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
        {say("without the cache"): 1000 * times.uncached, say("with the cache"): 1000 * times.cached},
        x=np.arange(1, steps + 1),
        x_title=say("step"),
        y_title=say("milliseconds, measured"),
    )
    return [
        blocks.facts(
            blocks.fact("Without the cache", f"{totals[0]:.1f} ms", "{n} rows of the decoder, 1 + 2 + … + T", n=whole),
            blocks.fact("With the cache", f"{totals[1]:.1f} ms", "{n} rows, one per step", n=cached),
            blocks.fact("Rows saved", f"{whole / cached:.1f} ×", "exact; the time depends on what else runs here"),
            blocks.fact("Largest error", times.error, "of any logit, between the two"),
        ),
        blocks.figure(picture, height=300, label=say("Milliseconds of each step, without and with the cache")),
        blocks.note(
            "Measured just now on the first {n} steps of this translation (at most {most}). Short "
            "sentences hardly show the effect, because fixed costs per step dominate.",
            n=steps,
            most=MAX_STEPS,
        ),
    ]


PANEL = Panel(
    "cost",
    "Cost of decoding",
    "How much time does the key-value cache save when the model writes one token after another?",
    say("Paper, section {n}", n="3.1"),
    cost,
    of_any_network=True,
    method=say(
        "Without a cache, every step computes all earlier rows again. Their keys and values do not "
        "change, so a cache keeps them and each step computes one row."
    ),
)

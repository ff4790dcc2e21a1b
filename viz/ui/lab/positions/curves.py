"""Columns of the table as curves over positions."""

from __future__ import annotations

import numpy as np

from model.analysis.positions import geometry
from viz.figures.curves import plot_curves
from viz.ui.lab.controls import Choice, Slider
from viz.ui.lab.needs import PAPERS_POSITIONS
from viz.ui.lab.panel import Panel, Scene
from viz.ui.lab.tables import SECTION, last_pair, longest, model_table
from viz.ui.language import label
from viz.wire import blocks
from viz.words import say

SINES, COSINES, BOTH = "sines", "cosines", "both"
WAVES = Choice(label("Waves"), {SINES: label("Sines"), COSINES: label("Cosines"), BOTH: label("Both")}, SINES)


def curves(scene: Scene, waves_of: str, first: int, step: int, length: int) -> list[dict]:
    values, config = model_table(scene, length), scene.translator.config
    pairs = list(range(first, config.d_model // 2, step))[:4]
    waves = geometry.wavelengths(config.d_model, config.position_base)
    marks = [(float(waves[p]), f"{blocks.compact(waves[p])}") for p in pairs if waves[p] < length]
    dimensions = [2 * p + odd for p in pairs for odd in {SINES: (0,), COSINES: (1,), BOTH: (0, 1)}[waves_of]]
    picture = plot_curves({say("dimension {i}", i=i): values[:, i] for i in dimensions},
                          x_title=say("position"), marks=marks, limits=(-1.1, 1.1))
    rows = [(say("{first} and {second}", first=2 * p, second=2 * p + 1), blocks.number(waves[p]),
             blocks.number(length / waves[p]),
             blocks.number(float(np.abs(np.diff(values[:, 2 * p])).max()))) for p in pairs]
    return [
        blocks.formula(say("wavelength of pair i = 2π · base^(2i/d_model)")),
        blocks.figure(picture, height=340, label=say(
            "Dimensions {dimensions} over {length} positions", dimensions=str(dimensions), length=length)),
        blocks.table((say("Dimensions"), say("Wavelength, positions"), say("Turns in {n} positions", n=length),
                      say("Largest step to the next position")), rows,
                     caption=say("The wavelength by its formula; the steps measured in the model's table."))]


PANEL = Panel(
    "position-curves", label("Curves"), say(
        "A column of the table is a wave over positions, sines in even dimensions and cosines in odd ones. Each next "
        "pair has a slightly longer wave: dotted lines mark where each has come round once."),
    SECTION, curves,
    controls=(WAVES, Slider(label("First pair of dimensions"), 0, last_pair, 8),
              Slider(label("Every so many pairs"), 1, 32, 8), Slider(label("Positions"), 8, longest, 64)),
    needs=(PAPERS_POSITIONS,))

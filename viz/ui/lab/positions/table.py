"""The table of positions that the model adds, and a free-standing one."""

from __future__ import annotations

import numpy as np

from model.analysis.positions import geometry
from model.analysis.positions.schemes import SCHEMES
from viz.figures.matrix import plot_matrix
from viz.maps import labels
from viz.ui.lab.controls import Choice, Slider
from viz.ui.lab.needs import PAPERS_POSITIONS
from viz.ui.lab.panel import Panel, Scene
from viz.ui.lab.tables import SECTION, longest, model_table
from viz.ui.language import drawn, label
from viz.wire import blocks
from viz.words import say

MODEL, FREE = "model", "free"
TABLES = {MODEL: label("what the model adds"), FREE: label("a free-standing table")}


def sentence_rows(scene: Scene, length: int) -> list[str]:
    """Position and, as far as the sentence goes, its token."""
    tokens = [labels.display(token) for token in scene.trace.source_tokens]
    return [f"{i}  {tokens[i]}" if i < len(tokens) else str(i) for i in range(length)]


def table(scene: Scene, which: str, length: int, d_model: int, base: float) -> list[dict]:
    config = scene.translator.config
    if which == MODEL:
        values, base = model_table(scene, length), config.position_base
    else:
        values = SCHEMES[-1].table(length, d_model, base=float(base))
    width, name = values.shape[1], drawn(TABLES[which])
    waves = geometry.wavelengths(width, base)
    picture = plot_matrix(values, rows=sentence_rows(scene, length), column_title=say("dimension"),
                          row_title=say("position"), limit=1.0)
    return [
        blocks.formula("PE(pos, 2i) = sin(pos / base^(2i/d_model)),  PE(pos, 2i+1) = cos(pos / base^(2i/d_model))"),
        blocks.figure(picture, height=max(260, min(680, 90 + 15 * length)),
                      label=say("{table}: {length} positions by {width} dimensions, from −1 to 1",
                                table=name, length=length, width=width)),
        blocks.facts(
            (say("Shape"), f"{length} × {width}",
             say("{table}; base {base}", table=name, base=f"{base:g}")),
            (say("Shortest wave"), say("{n} positions", n=blocks.compact(waves[0])),
             say("dimensions {first} and {second}", first=0, second=1)),
            (say("Longest wave"), say("{n} positions", n=blocks.compact(waves[-1])),
             say("dimensions {first} and {second}", first=width - 2, second=width - 1)),
            (say("Length of each row"), blocks.compact(float(np.linalg.norm(values, axis=1).mean())),
             f"√(d_model / 2) = {blocks.compact((width / 2) ** 0.5)}"))]


PANEL = Panel(
    "position-table", label("Table"), say(
        "Each row is the vector that is added to the token at that position. Look at how fast the columns change: "
        "the first ones at every step, the last ones hardly at all."),
    SECTION, table,
    controls=(Choice(label("Table"), TABLES, MODEL, scale=2), Slider(label("Positions"), 1, longest, 48),
              Slider(label("d_model (free)"), 2, 512, 64, step=2), Slider(label("base (free)"), 2, 20_000, 10_000)),
    needs=(PAPERS_POSITIONS,))

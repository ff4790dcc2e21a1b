"""The panel "Table": the position table that the model adds, or one of other sizes."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.positions import geometry
from attention_atlas.model.analysis.positions.codes import SCHEMES
from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.viz.figures.matrix import plot_matrix
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.formulas import SECTION, code_formula, max_positions, model_table
from attention_atlas.viz.panels.panel import ADDED_POSITIONS, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def sentence_rows(scene: Scene, length: int) -> list[str]:
    """Return the row labels: positions, with the sentence's tokens."""
    tokens = [labels.display(token) for token in scene.trace.source_tokens]
    return [f"{i}  {tokens[i]}" if i < len(tokens) else str(i) for i in range(length)]


def table(scene: Scene, length: int, d_model: int, base: int) -> list[dict]:
    """Draw a table. d_model, base: of a table of sines and cosines; both 0 for the model's own table."""
    config = scene.translator.config
    if d_model or base:
        base = max(2, base) if base else config.position_base
        config = ModelConfig(1, d_model=d_model or config.d_model, num_heads=1, position_base=float(base))
        values = SCHEMES[-1].table(length, config.d_model, base=config.position_base)
        name = say("not the model's own table")
    else:
        values, name = model_table(scene, length), say("what the model adds")
    width = values.shape[1]
    learned, has_waves = config.position_code is PositionCode.LEARNED, config.position_code.has_waves
    limit = 1.0 if has_waves else float(np.abs(values).max())
    picture = plot_matrix(
        values, rows=sentence_rows(scene, length), column_title=say("dimension"), row_title=say("position"), limit=limit
    )
    shape = say("{table}; base {base}", table=name, base=blocks.compact(config.position_base))
    lengths = blocks.compact(float(np.linalg.norm(values, axis=1).mean()))
    of_rows = f"√(d_model / 2) = {blocks.compact((width / 2) ** 0.5)}"
    return [
        *([blocks.note("The table is the encoder's; the decoder has one of its own.")] if learned else []),
        blocks.figure(
            picture,
            height=max(260, min(560, 90 + 15 * length)),
            label=say(
                "{table}: {length} positions by {width} dimensions, from {low} to {high}",
                table=name,
                length=length,
                width=width,
                low=blocks.compact(-limit),
                high=blocks.compact(limit),
            ),
        ),
        blocks.formula(code_formula(config)),
        blocks.facts(
            (say("Shape"), f"{length} × {width}", name if learned else shape),
            *(_waves(config) if has_waves else ()),
            (say("Length of each row"), lengths, of_rows if has_waves else say("mean of {n} positions", n=length)),
        ),
    ]


def _waves(config: ModelConfig) -> list[tuple]:
    """Return the facts about the shortest and the longest wave."""
    waves = geometry.waves_of(config)
    return [
        (
            title,
            say("{n} positions", n=blocks.compact(float(waves.lengths[pair]))),
            say("dimensions {first} and {second}", first=int(waves.sines[pair]), second=int(waves.cosines[pair])),
        )
        for title, pair in ((say("Shortest wave"), 0), (say("Longest wave"), -1))
    ]


PANEL = Panel(
    "position-table",
    "Table",
    "Each row is the vector added to the token at that position.",
    SECTION,
    table,
    controls=(
        Slider(say("Positions"), 1, max_positions, 48),
        Slider("d_model", 0, 512, 0, step=2, info=say("0: the model’s own")),
        Slider(say("base"), 0, 20_000, 0, info=say("0: the model’s own")),
    ),
    needs=(ADDED_POSITIONS,),
    method=say("In a table of waves, the first columns change at every step and the last ones hardly at all."),
)

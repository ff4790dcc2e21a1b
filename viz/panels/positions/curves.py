"""The panel "Curves": dimensions of the position code as curves over positions."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.positions import geometry
from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.panels.formulas import SECTION, code_formula, exponent, last_pair, max_positions, model_table
from attention_atlas.viz.panels.panel import ADDED_POSITIONS, Choice, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

SINES, COSINES, BOTH = "sines", "cosines", "both"
WHICH = Choice(say("Waves"), {SINES: say("Sines"), COSINES: say("Cosines"), BOTH: say("Both")}, SINES)


def curves(scene: Scene, which: str, first: int, step: int, length: int) -> list[dict]:
    """Draw up to four pairs of dimensions, from the first on in steps. which: sines, cosines or both."""
    values, config = model_table(scene, length), scene.translator.config
    if not config.position_code.has_waves:
        return _without_waves(config, values, list(range(2 * first, config.d_model, 2 * step))[:4], which)
    pairs = list(range(first, config.d_model // 2, step))[:4]
    waves = geometry.waves_of(config)
    lengths, sines, cosines = (array[pairs] for array in (waves.lengths, waves.sines, waves.cosines))
    marks = [(wave, blocks.compact(wave)) for wave in lengths.tolist() if wave < length]
    sides = {SINES: (sines,), COSINES: (cosines,), BOTH: (sines, cosines)}[which]
    dimensions = np.stack(sides, axis=1).ravel().tolist()
    both = zip(sines.tolist(), cosines.tolist())
    return [
        blocks.formula(f"λᵢ = 2π · base^({exponent(config)})", say("the wavelength of pair i")),
        _figure(values, dimensions, marks=marks, limits=(-1.1, 1.1)),
        blocks.columns(
            (say("Dimensions"), [say("{first} and {second}", first=sine, second=cosine) for sine, cosine in both]),
            (say("Wavelength, positions"), map(blocks.number, lengths)),
            (say("Rate ω"), [blocks.number(rate, 4) for rate in waves.rates[pairs].tolist()]),
            (say("Turns in {n} positions", n=length), map(blocks.number, length / lengths)),
            (say("Largest step to the next position"), map(blocks.number, _largest_steps(values[:, sines]))),
            caption=say("The wavelength by its formula; the steps measured in the model's table."),
        ),
        blocks.folded(say("The rates for d_model 512, as in the paper"), _paper_rates()),
    ]


def _paper_rates() -> dict:
    """Return the rates of the first pairs at the paper's width, for two bases."""
    bases = (10_000, 1_000)
    rates = [geometry.waves(512, base).rates[:5].tolist() for base in bases]
    return blocks.columns(
        (say("Pair"), map(blocks.number, range(5))),
        *(
            (say("base {base}", base=blocks.compact(base)), [blocks.number(rate, 4) for rate in column])
            for base, column in zip(bases, rates)
        ),
        caption=say(
            "Each position turns pair i by ω = base^(−2i / 512), where 2π is a whole turn. A smaller base makes "
            "neighbouring rates closer."
        ),
    )


def _without_waves(config: ModelConfig, values: np.ndarray, dimensions: list[int], which: str) -> list[dict]:
    """Draw a table that has no waves. Even dimensions stand for sines and odd ones for cosines, as in the paper."""
    offsets = {SINES: (0,), COSINES: (1,), BOTH: (0, 1)}[which]
    columns = [dimension + offset for dimension in dimensions for offset in offsets]
    drawn = values[:, columns]
    waves, shares = zip(*map(geometry.strongest_wave, drawn.T))
    learned = say(
        "These rows were learned; no waves were put into them. Positions never reached in training "
        "still have their random initial values."
    )
    return [
        blocks.text(learned) if config.position_code is PositionCode.LEARNED else blocks.formula(code_formula(config)),
        _figure(values, columns),
        blocks.columns(
            (say("Dimension"), [say("dimension {i}", i=i) for i in columns]),
            (say("smallest"), map(blocks.number, drawn.min(0))),
            (say("largest"), map(blocks.number, drawn.max(0))),
            (say("Largest step to the next position"), map(blocks.number, _largest_steps(drawn))),
            (say("Strongest wave, positions"), map(blocks.number, waves)),
            (say("its share of the variance"), map(blocks.bar, shares)),
            caption=say(
                "A column of sines or cosines is a single wave. The bar shows how much of the column the "
                "strongest wave explains, out of 1."
            ),
        ),
    ]


def _largest_steps(columns: np.ndarray) -> np.ndarray:
    """Return the largest difference of neighbouring positions in each column [position, column]."""
    return np.abs(np.diff(columns, axis=0)).max(0)


def _figure(values: np.ndarray, dimensions: list[int], **looks: object) -> dict:
    return blocks.figure(
        plot_curves({say("dimension {i}", i=i): values[:, i] for i in dimensions}, x_title=say("position"), **looks),
        height=340,
        label=say("Dimensions {dimensions} over {length} positions", dimensions=str(dimensions), length=len(values)),
    )


PANEL = Panel(
    "position-curves",
    "Curves",
    "A column of the table is a wave over positions. Each successive pair has a slightly longer wavelength.",
    SECTION,
    curves,
    controls=(
        WHICH,
        Slider(say("First pair of dimensions"), 0, last_pair, 8),
        Slider(say("Step between pairs"), 1, 32, 8),
        Slider(say("Positions"), 8, max_positions, 64),
    ),
    needs=(ADDED_POSITIONS,),
    method=say("Dotted lines mark where each wave has completed one turn. A learned table has columns of its own."),
)

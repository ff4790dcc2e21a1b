"""The panel "Rotation": a shift of positions as a rotation of pairs of dimensions (paper, section 3.5)."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.positions import geometry
from attention_atlas.model.analysis.positions.codes import SCHEMES, tutorial_encoding
from attention_atlas.viz.figures.curves import plot_rotation
from attention_atlas.viz.figures.matrix import plot_matrix
from attention_atlas.viz.panels.formulas import SECTION, last_pair, model_table
from attention_atlas.viz.panels.panel import ADDED_POSITIONS, WAVES, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

TUTORIAL = next(scheme for scheme in SCHEMES if scheme.encode is tutorial_encoding)


def rotation(scene: Scene, shift: int, pair: int) -> list[dict]:
    """Draw the rotation that shifts positions, for one pair of dimensions and as a block matrix."""
    config = scene.translator.config
    values, waves = model_table(scene, 64), geometry.waves_of(config)
    residual = geometry.rotation_residual(values, shift, waves)
    mistaken = geometry.rotation_residual(
        TUTORIAL.table(64, config.d_model, base=config.position_base),
        shift,
        geometry.waves(config.d_model, config.position_base),
    )
    in_pairs = np.stack((waves.sines, waves.cosines), axis=1)  # [pair, 2], dimensions
    matrix = geometry.rotation_matrix(shift, waves)[np.ix_(in_pairs.ravel(), in_pairs.ravel())]
    wave, corner = float(waves.lengths[pair]), min(12, len(matrix))
    block_2x2 = matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2]
    name = say("dimensions {first}, {second}", first=int(waves.sines[pair]), second=int(waves.cosines[pair]))
    circle = plot_rotation(values[:24, in_pairs[pair]], shift, name=name)
    in_corner = in_pairs.ravel()[:corner].astype(str).tolist()
    block = plot_matrix(
        matrix[:corner, :corner],
        rows=in_corner,
        columns=in_corner,
        row_title=say("dimension"),
        column_title=say("dimension"),
        limit=1.0,
    )
    return [
        blocks.formula(f"PE(pos + {shift}) = R({shift}) · PE(pos)"),
        blocks.row(
            blocks.figure(circle, height=430, label=say("24 positions on a circle, shifted by {k}", k=shift)),
            blocks.figure(block, height=430, label=say("The corner of the block rotation")),
        ),
        blocks.facts(
            blocks.fact("Largest error of the rotation", residual, "over 64 positions and all dimensions"),
            blocks.fact(
                "With a common tutorial bug", mistaken, "sine and cosine of a pair no longer share a frequency"
            ),
            blocks.fact(
                "This pair turns by",
                f"{blocks.compact(360.0 * shift / wave)}°",
                "{k} of {wave} positions per turn",
                k=shift,
                wave=blocks.compact(wave),
            ),
            blocks.fact(
                "Its block of R",
                f"cos {blocks.compact(block_2x2[0, 0])}, sin {blocks.compact(block_2x2[0, 1])}",
                "[cos, sin; −sin, cos] of that angle",
            ),
        ),
        blocks.note(
            "Right: the first {n} rows and columns of R({k}): one 2 × 2 rotation per pair, zeros between pairs.",
            n=corner,
            k=shift,
        ),
    ]


PANEL = Panel(
    "position-rotation",
    "Rotation",
    "Moving k positions on turns each pair of dimensions: all arrows turn by the same angle, so "
    "a shift is a single matrix.",
    SECTION,
    rotation,
    controls=(Slider(say("Shift k"), 0, 32, 3), Slider(say("Pair of dimensions on the circle"), 0, last_pair, 24)),
    needs=(ADDED_POSITIONS, WAVES),
)

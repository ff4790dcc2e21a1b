"""The panel "Similarity": dot products or distances between the codes of all pairs of positions."""

from __future__ import annotations

from attention_atlas.model.analysis.positions import geometry
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.figures.matrix import plot_matrix
from attention_atlas.viz.panels.formulas import SECTION, max_positions, model_table
from attention_atlas.viz.panels.panel import ADDED_POSITIONS, Choice, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

DOT, DISTANCE = "dot", "distance"
MEASURES = {DOT: say("dot product"), DISTANCE: say("Euclidean distance")}


def similarity(scene: Scene, measure: str, length: int) -> list[dict]:
    """Draw the measure for all pairs, and its mean by offset."""
    values = model_table(scene, length)
    pairs = geometry.dot_products(values) if measure == DOT else geometry.distances(values)
    at, name = dict(zip(("first", "second"), pairs.worst)), MEASURES[measure]
    picture = plot_matrix(
        pairs.matrix,
        row_title=say("position"),
        column_title=say("position"),
        unit=name,
        signed=bool((pairs.matrix < 0).any()),
    )
    return [
        blocks.row(
            blocks.figure(
                picture,
                height=430,
                label=say("{measure} between all pairs of {length} positions", measure=name, length=length),
            ),
            blocks.figure(
                plot_curves({name: pairs.by_offset}, x_title=say("offset"), y_title=name),
                height=430,
                label=say("mean {measure} by offset", measure=name),
            ),
        ),
        blocks.facts(
            (
                say("Largest deviation from its offset's mean"),
                blocks.compact(pairs.residual),
                say("positions {first} and {second}: zero up to rounding, so the matrix is a Toeplitz matrix", **at)
                if pairs.residual < 1e-4
                else say("positions {first} and {second}", **at),
            ),
            (say("At offset {k}", k=0), blocks.compact(pairs.by_offset[0]), say("a position with itself")),
            (say("At offset {k}", k=1), blocks.compact(pairs.by_offset[1]), say("neighbours")),
        ),
    ]


PANEL = Panel(
    "position-similarity",
    "Similarity",
    "How similar are two positions? With waves, similarity depends only on their distance: every "
    "diagonal has one colour.",
    SECTION,
    similarity,
    controls=(Choice(say("Similarity measure"), MEASURES, DOT), Slider(say("Positions"), 2, max_positions, 64)),
    needs=(ADDED_POSITIONS,),
)

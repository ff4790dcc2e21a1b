"""The tab on positional encoding: the table the model adds, its curves and geometry, and other schemes beside it."""

from __future__ import annotations

import gradio as gr
import numpy as np

from model.analysis.positions import criteria, geometry
from model.analysis.positions.schemes import SCHEMES
from model.translator import Translators
from viz.figures.curves import plot_curves
from viz.figures.matrix import plot_matrix
from viz.figures.rotation import plot_rotation
from viz.maps import labels
from viz.ui.header import Header
from viz.ui.lab import breaking
from viz.ui.lab.panel import Lab, Panel, Scene, heading
from viz.ui.language import choices, label
from viz.wire import blocks
from viz.words import Words, known, say

SECTION = say("Paper, section {n}", n="3.5")
MODEL, FREE = "model", "free"
TABLES = {MODEL: label("what the model adds"), FREE: label("a free-standing table")}
DOT, DISTANCE = "dot", "distance"
MEASURES = {DOT: label("dot product"), DISTANCE: label("Euclidean distance")}

TABLE = Panel(
    "position-table", label("Table"), say(
        "Each row is the vector that is added to the token at that position. Look at how fast the columns change: "
        "the first ones at every step, the last ones hardly at all."),
    SECTION)
CURVES = Panel(
    "position-curves", label("Curves"), say(
        "A column of the table is a wave over positions. Each next pair has a slightly longer wave: dotted lines "
        "mark where each has come round once."),
    SECTION)
SIMILARITY = Panel(
    "position-similarity", label("Similarity"), say(
        "How alike are two positions? Every diagonal has one colour: likeness depends on how far apart they are, "
        "not on where they stand."),
    SECTION)
ROTATION = Panel(
    "position-rotation", label("Rotation"), say(
        "Going k positions further turns each pair of dimensions by one angle, wherever one starts: all arrows "
        "turn alike. So a shift is one matrix."),
    SECTION)
SCHEME = Panel(
    "position-schemes", label("Schemes"), say(
        "Why not just count? Five things a code for positions should do, tried out on five codes. Each answer is "
        "computed, and shows the positions that decide it."),
    SECTION)


def build(translators: Translators, header: Header) -> None:
    """Lay out and wire the tab."""
    lab = Lab(translators, header.session)
    configs = [translator.config for translator in translators.values()]
    longest = min(256, max(config.max_length for config in configs))
    pairs = max(config.d_model for config in configs) // 2  # a narrower model takes its own last one
    with gr.Tabs(elem_id="positions-tabs"):
        with gr.Tab(TABLE.title, id=TABLE.name):
            heading(TABLE)
            with gr.Row():
                which = gr.Radio(choices(TABLES), value=MODEL, label=label("Table"),
                                 scale=2)
                length = gr.Slider(1, longest, 48, step=1, label=label("Positions"))
                d_model = gr.Slider(2, 512, 64, step=2, label=label("d_model (free)"))
                base = gr.Slider(2, 20_000, 10_000, step=1, label=label("base (free)"))
            lab.add(TABLE, table, controls=(which, length, d_model, base))
        with gr.Tab(CURVES.title, id=CURVES.name):
            heading(CURVES)
            with gr.Row():
                first = gr.Slider(0, pairs - 1, min(8, pairs - 1), step=1, label=label("First pair of dimensions"))
                step = gr.Slider(1, 32, 8, step=1, label=label("Every so many pairs"))
                length = gr.Slider(8, longest, 64, step=1, label=label("Positions"))
            lab.add(CURVES, curves, controls=(first, step, length))
        with gr.Tab(SIMILARITY.title, id=SIMILARITY.name):
            heading(SIMILARITY)
            with gr.Row():
                measure = gr.Radio(choices(MEASURES), value=DOT, label=label("Likeness"))
                length = gr.Slider(2, longest, 64, step=1, label=label("Positions"))
            lab.add(SIMILARITY, similarity, controls=(measure, length))
        with gr.Tab(ROTATION.title, id=ROTATION.name):
            heading(ROTATION)
            with gr.Row():
                shift = gr.Slider(0, 32, 3, step=1, label=label("Shift k"))
                pair = gr.Slider(0, pairs - 1, min(24, pairs - 1), step=1,
                                 label=label("Pair of dimensions on the circle"))
            lab.add(ROTATION, rotation, controls=(shift, pair))
        with gr.Tab(SCHEME.title, id=SCHEME.name):
            heading(SCHEME)
            with gr.Row():
                length = gr.Slider(2, 128, 64, step=1, label=label("Positions"))
                d_model = gr.Slider(2, 128, 64, step=2, label="d_model")
            lab.add(SCHEME, schemes, controls=(length, d_model))
        breaking.build(lab)
    lab.follow_the_sentence()


def model_table(scene: Scene, length: int) -> np.ndarray:
    """What the model itself adds at positions 0 .. length - 1: float32 [length, d_model]."""
    return scene.translator.model.source_positions(0, length).float().cpu().numpy()


def sentence_rows(scene: Scene, length: int) -> list[str]:
    """Position and, as far as the sentence goes, its token."""
    tokens = [labels.display(token) for token in scene.trace.source_tokens]
    return [f"{i}  {tokens[i]}" if i < len(tokens) else str(i) for i in range(length)]


def table(scene: Scene, which: str, length: int, d_model: int, base: float) -> list[dict]:
    length, config = int(length), scene.translator.config
    if which == MODEL:
        values, base = model_table(scene, length), config.position_base
    else:
        values = SCHEMES[-1].table(length, int(d_model), base=float(base))
    width, name = values.shape[1], known(TABLES[which].key)
    waves = geometry.wavelengths(width, base)
    picture = plot_matrix(values, rows=sentence_rows(scene, length), column_title="dimension", row_title="position",
                          limit=1.0)
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


def curves(scene: Scene, first: int, step: int, length: int) -> list[dict]:
    values, config = model_table(scene, int(length)), scene.translator.config
    pairs = list(range(min(int(first), config.d_model // 2 - 1), config.d_model // 2, int(step)))[:4]
    waves = geometry.wavelengths(config.d_model, config.position_base)
    marks = [(float(waves[p]), f"{blocks.compact(waves[p])}") for p in pairs if waves[p] < length]
    picture = plot_curves({f"dimension {2 * p}": values[:, 2 * p] for p in pairs}, x_title="position",
                          marks=marks, limits=(-1.1, 1.1))
    rows = [(say("{first} and {second}", first=2 * p, second=2 * p + 1), blocks.number(waves[p]),
             blocks.number(length / waves[p]),
             blocks.number(float(np.abs(np.diff(values[:, 2 * p])).max()))) for p in pairs]
    return [
        blocks.formula(say("wavelength of pair i = 2π · base^(2i/d_model)")),
        blocks.figure(picture, height=340, label=say(
            "Sine dimensions of pairs {pairs} over {length} positions", pairs=str(pairs), length=length)),
        blocks.table((say("Dimensions"), say("Wavelength, positions"), say("Turns in {n} positions", n=length),
                      say("Largest step to the next position")), rows,
                     caption=say("The wavelength by its formula; the steps measured in the model's table."))]


def similarity(scene: Scene, measure: str, length: int) -> list[dict]:
    values = model_table(scene, int(length))
    found = geometry.dot_products(values) if measure == DOT else geometry.distances(values)
    row, column = found.worst
    name = MEASURES[measure].key
    return [
        blocks.row(
            blocks.figure(plot_matrix(found.matrix, row_title="position", column_title="position", unit=name,
                                      signed=bool((found.matrix < 0).any())),
                          height=430, label=say("{measure} between all pairs of {length} positions",
                                            measure=known(name), length=length)),
            blocks.figure(plot_curves({name: found.by_offset}, x_title="offset", y_title=name), height=430,
                          label=say("mean {measure} by offset", measure=known(name)))),
        blocks.facts(
            (say("Largest departure from its offset's mean"), blocks.compact(found.residual),
             say("positions {first} and {second}: zero but for rounding, so the matrix is a Toeplitz matrix",
                 first=row, second=column)
             if found.residual < 1e-4 else say("positions {first} and {second}", first=row, second=column)),
            (say("At offset {k}", k=0), blocks.compact(found.by_offset[0]), say("a position with itself")),
            (say("At offset {k}", k=1), blocks.compact(found.by_offset[1]), say("neighbours")))]


def rotation(scene: Scene, shift: int, pair: int) -> list[dict]:
    config, shift = scene.translator.config, int(shift)
    pair = min(int(pair), config.d_model // 2 - 1)
    values = model_table(scene, 64)
    matrix = geometry.rotation_matrix(shift, config.d_model, config.position_base)
    residual = geometry.rotation_residual(values, shift, config.position_base)
    wave = geometry.wavelengths(config.d_model, config.position_base)[pair]
    shown = matrix[2 * pair:2 * pair + 2, 2 * pair:2 * pair + 2]
    corner = min(12, config.d_model)
    circle = plot_rotation(values[:24, 2 * pair:2 * pair + 2], shift, name=f"dimensions {2 * pair}, {2 * pair + 1}")
    return [
        blocks.formula(f"PE(pos + {shift}) = R({shift}) · PE(pos)"),
        blocks.row(
            blocks.figure(circle, height=430, label=say("24 positions on a circle, shifted by {k}", k=shift)),
            blocks.figure(plot_matrix(matrix[:corner, :corner], row_title="dimension", column_title="dimension",
                                      limit=1.0), height=430, label=say("The corner of the block rotation"))),
        blocks.facts(
            (say("Largest error of the rotation"), blocks.compact(residual),
             say("over 64 positions and all dimensions")),
            (say("This pair turns by"), f"{blocks.compact(360.0 * shift / wave)}°",
             say("{k} of {wave} positions a turn", k=shift, wave=blocks.compact(wave))),
            (say("Its block of R"), f"cos {blocks.compact(shown[0, 0])}, sin {blocks.compact(shown[0, 1])}",
             say("[cos, sin; −sin, cos] of that angle"))),
        blocks.text(say("Right: the first {n} rows and columns of R({k}), a 2 × 2 rotation for each pair, and nothing "
                        "between pairs.", n=corner, k=shift), tone="note")]


def schemes(scene: Scene, length: int, d_model: int) -> list[dict]:
    base, length, d_model = scene.translator.config.position_base, int(length), int(d_model)
    rows = [[known(scheme.name), *(blocks.verdict(v.passed, known(v.shown_by)) for v in
                            criteria.judge(scheme, length, d_model, base=base))] for scheme in SCHEMES]
    fewest = []
    for scheme in SCHEMES:
        exact, clear = (criteria.fewest_dimensions(scheme, length, margin=m, base=base) for m in (criteria.SAME, 0.5))
        fewest.append([known(scheme.name), scheme.formula, *(_width(found) for found in (exact, clear))])
    return [
        blocks.table((say("Code"), *(known(c.name) for c in criteria.CRITERIA)), rows, marked=(len(rows) - 1,),
                     caption=say("For {n} positions and d_model {width}.", n=length, width=d_model)),
        blocks.table((say("Criterion"), say("Meaning")), [
            [known(c.name), known(c.meaning)] for c in criteria.CRITERIA]),
        blocks.table((say("Code"), say("Value"), say("Fewest dimensions that tell {n} positions apart", n=length),
                      say("Fewest with every two at least 0.5 apart")), fewest, marked=(len(rows) - 1,))]


def _width(found: criteria.FewestDimensions) -> Words:
    pair = {"first": found.pair[0], "second": found.pair[1], "gap": blocks.compact(found.gap)}
    if found.width is None:
        return say("none: {first} and {second} stay {gap} apart", **pair)
    return say("{width}: positions {first} and {second} are {gap} apart", width=found.width, **pair)

"""The panel "√d_k": why scores are divided by √d_k, on random vectors and in this model."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import plotly.graph_objects as go

from attention_atlas.model.analysis.formulas.scoring import Sharpness, measure_growth, sharpness
from attention_atlas.model.analysis.formulas.stages import score_matrix
from attention_atlas.model.training.toy import measure
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.menus import HEAD, KIND, LAYER, resolve
from attention_atlas.viz.panels.panel import MASKED, SCALED, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

KEYS, WIDEST = 16, 256
MEASURED = (20, 50)  # updates
STEEPEST = 0.52  # top of the axis; the norm is at most 1/2, where two keys share all weight
SAMPLED = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, WIDEST)


def scale(scene: Scene, width: int, kind: str, layer: int, head: int) -> list[dict]:
    """Draw sharpness and gradient of the softmax over d_k. width: the d_k of the table."""
    d_head = scene.translator.config.of(resolve(scene, kind, layer, head)[0].side).d_head
    widths = tuple(sorted({*SAMPLED, width, min(d_head, WIDEST)}))
    plain, divided = measure_growth(widths, keys=KEYS)
    at = widths.index(width)
    marks = [(float(width), f"d_k = {width}")]
    if d_head <= WIDEST and d_head != width:
        marks.append((float(d_head), say("this model: {n}", n=d_head)))

    def draw(name: str, title: Words, limit: float) -> go.Figure:
        lines = {say("without the division"): plain, say("divided by √d_k"): divided}
        curves = {label: np.array([getattr(sharp, name) for sharp in line]) for label, line in lines.items()}
        return plot_curves(curves, x=np.array(widths), x_title="d_k", y_title=title, marks=marks, limits=(0, limit))

    return [
        blocks.formula(
            "q·k = Σ qᵢkᵢ,   Var(q·k) = d_k,   Var(q·k / √d_k) = 1",
            say("for components of mean 0 and variance 1; section {n}, footnote 4", n="3.2.1"),
        ),
        blocks.row(
            blocks.figure(
                draw("largest", say("largest weight"), 1.02),
                height=300,
                label=say("Mean largest softmax weight over d_k, with and without the division"),
            ),
            blocks.figure(
                draw("gradient", say("size of the gradient"), STEEPEST),
                height=300,
                label=say("Mean size of the softmax's gradient over d_k, with and without the division"),
            ),
        ),
        _table(
            say("Random q and k, d_k = {n}", n=width),
            plain[at],
            divided[at],
            say(
                "Measured on random vectors, {keys} keys per query. Gradient size: the Frobenius norm of the "
                "derivative of the weights with respect to the scores. Near 0, there is nothing left to "
                "learn from.",
                keys=KEYS,
            ),
        ),
        _in_the_model(scene, kind, layer, head),
        _in_training(),
    ]


def _in_the_model(scene: Scene, kind: str, layer: int, head: int) -> dict:
    """Return the same table for the scores of one head in this sentence."""
    attention, at_layer, at_head, _ = resolve(scene, kind, layer, head)
    divided = score_matrix(scene.output, attention, at_layer, at_head).masked
    return _table(
        say("{kind}, layer {layer}, head {head}", **labels.place(attention, at_layer, at_head)),
        sharpness(divided * scene.translator.config.of(attention.side).d_head ** 0.5),
        sharpness(divided),
        say(
            "The same for this sentence's queries and keys. A trained model can learn its own scale, so "
            "its scores need not have variance 1."
        ),
    )


def _in_training() -> dict:
    """Return the losses of networks trained with and without the division, for a small and a large d_k."""
    losses = measure.read()

    def row(width: int, place: str) -> list:
        names = (f"{place} default".strip(), f"{place} scale_scores".strip())
        return [
            f"d_k = {width}",
            *(f"{low:.2g} – {high:.2g}" for n in MEASURED for low, high in (losses[name][n] for name in names)),
        ]

    headings = [
        say("{n} updates, {how}", n=n, how=how)
        for n in MEASURED
        for how in (say("divided by √d_k"), say("without the division"))
    ]
    return blocks.stack(
        blocks.paragraph(
            "Does it slow learning? Where d_k is small, no: a step of the optimiser moves a score √d_k times as far "
            "without the division, and the softmax is not yet saturated. Where d_k is large, yes: the scores differ so "
            "much from the start that each query looks at one key, and little gradient corrects it."
        ),
        blocks.table(
            (say("Networks of the tab Train"), *headings),
            [row(16, ""), row(128, "wide")],
            caption=say(
                "Loss over the corpus, smallest to largest of five seeds, measured by {command}. d_k 16: d_model 64, "
                "4 heads; d_k 128: d_model 128, 1 head.",
                command="python -m attention_atlas.model.training.toy.measure",
            ),
        ),
    )


def _table(title: Words, plain: Sharpness, divided: Sharpness, caption: Words) -> dict:
    """Return a table of variance, largest weight and gradient of the scores, without the division and with it."""
    return blocks.table(
        (title, say("variance of the scores"), say("largest weight, mean"), say("size of the gradient, mean")),
        [
            [say("without the division"), *map(blocks.number, astuple(plain))],
            [say("divided by √d_k"), *map(blocks.number, astuple(divided))],
        ],
        caption=caption,
    )


PANEL = Panel(
    "scale",
    "√d_k",
    "Why divide by √d_k? Without it, the softmax saturates and its gradient vanishes.",
    say("Paper, section {n}", n="3.2.1"),
    scale,
    controls=(Slider("d_k", 1, WIDEST, 64), KIND, LAYER, HEAD),
    needs=(MASKED, SCALED),
    method=say("The longer the vectors, the more their dot products spread. Move d_k and watch both lines."),
)

"""What one sub-layer adds, and what the norm makes of the sum."""

from __future__ import annotations

import numpy as np

from model.analysis import stations
from model.analysis.stations import NormNumbers
from viz.ui.desk.scene import Scene
from viz.ui.lab.controls import Slider, tokens
from viz.ui.lab.menus import ENCODER, LAYER_OF_SIDE, SIDE, record_of, tokens_of
from viz.ui.lab.panel import RESIDUAL, Panel
from viz.wire import blocks
from viz.words import Words, say

SHOWN = 8  # dimensions whose numbers stand in the formula's table


def add_and_norm(scene: Scene, side: str, layer: int, sublayer: int, token: int) -> list[dict]:
    record, index = record_of(scene, side, layer)
    passed = record.sublayers[min(sublayer, len(record.sublayers)) - 1]
    config, function = scene.translator.config, stations.STATION_NAMES[passed.name]
    found, names = stations.add_and_norm(passed), tokens_of(scene, side)
    limit, normed = float(np.abs(found.stream[:, :48]).max()), float(np.abs(found.normed[:, :48]).max())
    rows = [
        [
            blocks.token(name),
            blocks.strip(found.stream[i, :48], limit=limit, name=name),
            blocks.number(float(found.before[i])),
            blocks.number(float(found.scale[i])),
            blocks.strip(found.normed[i, :48], limit=normed, name=name),
            blocks.number(float(found.added[i])),
            blocks.number(float(found.cosine[i])),
            blocks.number(float(found.after[i])),
        ]
        for i, name in enumerate(names)
    ]
    at = min(token, len(names)) - 1
    return [
        blocks.formula(
            "x + f(norm(x))" if config.norm_first else "norm(x + f(x))",
            say("encoder layer {layer}, f = {f}", layer=index + 1, f=function)
            if side == ENCODER
            else say("decoder layer {layer}, f = {f}", layer=index + 1, f=function),
        ),
        blocks.table(
            (
                say("Token"),
                say("stream x"),
                say("length"),
                say("norm scales by"),
                say("normed"),
                say("length of what f adds"),
                say("cosine to x"),
                say("length after"),
            ),
            rows,
            marked=(at,),
            caption=say(
                "The first 48 dimensions, each column on one scale. A cosine near 0: f adds something "
                "new; below 0: it takes something back."
            ),
        ),
        *_formula(stations.layer_norm(passed, at), names[at], at + 1, norm_first=config.norm_first),
    ]


def _formula(found: NormNumbers, token: str, number: int, *, norm_first: bool) -> list[dict]:
    """The layer norm's formula with one token's numbers."""
    read = (
        say("token {n}, {token}: the norm reads x", n=number, token=token)
        if norm_first
        else say("token {n}, {token}: the norm reads the sum x + f(x)", n=number, token=token)
    )
    if found.rms:
        return _rms(found, read)
    mean, variance, width = blocks.compact(found.mean), blocks.compact(found.variance), len(found.x)
    parts = (found.x, found.centred, found.normed, found.gain, found.bias, found.output, found.recorded)
    difference = float(np.abs(found.sample_output - found.output).max())
    return [
        blocks.formula("LN(x) = γ · (x − μ) / √(σ² + ε) + β", "Ba et al. 2016"),
        blocks.formula(f"= γ · (x − ({mean})) / √({variance} + {blocks.compact(found.epsilon)}) + β", read),
        blocks.table(
            (say("dimension"), "x", "x − μ", "÷ √(σ² + ε)", "γ", "β", "· γ + β", say("the model's own")),
            [[str(i), *(blocks.number(float(part[i])) for part in parts)] for i in range(min(SHOWN, width))],
            caption=say("The first {n} of {width} dimensions.", n=min(SHOWN, width), width=width),
        ),
        blocks.facts(
            (
                say("Population standard deviation"),
                blocks.compact(found.variance**0.5),
                say("squares divided by {n}: what a layer norm uses", n=width),
            ),
            (
                say("Sample standard deviation"),
                blocks.compact(found.sample_variance**0.5),
                say("squares divided by {n}: what some libraries' std() gives", n=width - 1),
            ),
            (say("The difference it would make"), blocks.compact(difference), say("the largest, in LN(x)")),
            (say("Largest error"), blocks.compact(found.error), say("this formula against the model's own norm")),
        ),
    ]


def _rms(found: NormNumbers, read: Words) -> list[dict]:
    """The RMS norm's formula with one token's numbers."""
    parts, width = (found.x, found.normed, found.gain, found.output, found.recorded), len(found.x)
    return [
        blocks.formula("RMS(x) = γ · x / √(mean(x²) + ε)", "Zhang and Sennrich 2019"),
        blocks.formula(f"= γ · x / √({blocks.compact(found.variance)} + {blocks.compact(found.epsilon)})", read),
        blocks.table(
            (say("dimension"), "x", "÷ √(mean(x²) + ε)", "γ", "· γ", say("the model's own")),
            [[str(i), *(blocks.number(float(part[i])) for part in parts)] for i in range(min(SHOWN, width))],
            caption=say("The first {n} of {width} dimensions.", n=min(SHOWN, width), width=width),
        ),
        blocks.facts(
            (
                say("The mean, which stays in"),
                blocks.compact(float(found.x.mean())),
                say("a layer norm would take it away"),
            ),
            (say("Largest error"), blocks.compact(found.error), say("this formula against the model's own norm")),
        ),
    ]


PANEL = Panel(
    "add-norm",
    say("Add & norm"),
    say(
        "One sub-layer adds its vector to each token's stream; a layer norm brings every stream to mean 0 and "
        "variance 1 before its gain and bias. Look at how much is added, and in which direction."
    ),
    say("Paper, section {n}", n="3.1"),
    add_and_norm,
    controls=(
        SIDE,
        LAYER_OF_SIDE,
        Slider(say("Sub-layer"), 1, 3, 1, name="sublayer"),
        Slider(say("Token"), 1, 64, 2, of=tokens),
    ),
    needs=(RESIDUAL,),
)

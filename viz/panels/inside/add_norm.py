"""What one sub-layer adds, and what the norm makes of the sum."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import stations
from attention_atlas.model.analysis.stations import NormNumbers
from attention_atlas.viz.panels.menus import ENCODER, LAYER_OF_SIDE, SIDE, record_of, tokens_of
from attention_atlas.viz.panels.panel import RESIDUAL, Panel, Slider, count_tokens
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

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
            blocks.headings(
                "Token",
                "stream x",
                "length",
                "norm scales by",
                "normed",
                "length of what f adds",
                "cosine to x",
                "length after",
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
    """The norm's formula with one token's numbers."""
    read = (
        say("token {n}, {token}: the norm reads x", n=number, token=token)
        if norm_first
        else say("token {n}, {token}: the norm reads the sum x + f(x)", n=number, token=token)
    )
    mean, variance, epsilon = map(blocks.compact, (found.mean, found.variance, found.epsilon))
    width = len(found.x)
    if found.rms:
        formula, source = "RMS(x) = γ · x / √(mean(x²) + ε)", "Zhang and Sennrich 2019"
        numbers = f"= γ · x / √({variance} + {epsilon})"
        columns = ("x", "÷ √(mean(x²) + ε)", "γ", "· γ")
        parts = (found.x, found.normed, found.gain, found.output, found.recorded)
        mean = blocks.compact(float(found.x.mean()))
        facts = [(say("The mean, which stays in"), mean, say("a layer norm would take it away"))]
    else:
        formula, source = "LN(x) = γ · (x − μ) / √(σ² + ε) + β", "Ba et al. 2016"
        numbers = f"= γ · (x − ({mean})) / √({variance} + {epsilon}) + β"
        columns = ("x", "x − μ", "÷ √(σ² + ε)", "γ", "β", "· γ + β")
        parts = (found.x, found.centred, found.normed, found.gain, found.bias, found.output, found.recorded)
        difference = float(np.abs(found.sample_output - found.output).max())
        facts = [
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
        ]
    shown = min(SHOWN, width)
    return [
        blocks.formula(formula, source),
        blocks.formula(numbers, read),
        blocks.table(
            (say("dimension"), *columns, say("the model's own")),
            [[str(i), *(blocks.number(float(part[i])) for part in parts)] for i in range(shown)],
            caption=say("The first {n} of {width} dimensions.", n=shown, width=width),
        ),
        blocks.facts(
            *facts,
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
        Slider(say("Token"), 1, 64, 2, of=count_tokens),
    ),
    needs=(RESIDUAL,),
)

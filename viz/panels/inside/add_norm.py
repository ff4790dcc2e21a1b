"""The panel "Add & norm": what one sub-layer adds to each token's stream, and the layer norm with numbers."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import stations
from attention_atlas.model.analysis.stations import NormNumbers
from attention_atlas.viz.panels.menus import ENCODER, LAYER_OF_SIDE, SIDE, record_of, tokens_of
from attention_atlas.viz.panels.panel import RESIDUAL, Panel, Slider, count_tokens
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

SHOWN = 8  # dimensions in the table of the formula


def add_and_norm(scene: Scene, side: str, layer: int, sublayer: int, token: int) -> list[dict]:
    """Draw one sub-layer for all tokens, and the norm's formula for one. Layer, sub-layer and token count from 1."""
    record, index = record_of(scene, side, layer)
    sublayer_record = record.sublayers[min(sublayer, len(record.sublayers)) - 1]
    config, function = scene.translator.config, stations.STATION_NAMES[sublayer_record.name]
    sums, names = stations.add_and_norm(sublayer_record), tokens_of(scene, side)
    limit, normed = float(np.abs(sums.stream[:, :48]).max()), float(np.abs(sums.normed[:, :48]).max())
    rows = [
        [
            blocks.token(name),
            blocks.strip(sums.stream[i, :48], limit=limit, name=name),
            blocks.number(float(sums.before[i])),
            blocks.number(float(sums.scale[i])),
            blocks.strip(sums.normed[i, :48], limit=normed, name=name),
            blocks.number(float(sums.added[i])),
            blocks.number(float(sums.cosine[i])),
            blocks.number(float(sums.after[i])),
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
        *_formula(stations.layer_norm(sublayer_record, at), names[at], at + 1, norm_first=config.norm_first),
    ]


def _formula(norm: NormNumbers, token: str, number: int, *, norm_first: bool) -> list[dict]:
    """Draw the norm's formula with the numbers of one token. number: the token's, from 1."""
    read = (
        say("token {n}, {token}: the norm reads x", n=number, token=token)
        if norm_first
        else say("token {n}, {token}: the norm reads the sum x + f(x)", n=number, token=token)
    )
    mean, variance, epsilon = map(blocks.compact, (norm.mean, norm.variance, norm.epsilon))
    width = len(norm.x)
    if norm.rms:
        formula, source = "RMS(x) = γ · x / √(mean(x²) + ε)", "Zhang and Sennrich 2019"
        numbers = f"= γ · x / √({variance} + {epsilon})"
        columns = ("x", "÷ √(mean(x²) + ε)", "γ", "· γ")
        parts = (norm.x, norm.normed, norm.gain, norm.output, norm.recorded)
        mean = blocks.compact(float(norm.x.mean()))
        facts = [(say("The mean, which stays in"), mean, say("a layer norm would take it away"))]
    else:
        formula, source = "LN(x) = γ · (x − μ) / √(σ² + ε) + β", "Ba et al. 2016"
        numbers = f"= γ · (x − ({mean})) / √({variance} + {epsilon}) + β"
        columns = ("x", "x − μ", "÷ √(σ² + ε)", "γ", "β", "· γ + β")
        parts = (norm.x, norm.centred, norm.normed, norm.gain, norm.bias, norm.output, norm.recorded)
        difference = float(np.abs(norm.sample_output - norm.output).max())
        facts = [
            (
                say("Population standard deviation"),
                blocks.compact(norm.variance**0.5),
                say("squares divided by {n}: what a layer norm uses", n=width),
            ),
            (
                say("Sample standard deviation"),
                blocks.compact(norm.sample_variance**0.5),
                say("squares divided by {n}: what some libraries' std() gives", n=width - 1),
            ),
            (say("The difference it would make"), blocks.compact(difference), say("the largest, in LN(x)")),
        ]
    num_shown = min(SHOWN, width)
    return [
        blocks.formula(formula, source),
        blocks.formula(numbers, read),
        blocks.table(
            (say("dimension"), *columns, say("the model's own")),
            [[str(i), *(blocks.number(float(part[i])) for part in parts)] for i in range(num_shown)],
            caption=say("The first {n} of {width} dimensions.", n=num_shown, width=width),
        ),
        blocks.facts(
            *facts,
            (say("Largest error"), blocks.compact(norm.error), say("this formula against the model's own norm")),
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

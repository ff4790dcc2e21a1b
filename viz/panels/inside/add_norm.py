"""The panel "Add & norm": what one sub-layer adds to each token's stream, and the layer norm with numbers."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import stations
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
    at = min(token, len(names)) - 1
    return [
        blocks.formula(
            "x + f(norm(x))" if config.norm_first else "norm(x + f(x))",
            say("encoder layer {layer}, f = {f}", layer=index + 1, f=function)
            if side == ENCODER
            else say("decoder layer {layer}, f = {f}", layer=index + 1, f=function),
        ),
        blocks.columns(
            (say("Token"), map(blocks.token, names)),
            (say("stream x"), blocks.strips(sums.stream[:, :48], names)),
            (say("length"), map(blocks.number, sums.before)),
            (say("norm scales by"), map(blocks.number, sums.scale)),
            (say("normed"), blocks.strips(sums.normed[:, :48], names)),
            (say("length of f"), map(blocks.number, sums.added)),
            (say("cosine to x"), map(blocks.number, sums.cosine)),
            (say("length after"), map(blocks.number, sums.after)),
            marked=(at,),
            caption=say(
                "The first 48 dimensions, each column on one scale. Cosine near 0: f adds something new; "
                "below 0: it removes something."
            ),
        ),
        *_formula(stations.layer_norm(sublayer_record, at), names[at], at + 1, norm_first=config.norm_first),
    ]


def _formula(norm: stations.NormNumbers, token: str, number: int, *, norm_first: bool) -> list[dict]:
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
        parts = {"x": norm.x, "÷ √(mean(x²) + ε)": norm.normed, "γ": norm.gain, "· γ": norm.output}
        facts = [blocks.fact("Mean (kept)", norm.x.mean(), "a layer norm would remove it")]
    else:
        formula, source = "LN(x) = γ · (x − μ) / √(σ² + ε) + β", "Ba et al. 2016"
        numbers = f"= γ · (x − ({mean})) / √({variance} + {epsilon}) + β"
        parts = {"x": norm.x, "x − μ": norm.centred, "÷ √(σ² + ε)": norm.normed, "γ": norm.gain, "β": norm.bias}
        parts["· γ + β"] = norm.output
        difference = np.abs(norm.sample_output - norm.output).max()
        facts = [
            blocks.fact(
                "Population standard deviation",
                norm.variance**0.5,
                "squares divided by {n}: what a layer norm uses",
                n=width,
            ),
            blocks.fact(
                "Sample standard deviation",
                norm.sample_variance**0.5,
                "squares divided by {n}: what some libraries' std() gives",
                n=width - 1,
            ),
            blocks.fact("The difference it would make", difference, "the largest, in LN(x)"),
        ]
    num_shown = min(SHOWN, width)
    return [
        blocks.formula(formula, source),
        blocks.formula(numbers, read),
        blocks.columns(
            (say("dimension"), map(str, range(num_shown))),
            *((name, map(blocks.number, part[:num_shown])) for name, part in parts.items()),
            (say("the model's own"), map(blocks.number, norm.recorded[:num_shown])),
            caption=say("The first {n} of {width} dimensions.", n=num_shown, width=width),
        ),
        blocks.facts(*facts, blocks.fact("Largest error", norm.error, "this formula against the model's own norm")),
    ]


PANEL = Panel(
    "add-norm",
    "Add & norm",
    "How much does a sub-layer add to each token's residual stream, and in which direction?",
    say("Paper, section {n}", n="3.1"),
    add_and_norm,
    controls=(
        SIDE,
        LAYER_OF_SIDE,
        Slider(say("Sub-layer"), 1, 3, 1, name="sublayer"),
        Slider(say("Token"), 1, 64, 2, of=count_tokens),
    ),
    needs=(RESIDUAL,),
    method=say("A layer norm brings every stream to mean 0 and variance 1 before its gain and bias."),
)

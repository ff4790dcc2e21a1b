"""The panel "Kernels": Nadaraya-Watson regression, with several kernels and with attention's score as the kernel."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.formulas.kernels import KERNELS, WIDTH, fit_regression
from attention_atlas.viz.figures.curves import plot_regression
from attention_atlas.viz.panels.panel import Choice, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

CHOICE = Choice(
    say("Kernel"),
    {
        "gaussian": say("Gaussian"),
        "boxcar": say("Boxcar"),
        "triangular": say("Triangular"),
        "attention": say("replaced by q·k / √d_k"),
    },
    "gaussian",
    scale=2,
)


def kernels(scene: Scene, name: str, tenths: int, points: int) -> list[dict]:
    """Draw a regression with one kernel. tenths: ten times the bandwidth."""
    kernel, bandwidth = KERNELS[name], tenths / 10
    fit = fit_regression(kernel, bandwidth, points=points)
    numbers = {"rows": [f"x = {x:.2f}" for x in fit.queries], "columns": [f"xᵢ = {x:.2f}" for x in fit.keys]}
    arguments = (
        say("q and k: the codes of x and xᵢ in bandwidths, sines and cosines, {n} dimensions", n=WIDTH)
        if name == "attention"
        else say("u = (x − xᵢ) / bandwidth")
    )
    picture = plot_regression(fit.keys, fit.values, fit.queries, fit.fitted, fit.true)
    title = say("weights: a row per query, a column per point")
    num_heard = (fit.weights > 0.5 / fit.weights.shape[1]).sum(-1).mean()
    every = KERNELS.values()
    errors = [fit_regression(kernel, bandwidth, points=points).error for kernel in every]
    return [
        blocks.formula("f(x) = Σᵢ yᵢ · K(x, xᵢ) / (Σⱼ K(x, xⱼ))", "Nadaraya 1964; Watson 1964"),
        blocks.formula(f"K = {kernel.formula}", arguments),
        blocks.row(
            blocks.figure(picture, height=330, label=say("{n} noisy points, the fitted curve and the truth", n=points)),
            blocks.maps(blocks.heatmap(fit.weights, title, signed=False, **numbers)),
        ),
        blocks.note(
            "The truth is {here}, with noise of standard deviation 0.5, as in the first edition of Dive into Deep "
            "Learning, section 10.2. The second edition, section 11.2, has {there}.",
            here="2 sin(x) + x^0.8",
            there="2 sin(x) + x",
        ),
        blocks.facts(
            blocks.fact("Error of the fit", fit.error, "root mean square, against the truth"),
            blocks.fact("Largest weight, mean", fit.weights.max(-1).mean(), "of the points, at a query"),
            blocks.fact("Points that count", num_heard, "mean number with more than half of an even share"),
            blocks.fact("Queries out of reach", str(np.isnan(fit.fitted).sum()), "no point within a bandwidth"),
        ),
        blocks.columns(
            (say("Kernel"), [kernel.name for kernel in every]),
            ("K", [blocks.symbols(kernel.formula) for kernel in every]),
            (say("source"), [kernel.source for kernel in every]),
            (say("error of the fit"), map(blocks.number, errors)),
            marked=(list(KERNELS).index(name),),
            caption=say(
                "On the same points with the same bandwidth. The last one is attention: keys xᵢ, values yᵢ, and one "
                "query for every x."
            ),
        ),
    ]


PANEL = Panel(
    "kernels",
    "Kernels",
    "Attention fifty years earlier: a kernel predicts by averaging the data, weighted by distance.",
    say("Paper, section {n}", n="3.2.1"),
    kernels,
    controls=(CHOICE, Slider(say("Bandwidth, in tenths"), 1, 30, 5), Slider(say("Points"), 5, 100, 40)),
    of_any_network=True,
    method=say(
        "Adjust the bandwidth until the curve is neither jagged nor flat, then replace the kernel by q·k / √d_k."
    ),
)

"""The cross-entropy of the current sentence, token by token, beside the loss of the training."""

from __future__ import annotations

import numpy as np

from model.training import learned
from viz.figures.curves import plot_curves
from viz.maps import labels
from viz.ui.desk.scene import Scene
from viz.ui.lab.panel import Panel
from viz.wire import blocks
from viz.words import say


def surprise(scene: Scene) -> list[dict]:
    trace, folder = scene.trace, scene.translator.folder
    losses = -np.asarray(trace.log_probability, np.float64)
    largest, mean = float(losses.max(initial=0.0)) or 1.0, float(losses.mean())
    rows = [
        [
            blocks.token(labels.display(token)),
            blocks.number(float(np.exp(-loss))),
            blocks.bar(float(loss) / largest, f"{loss:.3f}"),
        ]
        for token, loss in zip(trace.target_tokens, losses)
    ]
    logged = folder is not None and (folder / learned.LOG).is_file()
    return [
        blocks.formula("L = − (1 / T) · Σ log p(yₜ | y₁ … yₜ₋₁, x)"),
        blocks.facts(
            (
                say("This translation"),
                f"{mean:.3f}",
                say("nats a token, mean of {n}; padding would not count", n=len(losses)),
            ),
            (say("Perplexity"), f"{np.exp(mean):.2f}", say("as if it chose among so many tokens each time")),
        ),
        blocks.table(
            (say("Token"), say("probability"), say("nats")),
            rows,
            foot=[say("mean"), "", f"{mean:.3f}"],
            caption=say("The model's own choices: a greedy translation surprises it less than a reference."),
        ),
        *(
            _training(*learned.curve(folder), mean)
            if logged
            else [blocks.text(say("The log of this model's training is not here."))]
        ),
    ]


def _training(updates: np.ndarray, curve: np.ndarray, mean: float) -> list[dict]:
    picture = plot_curves(
        {say("training loss"): curve, say("this translation"): np.full(len(curve), mean)},
        x=updates,
        x_title=say("update"),
        y_title=say("loss, nats a token"),
    )
    return [
        blocks.facts(
            (
                say("End of its training"),
                f"{curve[-1]:.3f}",
                say("nats a token of the training's references, with smoothed labels"),
            )
        ),
        blocks.figure(picture, height=280, label=say("The training loss by update, and the mean of this translation")),
    ]


PANEL = Panel(
    "surprise",
    say("This sentence's loss"),
    say(
        "What training minimises, for the sentence above: how surprised the model is by each token. Their mean stands "
        "beside the curve of the training."
    ),
    say("Paper, section {n}", n="5.4"),
    surprise,
    of_any_network=True,
)

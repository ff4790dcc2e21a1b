"""The panel "This sentence's loss": the cross-entropy of each token, compared with the loss of the training."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.training_batch import make_training_batch, min_smoothed_loss
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.training import learned
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.train.batch import smoothing_note
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def surprise(scene: Scene) -> list[dict]:
    """Draw the loss of each token, plain and with smoothed labels, and the training curve."""
    trace, folder = scene.trace, scene.translator.folder
    losses = -np.asarray(trace.log_probability, np.float64)
    lowest = min_smoothed_loss(scene.translator.config.num_target_tokens)
    try:
        columns = [losses, make_training_batch(scene.translator, trace).smoothed[0, : len(losses)]]
    except Refusal:  # interventions that cannot be run again: only the recorded probabilities are known
        columns = [losses]
    means = [float(column.mean()) for column in columns]

    def bars(values: np.ndarray) -> list[dict]:
        largest = values.max(initial=0.0) or 1.0
        return [blocks.bar(value / largest, f"{value:.3f}") for value in values]

    training = [blocks.paragraph("The log of this model's training is missing.")]
    if folder is not None and (folder / learned.LOG).is_file():
        training = _training(*learned.curve(folder), means[1:], lowest)
    return [
        blocks.formula("L = − (1 / T) · Σ log p(yₜ | y₁ … yₜ₋₁, x)"),
        blocks.facts(
            blocks.fact(
                "This translation",
                f"{means[0]:.3f}",
                "nats per token, mean of {n}; padding does not count. The minimum is 0",
                n=len(losses),
            ),
            *((say("With smoothed labels"), f"{mean:.3f}", smoothing_note(lowest)) for mean in means[1:]),
            blocks.fact("Perplexity", f"{np.exp(means[0]):.2f}", "as if it chose among this many tokens each time"),
        ),
        blocks.columns(
            (say("Token"), [blocks.token(labels.display(token)) for token in trace.target_tokens]),
            (say("probability"), map(blocks.number, np.exp(-losses))),
            *zip((say("nats"), say("nats, smoothed")), map(bars, columns)),
            foot=[say("mean"), "", *(f"{mean:.3f}" for mean in means)],
            caption=say("The model's own choices: a greedy translation surprises it less than a reference."),
        ),
        *training,
    ]


def _training(updates: np.ndarray, curve: np.ndarray, means: list[float], lowest: float) -> list[dict]:
    """Draw the logged training loss. All values are with smoothed labels, so that they share an axis."""
    picture = plot_curves(
        {
            say("training loss"): curve,
            **{say("this translation"): np.full(len(curve), mean) for mean in means},
            say("least possible"): np.full(len(curve), lowest),
        },
        x=updates,
        x_title=say("update"),
        y_title=say("smoothed loss, nats per token"),
    )
    return [
        blocks.facts(
            blocks.fact(
                "End of the logged run",
                f"{curve[-1]:.3f}",
                "nats per token of the training's references, with smoothed labels",
            )
        ),
        blocks.figure(picture, height=280, label=say("The training loss by update, and the mean of this translation")),
        blocks.note(
            "Of a single run. The model card says whether it continued another run, or another run continued it."
        ),
    ]


PANEL = Panel(
    "surprise",
    "This sentence's loss",
    "What training minimises: how surprised the model is by each token.",
    say("Paper, section {n}", n="5.4"),
    surprise,
    of_any_network=True,
    method=say("The mean over this sentence is compared with the loss of a training run on its own sentences."),
)

"""The panel "A training batch": the sentence among others as training sees them, with the loss of every cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat

import numpy as np

from attention_atlas.model.analysis.training_batch import SENTENCES, SMOOTHING, make_training_batch, min_smoothed_loss
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say


def batch(scene: Scene, sentence: int) -> list[dict]:
    """Draw a batch. sentence: the number, from 1, of the sentence whose tokens are listed."""
    seen_batch = make_training_batch(scene.translator, scene.trace)
    count, source = seen_batch.source.shape
    at, target = min(sentence, count) - 1, seen_batch.inputs.shape[1]
    title, places = say("Loss of every cell: sentence × place"), range(max(source, target))
    largest = np.nanmax(seen_batch.losses) or 1.0

    def pad(cells: Iterable) -> Iterator:
        """Yield a side's cells, and empty ones beyond its end."""
        return islice(chain(cells, repeat("")), len(places))

    def token_block(token: str) -> dict:
        return blocks.token(labels.display(token))

    def loss(value: float) -> dict | str:
        return blocks.shade(value / largest, f"{value:.3f}") if np.isfinite(value) else ""

    if isinstance(scene.translator.model, Transformer):
        shifted = say(
            "Sentence {n} of {all}. The decoder reads the correct words shifted by one place, so all "
            "places are trained in one pass; the look-ahead mask hides the answer from each.",
            n=at + 1,
            all=count,
        )
    else:
        shifted = say(
            "Sentence {n} of {all}. The decoder reads the correct words shifted by one place, one after "
            "another, so no place has read its answer.",
            n=at + 1,
            all=count,
        )
    return [
        blocks.facts(
            blocks.fact("Source", f"{count} × {source}", "sentences × tokens, <pad> included"),
            blocks.fact("Decoder input and output", f"{count} × {target}", "the same tokens, shifted by one place"),
            blocks.fact(
                "Logits", " × ".join(map(blocks.compact, seen_batch.logits)), "one row for each token to be written"
            ),
            blocks.fact(
                "Tokens that count", f"{seen_batch.real} / {count * target}", "the rest is padding, which has no loss"
            ),
        ),
        blocks.columns(
            (say("Place"), map(blocks.number, places)),
            (say("encoder reads"), pad(map(token_block, seen_batch.tokens[0][at]))),
            ("id", pad(map(str, seen_batch.source[at]))),
            (say("decoder reads"), pad(map(token_block, seen_batch.tokens[1][at]))),
            ("id", pad(map(str, seen_batch.inputs[at]))),
            (say("must write"), pad(map(token_block, seen_batch.tokens[2][at]))),
            ("id", pad(map(str, seen_batch.outputs[at]))),
            (say("loss, nats"), pad(map(loss, seen_batch.losses[at]))),
            caption=shifted,
        ),
        blocks.maps(blocks.heatmap(seen_batch.losses, title, signed=False, note=say("padding is grey"))),
        blocks.formula("L = − (1 / N) · Σ log p(yₜ | y₁ … yₜ₋₁, x)", say("over the N tokens that are not <pad>")),
        blocks.facts(
            blocks.fact("Loss of the batch", f"{seen_batch.mean():.3f}", "nats per token"),
            (
                say("With smoothed labels"),
                f"{seen_batch.mean(smoothed=True):.3f}",
                smoothing_note(min_smoothed_loss(seen_batch.logits[-1])),
            ),
        ),
        blocks.note(
            "Your sentence is shown next to pairs from the toy's corpus, with the weights the toy had "
            "when it was opened. The toy's own output stands in for the correct answer, so the loss is "
            "lower than in training."
        )
        if scene.translator.recipe is not None
        else blocks.note(
            "Your sentence is shown next to this model's examples. Its own translation stands in for a "
            "human one, so the loss is lower than in training. To see a batch from a toy's corpus, open "
            "the toy in the other tabs."
        ),
    ]


def smoothing_note(lowest: float) -> Words:
    """Return the explanation of a loss with smoothed labels. lowest: the least possible loss."""
    return say(
        "nats per token, {share} of the label spread over all tokens; the minimum is {least}",
        share=SMOOTHING,
        least=f"{lowest:.2f}",
    )


PANEL = Panel(
    "batch",
    "A training batch",
    "One training step: padded sentences, shifted decoder inputs, and a loss for every real token.",
    say("Paper, section {n}", n="5.1"),
    batch,
    controls=(Slider(say("Sentence of the batch"), 1, SENTENCES, 1),),
    of_any_network=True,
)

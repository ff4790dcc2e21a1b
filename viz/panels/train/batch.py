"""The panel "A training batch": the sentence among others as training sees them, with the loss of every cell."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.training_batch import (
    SENTENCES,
    SMOOTHING,
    TrainingBatch,
    make_training_batch,
    min_smoothed_loss,
)
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
    longest = float(np.nanmax(seen_batch.losses)) or 1.0
    title = say("Loss of every cell: sentence × place")
    return [
        blocks.facts(
            (say("Source"), f"{count} × {source}", say("sentences × tokens, <pad> included")),
            (say("Decoder input and output"), f"{count} × {target}", say("the same tokens, one place apart")),
            (
                say("Logits"),
                " × ".join(map(blocks.compact, seen_batch.logits)),
                say("one row for each token to be written"),
            ),
            (
                say("Tokens that count"),
                f"{seen_batch.real} / {count * target}",
                say("the rest is padding, which has no loss"),
            ),
        ),
        blocks.table(
            (
                say("Place"),
                say("encoder reads"),
                "id",
                say("decoder reads"),
                "id",
                say("must write"),
                "id",
                say("loss, nats"),
            ),
            [_cells(seen_batch, at, place, longest) for place in range(max(source, target))],
            caption=say(
                "Sentence {n} of {all}. The decoder reads the right words, one place late: so all places are "
                "trained in one pass, and the look-ahead mask keeps the answer from each.",
                n=at + 1,
                all=count,
            ),
        ),
        blocks.maps(blocks.heatmap(seen_batch.losses, title, signed=False, note=say("padding is grey"))),
        blocks.formula("L = − (1 / N) · Σ log p(yₜ | y₁ … yₜ₋₁, x)", say("over the N tokens that are not <pad>")),
        blocks.facts(
            (say("Loss of the batch"), f"{seen_batch.mean():.3f}", say("nats a token")),
            (
                say("With smoothed labels"),
                f"{seen_batch.mean(smoothed=True):.3f}",
                smoothing_note(min_smoothed_loss(seen_batch.logits[-1])),
            ),
        ),
        blocks.note(
            "Your sentence is shown beside pairs of the toy's own corpus, as the toy was when it was opened. "
            "What the toy writes takes the place of the right answer, so its loss is lower than in training."
        )
        if scene.translator.recipe is not None
        else blocks.note(
            "Your sentence is shown beside this model's own examples. Its own translation takes the place of a "
            "person's, so its loss is lower than in training. For the batch of a toy's corpus, open the toy in "
            "the other tabs."
        ),
    ]


def smoothing_note(lowest: float) -> Words:
    """Return the explanation of a loss with smoothed labels. lowest: the least possible loss."""
    return say(
        "nats a token, {share} of the label on all tokens; {least} is the least possible",
        share=SMOOTHING,
        least=f"{lowest:.2f}",
    )


def _cells(batch: TrainingBatch, sentence: int, place: int, longest: float) -> list:
    """Return a row of the table: the tokens at one place of each side, empty beyond its end, and the loss."""
    cells: list = [blocks.number(place)]
    for ids, tokens in zip((batch.source, batch.inputs, batch.outputs), batch.tokens):
        inside = place < ids.shape[1]
        cells += (
            [blocks.token(labels.display(tokens[sentence][place])), str(ids[sentence, place])] if inside else ["", ""]
        )
    loss = batch.losses[sentence, place] if place < batch.losses.shape[1] else np.nan
    return [*cells, blocks.shade(loss / longest, f"{loss:.3f}") if np.isfinite(loss) else ""]


PANEL = Panel(
    "batch",
    say("A training batch"),
    say(
        "What one step of training sees: sentences padded to one length, the decoder's input one place behind its "
        "output, and a loss in every cell but padding."
    ),
    say("Paper, section {n}", n="5.1"),
    batch,
    controls=(Slider(say("Sentence of the batch"), 1, SENTENCES, 1),),
)

"""Which cells are closed: padding and causality."""

from __future__ import annotations

from model.analysis import padding
from viz.maps import labels
from viz.ui.lab.controls import Text
from viz.ui.lab.needs import MASKED
from viz.ui.lab.panel import Panel, Scene
from viz.ui.language import label
from viz.wire import blocks
from viz.words import say


def show_masks(scene: Scene, second: str) -> list[dict]:
    found = padding.of_two(scene.translator, scene.trace, second or None)
    rows = [labels.display(token) for token in scene.trace.decoder_inputs]
    batch = [[labels.display(token) for token in tokens] for tokens in found.tokens]
    columns = [f"{i}" for i in range(found.padding.shape[1])]
    return [
        blocks.text(say("A batch of two, padded to {n} tokens. Mask from the ids: token ≠ <pad>. Mask from the "
                        "lengths: position < length.", n=len(columns))),
        blocks.table((say("Sentence"), say("length"), *columns), [
            [f"{n + 1}", blocks.number(int(found.lengths[n])), *(
                blocks.shade(0.6 if open_ else 0.0, token) for open_, token in zip(found.padding[n], batch[n]))]
            for n in range(2)], caption=say(
                "Padding mask, [batch, key]: shaded keys may be attended to by every query.")),
        blocks.facts((say("Ids and lengths agree"), say("yes") if found.agree else say("no"),
                      say("all {n} cells compared", n=found.padding.size)),
                     (say("Causal mask"), f"{found.causal.shape[0]} × {found.causal.shape[1]}",
                      say("{n} cells open: n (n + 1) / 2", n=int(found.causal.sum())))),
        blocks.table((say("Query"), say("keys, in the same order"), say("sees")), [
            [blocks.token(name), blocks.strip(found.causal[i], signed=False, name=say("mask of {token}", token=name)),
             blocks.number(int(found.causal[i].sum()))] for i, name in enumerate(rows)],
            caption=say("Causal mask of the decoder, [query, key]: each row sees itself and what is before."))]


PANEL = Panel(
    "masks", label("Masks"), say(
        "Empty cells may not be looked at. Padding closes whole columns, since a shorter sentence has nothing "
        "there; causality closes the future."),
    say("Paper, section {n}", n="3.2.3"), show_masks,
    controls=(Text(label("A second, shorter sentence for the batch (empty: the first words of this one)")),),
    needs=(MASKED,))

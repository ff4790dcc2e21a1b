"""The panel "Masks": the padding and causal masks of a batch of two sentences, and the weights under them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attention_atlas.model.analysis import padding
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import MASKED, Choice, Panel, Text
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

MASKS, WEIGHTS = "masks", "weights"
SHOWN = Choice(say("Show"), {MASKS: say("the masks"), WEIGHTS: say("the weights of a padded pass")}, MASKS)
TITLES = {
    "encoder": (AttentionKind.ENCODER_SELF, say("Encoder: query × key")),
    "padding": (AttentionKind.DECODER_SELF, say("Decoder: padding")),
    "future": (AttentionKind.DECODER_SELF, say("Decoder: future")),
    "both": (AttentionKind.DECODER_SELF, say("Decoder: padding and future")),
    "cross": (AttentionKind.CROSS, say("Cross-attention: target × source")),
}
OPEN = (say("masked"), say("open"))


def show_masks(scene: Scene, content: str, second: str) -> list[dict]:
    """Draw the masks, or the weights of a padded pass. second: the other sentence; "" for a part of this one."""
    batch = padding.make_batch_masks(scene.translator, scene.trace, second or None)
    output = padding.run_padded(scene.translator, batch)
    closed = padding.max_masked_weight(output, batch)
    needless = padding.measure_target_padding(scene.translator, batch)
    places = {kind: replace(scene.selection, kind=kind).clamp(scene.trace) for kind in scene.trace.kinds}
    explained = (
        blocks.note("A cell is open if the query of its row may attend to the key of its column.")
        if content == MASKS
        else blocks.note(
            "The weights of layer {layer}, head {head}, from one pass over both sentences. Rows of "
            "padding have weights too, but they are never used.",
            layer=places[AttentionKind.CROSS].layer + 1,
            head=places[AttentionKind.CROSS].head + 1,
        )
    )
    sentences = [_sentence(batch, sentence, output if content == WEIGHTS else None, places) for sentence in range(2)]
    return [
        blocks.paragraph(
            "A batch of two, padded to {n} tokens of the source and {m} of the target.",
            n=batch.padding.shape[1],
            m=len(batch.causal),
        ),
        explained,
        *sentences,
        blocks.facts(
            blocks.fact(
                "Ids and lengths agree",
                say("yes") if batch.agree else say("no"),
                "token ≠ <pad>, and position < length: all {n} cells compared",
                n=batch.padding.size,
            ),
            blocks.fact(
                "Causal mask",
                f"{len(batch.causal)} × {len(batch.causal)}",
                "{n} cells open: n (n + 1) / 2",
                n=int(batch.causal.sum()),
            ),
            blocks.fact(
                "Weight on masked cells", max(closed.values()), "the largest of all layers and heads, measured"
            ),
            blocks.fact("A padding mask for the decoder", needless, "the largest change at any real token"),
        ),
        blocks.note(
            "This decoder needs no padding mask: padding is on the right, where no real token may attend "
            "anyway, and the output of padding rows is never used."
        ),
        *_closed_row(output, batch),
    ]


def _sentence(
    batch: padding.BatchMasks, sentence: int, output: ForwardOutput | None, places: dict[AttentionKind, Selection]
) -> dict:
    """Draw the masks of one sentence of the batch, or its weights if there is an output. places: layer and head."""
    source, read = ([labels.display(token) for token in tokens[sentence]] for tokens in (batch.tokens, batch.inputs))
    steps = labels.pair_names(batch.inputs[sentence], batch.traces[sentence].target_tokens)
    title = blocks.paragraph(
        "Sentence {n}: {length} of {all} source tokens, {target} of {all_target} of the target",
        n=sentence + 1,
        length=int(batch.lengths[sentence]),
        all=len(source),
        target=int(batch.target_lengths[sentence]),
        all_target=len(read),
    )

    def draw(values: np.ndarray, kind: AttentionKind, name: Words, **options: object) -> dict:
        rows = source if kind is AttentionKind.ENCODER_SELF else steps
        columns = read if kind is AttentionKind.DECODER_SELF else source
        return blocks.heatmap(values, name, rows=rows, columns=columns, signed=False, limit=1.0, **options)

    if output is None:
        pictures = [
            draw(mask, *TITLES[name], said=OPEN, note=say("{n} of {total} open", n=int(mask.sum()), total=mask.size))
            for name, mask in batch.squares(sentence).items()
        ]
    else:
        pictures = [
            draw(
                output.attention(kind, place.layer).weights[sentence, place.head].float().cpu().numpy(),
                kind,
                labels.KIND_TITLES[kind],
            )
            for kind, place in places.items()
        ]
    return blocks.stack(title, blocks.maps(*pictures))


def _closed_row(output: ForwardOutput, batch: padding.BatchMasks) -> list[dict]:
    """Return a table of a row whose cells are all masked, with −∞ and with −1e9."""
    record = output.attention(AttentionKind.ENCODER_SELF, 0)
    scores = (record.queries[0, 0, 0] @ record.keys[0, 0].T).float().cpu().numpy() / record.queries.shape[-1] ** 0.5
    infinite, replaced, added = padding.mask_whole_row(scores[:8])
    variants = [
        (say("scores"), "q·k / √d_k", scores[:8]),
        (say("masked by −∞"), "softmax(−∞, −∞, …) = 0 / 0", infinite),
        (say("−1e9 in place of the score"), "softmax(−1e9, −1e9, …) = 1 / n", replaced),
        (say("−1e9 added to the score"), "softmax(s₁ − 1e9, s₂ − 1e9, …)", added),
    ]
    tokens = [labels.display(token) for token in batch.tokens[0][:8]]
    return [
        blocks.table(
            (say("A fully masked row"), say("formula"), *tokens),
            [[name, formula, *map(blocks.number, numbers)] for name, formula, numbers in variants],
            caption=say(
                "With −∞ the error shows in every later number; −1e9 hides it: a row that may attend to "
                "nothing attends to everything equally. Here position 0 is always open, so this never "
                "happens."
            ),
        )
    ]


PANEL = Panel(
    "masks",
    "Masks",
    "Which cells may attention use? Padding masks whole columns, causality masks the future.",
    say("Paper, section {n}", n="3.2.3"),
    show_masks,
    controls=(SHOWN, Text(say("A second, shorter sentence for the batch (empty: the first words of this one)"))),
    needs=(MASKED,),
)

"""The panel "Break it": translations without positions, with shuffled words or without heads, and what changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from attention_atlas.model.analysis.ablation import OrderBlindness, compare, measure_order_blindness, shuffle_words
from attention_atlas.model.config import PositionCode
from attention_atlas.model.trace.edits import Ablate
from attention_atlas.model.trace.interventions import Interventions, heads_off, positions_off, positions_shifted
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Button, Choice, Panel, Slider, Text
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

OFF, FLAT, SHIFT, HEAD, LAYER = "off", "flat", "shift", "head", "layer"
PLAIN_SHUFFLE, BLIND_SHUFFLE = "shuffle", "shuffle-off"
CHOICES = {
    OFF: say("positions off"),
    FLAT: say("the selected head's positions flat"),
    SHIFT: say("positions shifted by k"),
    PLAIN_SHUFFLE: say("words shuffled"),
    BLIND_SHUFFLE: say("words shuffled, positions off"),
    HEAD: say("the selected head off"),
    LAYER: say("all heads of the selected layer off"),
}


FRAGILE = "Er hat 4817 Bücher."  # a number is copied digit by digit: without positions their order is lost


def initial_sentence(trace: TranslationTrace, translator: Translator) -> str:
    """Return a sentence whose translation visibly breaks, if the page still shows its opening example; else ""."""
    first = next(iter(translator.examples.get(trace.direction, ())), None)
    german = trace.direction.startswith("de-")
    return FRAGILE if german and first and first.text == trace.source_text else ""


def suggest_order(scene: Scene, choice: str, shift: int, order: str, sentence: str) -> str:
    """Return the order that break_model() uses if none is typed; "" for a sentence of one word."""
    try:
        return shuffle_words(sentence or scene.trace.source_text, seed=1)
    except Refusal:
        return ""


def break_model(scene: Scene, choice: str, shift: int, order: str, sentence: str) -> list[dict]:
    """Translate with and without the chosen change, draw how far each head's map moved, and measure order blindness.

    order     the sentence's words in another order, or "" for a shuffle, the same each time; only of two choices
    sentence  the text, or "" for the scene's
    """
    if sentence and sentence != scene.trace.source_text:
        trace = scene.translator.translate(sentence, scene.trace.direction)
        scene = replace(scene, trace=trace, selection=scene.selection.clamp(trace))
    is_shuffled = choice in (PLAIN_SHUFFLE, BLIND_SHUFFLE)
    text = (order or shuffle_words(scene.trace.source_text, seed=1)) if is_shuffled else None
    title, interventions = change_of(scene, choice, shift)
    with ThreadPoolExecutor(max_workers=1) as executor:  # blindness is measured beside the slow comparison
        is_empty = len(scene.trace.decoder_ids) < 2  # the start symbol alone: there is no order to permute
        blind = None if is_empty else executor.submit(measure_order_blindness, scene.translator, scene.trace)
        comparison = compare(scene.translator, scene.trace, interventions, text=text)
        blindness = blind and blind.result()
    largest = max(float(change.max()) for change in comparison.changes.values())
    tokens = map(labels.display, comparison.original.target_tokens)
    both = np.exp([comparison.original.log_probability, comparison.forced_log_probability])
    return [
        blocks.cards(
            _card(say("As it is"), comparison.original),
            _card(title, comparison.altered),
        ),
        blocks.bars(
            blocks.chart(
                say("Probability of each token of the original translation"),
                zip(tokens, both.T),
                note=say("Both are scored on the original translation; the altered model might prefer other words."),
            ),
            legend=(say("as it is"), say("with {change}", change=CHOICES[choice])),
        ),
        blocks.stack(
            blocks.paragraph(
                "How far each head's map moved: mean Jensen-Shannon divergence over its rows, in bits (0: "
                "the same map, 1: nothing in common). One scale for all three."
            ),
            blocks.row(*(_changes(kind, changes, largest) for kind, changes in comparison.changes.items())),
        ),
        *([] if blindness is None else [_blindness(blindness)]),
    ]


def _blindness(blindness: OrderBlindness) -> dict:
    verdict = say("blind: the same vectors in another order") if blindness.encoder_off < 1e-5 else say("not blind")
    return blocks.stack(
        blocks.paragraph(
            "Is it blind to order? With positions off, permute the inputs, and compare the outputs with the permuted "
            "outputs:"
        ),
        blocks.facts(
            (say("Encoder, positions off"), blocks.compact(blindness.encoder_off), verdict),
            blocks.fact("Encoder, positions on", blindness.encoder_on, "order counts"),
            blocks.fact(
                "Decoder, positions off",
                blindness.decoder_causal,
                "not blind: its causal mask distinguishes before from after",
            ),
            blocks.fact("The same without its causal mask", blindness.decoder_unmasked, "blind as well"),
            blocks.fact("Largest output value", blindness.scale, "for scale"),
        ),
    )


def change_of(scene: Scene, choice: str, shift: int) -> tuple[Words, Interventions]:
    """Return the label of a choice of the menu, and its interventions: the plain model's where words are shuffled."""
    kind, layer, head = scene.selection.kind, scene.selection.layer, scene.selection.head
    where = labels.place(kind, layer, head)
    if choice == FLAT:
        relative = scene.translator.config.position_code is PositionCode.RELATIVE
        if not relative or kind is AttentionKind.CROSS:
            raise Refusal("Positions can be flattened only if they are a bias on the self-attention scores.")
        # A constant bias leaves the softmax of a row unchanged.
        edits = {f"{kind.side.value}.*.self.bias": Ablate(heads=(head,))}
        return say("{kind}, head {head}: positions flat", **where), Interventions(edits=edits)
    if choice == SHIFT:
        return say("positions shifted by {k}", k=shift), positions_shifted(shift)
    if choice == HEAD:
        return say("{kind}, layer {layer}, head {head}: off", **where), heads_off(kind, layer, (head,))
    if choice == LAYER:
        heads = range(scene.translator.model.num_heads[kind])
        return say("{kind}, layer {layer}, all heads: off", **where), heads_off(kind, layer, tuple(heads))
    return CHOICES[choice], positions_off() if choice in (OFF, BLIND_SHUFFLE) else Interventions()


def _card(title: Words, trace: TranslationTrace) -> tuple[Words, Words | str, Words]:
    total = blocks.compact(float(np.sum(trace.log_probability)))
    values = {"text": trace.source_text, "total": total, "n": len(trace.target_ids)}
    about = (
        say("reads: {text} · total log-probability {total}, {n} tokens", **values)
        if trace.finished
        else say("reads: {text} · total log-probability {total}, {n} tokens; stopped by the length limit", **values)
    )
    return title, trace.translation or say("(nothing)"), about


def _changes(kind: AttentionKind, changes: np.ndarray, largest: float) -> dict:
    """Return a table of the divergence of each head's map [layers, heads], shaded up to the largest."""
    limit = largest or 1.0
    layers = [say("layer {layer}", layer=layer + 1) for layer in range(len(changes))]
    heads = (
        (str(head), [blocks.shade(c / limit, blocks.compact(c, 2)) for c in column])
        for head, column in enumerate(changes.T.tolist(), start=1)
    )
    return blocks.columns((say("head"), layers), *heads, caption=labels.KIND_TITLES[kind])


PANEL = Panel(
    "break",
    "Break it",
    "Remove something and translate again. Heads whose maps change relied on it.",
    say("Paper, sections {n}", n="3.2.2, 3.5"),
    break_model,
    controls=(
        Choice(say("What to break"), CHOICES, OFF, folded=True),
        Slider(say("Shift k"), -32, 64, 8),
        Text(say("Words in another order (empty: shuffled)"), suggest=suggest_order),
        Text(say("Sentence (empty: the one above)"), known=initial_sentence),
    ),
    button=Button(say("Break it"), elem_id="break-it"),
)

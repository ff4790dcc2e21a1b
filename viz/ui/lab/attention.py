"""The panels on one attention: stage by stage, scoring functions side by side, masks, heads one by one."""

from __future__ import annotations

import gradio as gr
import numpy as np

from model.analysis import loop, padding
from model.analysis.dissection import Dissection, compare_scorings, dissect
from model.trace.kinds import AttentionKind
from viz.maps import labels
from viz.maps.patterns import entropy_bits
from viz.ui.lab.panel import Lab, Panel, Scene, heading
from viz.ui.language import label
from viz.wire import blocks
from viz.words import Words, known, say

ATTENTION = Panel(
    "attention", label("Attention"), say(
        "One query looks at every key, from left to right: multiply, add up, divide by √d_k, mask, softmax, and "
        "take that share of each value. Follow the row with the largest weight."),
    say("Paper, equation {n}", n="1"))
SCORING = Panel(
    "scoring", label("Scoring"), say(
        "Four ways to score the same query against the same keys. Only the scaled dot product was trained here; "
        "look at how sharply the others would have chosen."),
    say("Paper, section {n}", n="3.2.1"))
MASKS = Panel(
    "masks", label("Masks"), say(
        "Empty cells may not be looked at. Padding closes whole columns, since a shorter sentence has nothing "
        "there; causality closes the future."),
    say("Paper, section {n}", n="3.2.3"))
HEADS = Panel(
    "heads", label("Heads"), say(
        "The paper's formula loops over the heads; the model computes all of them at once. The numbers agree to "
        "rounding; the time does not."),
    say("Paper, section {n}", n="3.2.2"))
KINDS = [(label("Encoder self-attention"), "encoder_self"), (label("Decoder self-attention"), "decoder_self"),
         (label("Cross-attention"), "cross")]


class Selected:
    """The menus for one head: which attention, layer, head and query. FOLLOW is the selection of the explorer."""

    FOLLOW = label("as selected elsewhere")

    def __init__(self, num_layers: int, num_heads: int, *, query: bool = True) -> None:
        with gr.Row():
            kind = gr.Dropdown([(self.FOLLOW, ""), *KINDS], value="", label=label("Attention"), min_width=190)
            layer = gr.Slider(0, num_layers, 0, step=1, label=label("Layer"), info=label("0: as selected"))
            head = gr.Slider(0, num_heads, 0, step=1, label=label("Head"), info=label("0: as selected"))
            self.controls = (kind, layer, head)
            if query:
                self.controls += (
                    gr.Slider(0, 64, 0, step=1, label=label("Query token"), info=label("0: as selected")),)


def resolve(scene: Scene, kind: str, layer: int, head: int, query: int = 0) -> tuple[AttentionKind, int, int, int]:
    """What the menus mean: kind, layer, head and query position, all from 0 and inside this trace's limits."""
    selected = scene.selection
    chosen = AttentionKind(kind) if kind else selected.kind
    maps = scene.trace.maps(chosen)
    queries = len(maps.query_tokens)
    at = int(query) - 1 if int(query) else selected.query if selected.query is not None else min(1, queries - 1)
    return (chosen, min(int(layer) - 1 if int(layer) else selected.layer, maps.num_layers - 1),
            min(int(head) - 1 if int(head) else selected.head, maps.num_heads - 1), min(at, queries - 1))


def build(lab: Lab) -> None:
    """The panels as tabs of the tabs that are open."""
    configs = [translator.config for translator in lab.translators.values()]
    layers = max(max(c.num_encoder_layers, c.num_decoder_layers) for c in configs)
    num_heads = max(c.num_heads for c in configs)
    for panel, compute in ((ATTENTION, attention), (SCORING, scoring)):
        with gr.Tab(panel.title, id=panel.name):
            heading(panel)
            lab.add(panel, compute, controls=Selected(layers, num_heads).controls)
    with gr.Tab(MASKS.title, id=MASKS.name):
        heading(MASKS)
        second = gr.Textbox("", label=label(
            "A second, shorter sentence for the batch (empty: the first words of this one)"))
        lab.add(MASKS, show_masks, controls=(second,))
    with gr.Tab(HEADS.title, id=HEADS.name):
        heading(HEADS)
        with gr.Row():
            kind = gr.Dropdown([(Selected.FOLLOW, ""), *KINDS], value="", label=label("Attention"))
            layer = gr.Slider(0, layers, 0, step=1, label=label("Layer"), info=label("0: as selected"))
            runs = gr.Slider(10, 200, 50, step=10, label=label("Runs to time"))
            measure = gr.Button(label("Measure again"), variant="primary", scale=0, min_width=160)
        lab.add(HEADS, both_ways, controls=(kind, layer, runs), buttons=(measure,))


def _dissected(scene: Scene, kind: str, layer: int, head: int, query: int) -> tuple[Dissection, Words, list[str]]:
    chosen, at_layer, at_head, at = resolve(scene, kind, layer, head, query)
    maps = scene.trace.maps(chosen)
    found = dissect(scene.inspect(), chosen, at_layer, at_head, query=at)
    title = say("{kind}, layer {layer}, head {head}: the query is token {n}, {token}",
                kind=known(labels.KIND_TITLES[chosen]), layer=at_layer + 1, head=at_head + 1, n=at + 1,
                token=labels.display(maps.query_tokens[at]))
    return found, title, [labels.display(token) for token in maps.key_tokens]


def attention(scene: Scene, kind: str, layer: int, head: int, query: int) -> list[dict]:
    found, title, keys = _dissected(scene, kind, layer, head, query)
    width = len(found.query)
    key_limit, product_limit, value_limit = (
        float(np.abs(x).max()) for x in (found.keys, found.products, found.values))
    rows = [[blocks.token(key), blocks.strip(found.keys[i], limit=key_limit, name=say("key {token}", token=key)),
             blocks.strip(found.products[i], limit=product_limit, name=say("q·k of {token}", token=key)),
             blocks.number(float(found.dots[i])), blocks.number(float(found.scaled[i])),
             blocks.number(float(found.masked[i])) if found.allowed[i] else say("masked"),
             blocks.bar(float(found.weights[i])),
             blocks.strip(found.contributions[i], limit=value_limit, name=say("weighted value of {token}", token=key)),
             blocks.bar(float(found.unscaled_weights[i]))]
            for i, key in enumerate(keys)]
    query_row = [say("query →"), blocks.strip(found.query, name=say("query")), *[""] * 7]
    foot = [say("sum"), *[""] * 5, blocks.bar(1.0, blocks.compact(float(found.weights.sum()))),
            blocks.strip(found.output, limit=value_limit, name=say("output")),
            blocks.bar(1.0, blocks.compact(float(found.unscaled_weights.sum())))]
    right, wrong = entropy_bits(found.weights), entropy_bits(found.unscaled_weights)
    return [
        blocks.text(title),
        blocks.formula(f"softmax(q·kᵀ / √{width}) · v"),
        blocks.table((say("Key"), "k", say("q × k, element by element"), say("sum q·k"), f"÷ √{width}", say("masked"),
                      "softmax", say("weight × v"), say("softmax without ÷")), [query_row, *rows], foot=foot,
                     marked=(int(found.weights.argmax()) + 1,),
                     caption=say("{n} dimensions a strip; blue is negative, orange positive, one scale a column.",
                                 n=width)),
        blocks.facts(
            (say("Entropy"), say("{bits} bits", bits=f"{right:.2f}"),
             say("as if {n} keys shared the attention", n=f"{2 ** right:.1f}")),
            (say("Entropy without ÷ √{width}", width=width), say("{bits} bits", bits=f"{wrong:.2f}"),
             say("as if {n} did: scores {factor} times as far apart", n=f"{2 ** wrong:.1f}",
                 factor=blocks.compact(width ** 0.5))),
            (say("Largest error"), blocks.compact(found.error), say("these stages against the model's own weights")))]


def scoring(scene: Scene, kind: str, layer: int, head: int, query: int) -> list[dict]:
    found, title, keys = _dissected(scene, kind, layer, head, query)
    ways = compare_scorings(found)
    rows = [[blocks.token(key), *(cell for way in ways for cell in (
        blocks.number(float(way.scores[i])) if found.allowed[i] else say("masked"), blocks.bar(float(way.weights[i]))))]
        for i, key in enumerate(keys)]
    columns = [say("Key")]
    for way in ways:
        columns += [known(way.name), say("weight")]
    return [
        blocks.text(title),
        blocks.table((say("Function"), say("score"), say("where it is from"), say("in this model"),
                      say("entropy of its weights")), [
            [known(way.name), way.formula, way.source,
             say("trained") if way.trained else say("an illustration: never trained so"),
             say("{bits} bits", bits=f"{entropy_bits(way.weights):.2f}")] for way in ways], marked=(0,)),
        blocks.table(columns, rows),
        blocks.text(say(
            "Additive attention has weights of its own (W, U, v); here they are drawn at random from a fixed seed, so "
            "its scores show the shape of the computation and no knowledge. The Gaussian kernel's width² is √d_k: then "
            "it is the scaled dot product less |k|² / (2√d_k), which favours short keys."), tone="note")]


def show_masks(scene: Scene, second: str) -> list[dict]:
    found = padding.of_two(scene.translator, scene.trace, (second or "").strip() or None)
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


def both_ways(scene: Scene, kind: str, layer: int, runs: int) -> list[dict]:
    chosen, at_layer, _, _ = resolve(scene, kind, layer, 0)
    given = loop.attention_input(scene.translator, scene.inspect(), chosen, at_layer)
    found = loop.compare_ways(given, runs=int(runs))
    ratio = found.loop_seconds / found.vectorised_seconds
    return [
        blocks.text(say("{kind}, layer {layer}: {heads} heads, {queries} queries, {keys} keys.",
                        kind=known(labels.KIND_TITLES[chosen]), layer=at_layer + 1, heads=given.module.num_heads,
                        queries=given.queries.shape[1], keys=given.memory.shape[1])),
        blocks.formula("head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)   MultiHead = Concat(head_1 … head_h) W^O"),
        blocks.facts(
            (say("Largest difference, output"), blocks.compact(found.output_difference),
             say("loop over heads − all at once")),
            (say("Largest difference, weights"), blocks.compact(found.weight_difference), say("of all heads' maps")),
            (say("Loop over the heads"), f"{1e3 * found.loop_seconds:.2f} ms", say("median of {n} runs", n=found.runs)),
            (say("All heads at once"), f"{1e3 * found.vectorised_seconds:.2f} ms",
             say("{n} times as fast", n=f"{ratio:.1f}"))),
        blocks.text(say("Timed just now on this machine ({device}), the two ways taking turns.",
                        device=str(scene.translator.device).upper()), tone="note")]

"""Heads one by one and all at once."""

from __future__ import annotations

from model.analysis import loop
from viz.maps import labels
from viz.ui.lab.controls import Button, Slider
from viz.ui.lab.panel import Panel, Scene
from viz.ui.lab.selected import KIND, LAYER, resolve
from viz.ui.language import label
from viz.wire import blocks
from viz.words import say


def both_ways(scene: Scene, kind: str, layer: int, runs: int) -> list[dict]:
    chosen, at_layer, _, _ = resolve(scene, kind, layer, 0)
    given = loop.attention_input(scene.translator, scene.inspect(), chosen, at_layer)
    found = loop.compare_ways(given, runs=runs)
    ratio = found.loop_seconds / found.vectorised_seconds
    return [
        blocks.text(say("{kind}, layer {layer}: {heads} heads, {queries} queries, {keys} keys.",
                        kind=labels.KIND_TITLES[chosen], layer=at_layer + 1, heads=given.module.num_heads,
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


PANEL = Panel(
    "heads", label("Heads"), say(
        "The paper's formula loops over the heads; the model computes all of them at once. The numbers agree to "
        "rounding; the time does not."),
    say("Paper, section {n}", n="3.2.2"), both_ways,
    controls=(KIND, LAYER, Slider(label("Runs to time"), 10, 200, 50, step=10)), again=Button(label("Measure again")))

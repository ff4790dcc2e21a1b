"""The panel "Heads race": the time of a loop over the heads against one computation of all."""

from __future__ import annotations

from attention_atlas.model.analysis import head_loop
from attention_atlas.model.analysis.head_loop import HeadsComparison, Sizes
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Button, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

SECONDS = 0.06  # time budget of each comparison


def race(scene: Scene, batch: int, length: int, d_model: int, heads: int, runs: int) -> list[dict]:
    """Compare both computations on this sentence and on random numbers of the given sizes."""
    selected, translator = scene.selection, scene.translator
    sizes = Sizes(batch, length, head_loop.round_width(d_model, heads), heads)
    name = say(
        "{kind}, layer {layer}, on this sentence", kind=labels.KIND_TITLES[selected.kind], layer=selected.layer + 1
    )
    inputs = {
        name: head_loop.find_attention_input(translator, scene.output, selected.kind, selected.layer),
        say("random numbers of the sizes set above"): head_loop.make_random_attention(sizes, translator.device),
    }
    rows = [
        _row(name, tensors, head_loop.compare_loop(tensors, runs=runs, budget=SECONDS))
        for name, tensors in inputs.items()
    ]
    uneven = blocks.note(
        "{heads} heads do not divide d_model {asked} evenly: computed with {d_model}.",
        heads=heads,
        asked=d_model,
        d_model=sizes.d_model,
    )
    return [
        blocks.formula(
            "for i in 1 … h: softmax(Q_i K_iᵀ / √d_k) V_i", say("one head after the other, as the paper writes it")
        ),
        blocks.formula("softmax(Q Kᵀ / √d_k) V,   Q: [batch, h, L, d_k]", say("all at once, as the model computes it")),
        blocks.table(
            (
                say("What was computed"),
                say("batch"),
                say("length"),
                "d_model",
                say("heads"),
                "d_k",
                say("one by one, ms"),
                say("all at once, ms"),
                say("times as fast"),
                say("runs"),
                say("largest difference"),
                say("relative"),
            ),
            rows,
            caption=say(
                "Median time of the runs, the two ways taking turns, just now on this machine ({device}). The "
                "difference is that of the outputs; relative: as a share of the largest output.",
                device=str(translator.device).upper(),
            ),
        ),
        *([] if sizes.d_model == d_model else [uneven]),
    ]


def _row(name: Words, tensors: head_loop.AttentionInput, comparison: HeadsComparison) -> list:
    """Return the row of the table for one comparison."""
    batch, length, d_model = tensors.queries.shape
    heads = tensors.module.num_heads
    seconds = comparison.loop_seconds, comparison.vectorised_seconds
    times = (1e3 * seconds[0], 1e3 * seconds[1], seconds[0] / seconds[1])
    numbers = (batch, length, d_model, heads, d_model // heads, *times, comparison.runs)
    return [name, *map(blocks.number, (*numbers, comparison.output_difference, comparison.relative))]


PANEL = Panel(
    "race",
    say("Heads race"),
    say(
        "The paper's formula loops over the heads; the model computes all of them at once. The numbers agree up to "
        "rounding; when do the times? Try one long sentence, then many short ones."
    ),
    say("Paper, section {n}", n="3.2.2"),
    race,
    controls=(
        Slider(say("Sentences in the batch"), 1, 32, 4),
        Slider(say("Tokens per sentence"), 1, 128, 30),
        Slider("d_model", 16, 512, 256, step=16),
        Slider(say("Heads"), 1, 32, 8),
        Slider(say("Maximum runs"), 1, 50, 10),
    ),
    button=Button(say("Measure again")),
)

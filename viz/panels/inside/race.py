"""The panel "Heads race": the time of a loop over the heads against one computation of all."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import head_loop
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Button, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

SECONDS = 0.06  # time budget of each comparison


def race(scene: Scene, batch: int, length: int, d_model: int, heads: int, runs: int) -> list[dict]:
    """Compare both computations on this sentence and on random numbers of the given sizes."""
    selected, translator = scene.selection, scene.translator
    random = head_loop.make_random_attention(batch, length, d_model, heads, translator.device)
    width = random.queries.shape[-1]
    name = say(
        "{kind}, layer {layer}, on this sentence", kind=labels.KIND_TITLES[selected.kind], layer=selected.layer + 1
    )
    inputs = {
        name: head_loop.find_attention_input(translator, scene.output, selected.kind, selected.layer),
        say("random numbers of the sizes set above"): random,
    }
    comparisons = [head_loop.compare_loop(tensors, runs=runs, budget=SECONDS) for tensors in inputs.values()]
    measured = np.array([(1e3 * c.loop_seconds, 1e3 * c.vectorised_seconds) for c in comparisons])
    shapes = np.array([(*tensors.queries.shape, tensors.module.num_heads) for tensors in inputs.values()])
    batches, lengths, widths, head_counts = shapes.T
    uneven = blocks.note(
        "d_model {asked} is not divisible by {heads} heads: computed with {d_model}.",
        heads=heads,
        asked=d_model,
        d_model=width,
    )
    return [
        blocks.formula(
            "for i in 1 … h: softmax(Q_i K_iᵀ / √d_k) V_i", say("one head after the other, as the paper writes it")
        ),
        blocks.formula("softmax(Q Kᵀ / √d_k) V,   Q: [batch, h, L, d_k]", say("all at once, as the model computes it")),
        blocks.columns(
            (say("What was computed"), inputs),
            (say("batch"), map(blocks.number, batches)),
            (say("length"), map(blocks.number, lengths)),
            ("d_model", map(blocks.number, widths)),
            (say("heads"), map(blocks.number, head_counts)),
            ("d_k", map(blocks.number, widths // head_counts)),
            (say("one by one, ms"), map(blocks.number, measured[:, 0])),
            (say("all at once, ms"), map(blocks.number, measured[:, 1])),
            (say("times as fast"), map(blocks.number, measured[:, 0] / measured[:, 1])),
            (say("runs"), [blocks.number(comparison.runs) for comparison in comparisons]),
            (say("largest difference"), [blocks.number(comparison.output_difference) for comparison in comparisons]),
            (say("relative"), [blocks.number(comparison.relative) for comparison in comparisons]),
            caption=say(
                "Median time of alternating runs, measured just now on this machine ({device}). Difference: "
                "between the outputs; relative: as a share of the largest output.",
                device=str(translator.device).upper(),
            ),
        ),
        *([] if width == d_model else [uneven]),
    ]


PANEL = Panel(
    "race",
    "Heads race",
    "A loop over the heads, as in the paper, against all heads at once: which is faster?",
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
    method=say("The results agree up to rounding. Try one long sentence, then many short ones."),
)

"""The panel "Heads race": the time of a loop over the heads against one computation of all."""

from __future__ import annotations

from collections.abc import Callable

from attention_atlas.model.analysis import head_loop
from attention_atlas.model.analysis.head_loop import HeadsComparison
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Button, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

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
    shapes = [(*tensors.queries.shape, tensors.module.num_heads, tensors.module.d_head) for tensors in inputs.values()]
    sizes = zip((say("batch"), say("length"), "d_model", say("heads"), "d_k"), zip(*shapes))

    def row(name: Words, measure: Callable[[HeadsComparison], float]) -> list:
        return [name, *(blocks.number(measure(comparison)) for comparison in comparisons)]

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
        blocks.table(
            (say("What was computed"), *inputs),
            [
                *([name, *map(blocks.number, values)] for name, values in sizes),
                row(say("one by one, ms"), lambda c: 1e3 * c.loop_seconds),
                row(say("all at once, ms"), lambda c: 1e3 * c.vectorised_seconds),
                row(say("times as fast"), lambda c: c.loop_seconds / c.vectorised_seconds),
                row(say("runs"), lambda c: c.runs),
                row(say("memory one by one, KB"), lambda c: c.loop_bytes / 1000),
                row(say("memory all at once, KB"), lambda c: c.vectorised_bytes / 1000),
                row(say("relative error"), lambda c: c.relative_error),
                row(say("relative error, projected at once"), lambda c: c.heads_error),
            ],
            caption=say(
                "Median time of alternating runs, measured just now on this machine ({device}). Memory: the most at "
                "one time, without weights and input. Relative error: the norm of the difference between the outputs "
                "over that of the loop's output; projected at once: the loop gets its q, k and v from one product.",
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
        Slider("d_model", 8, 512, 256, step=8),
        Slider(say("Heads"), 1, 32, 8),
        Slider(say("Maximum runs"), 1, 50, 10),
    ),
    button=Button(say("Measure again")),
    method=say(
        "The results agree up to rounding, which comes from the projections: from the same q, k and v, both almost "
        "always give the same numbers. Try one long sentence, then many short ones."
    ),
)

"""The map of the whole model, with the shapes of this sentence."""

from __future__ import annotations

from model.analysis.arrows import arrows
from model.config import PositionCode
from viz.ui.desk.scene import Scene
from viz.ui.lab import formulas
from viz.ui.lab.panel import Panel
from viz.wire import blocks
from viz.words import say

MATRICES = {  # (one embedding for both sides, the output is the target's)
    (True, True): say("one embedding for source, target and output"),
    (True, False): say("one embedding for source and target, another matrix for the output"),
    (False, True): say("an embedding for the source, another for target and output"),
    (False, False): say("a matrix each for source, target and output"),
}
CODES = {
    PositionCode.INTERLEAVED: ("sin, cos", say("computed, as in the paper")),
    PositionCode.HALVES: ("sin | cos", say("computed: all sines, then all cosines")),
    PositionCode.FAIRSEQ: ("sin | cos", say("computed: all sines, then all cosines, with other wavelengths")),
    PositionCode.LEARNED: (say("learned"), say("a row of numbers for each position and side")),
    PositionCode.NONE: (say("none"), say("nothing tells the encoder its order")),
}


def overview(scene: Scene) -> list[dict]:
    found = arrows(scene.translator, scene.output, scene.trace.source_ids)
    columns = [
        {
            "title": title,
            "boxes": [
                {
                    "name": a.station,
                    "shape": " × ".join(map(blocks.compact, a.shape)),
                    "axes": list(a.axes),
                    "link": {"tab": "inside", "panel": a.panel},
                    "repeated": a.repeated,
                }
                for a in found
                if a.side in sides
            ],
        }
        for title, sides in (
            (say("Encoder: reads the source"), ("source",)),
            (say("Decoder: reads its own words and, in cross-attention, the memory"), ("target", "output")),
        )
    ]
    config = scene.translator.config
    return [
        blocks.flow(columns),
        blocks.facts(
            (
                say("This sentence"),
                f"{len(scene.trace.source_ids)} → {len(scene.trace.target_ids)}",
                say("tokens, in → out"),
            ),
            (
                "d_model",
                blocks.compact(config.d_model),
                say("{n} heads of d_k = {width}", n=config.num_heads, width=config.d_head),
            ),
            (
                say("Norm"),
                "pre-norm" if config.norm_first else "post-norm",
                say("before each sub-layer") if config.norm_first else say("after each sub-layer, as in the paper"),
            ),
            (
                say("Vocabulary"),
                blocks.compact(config.vocabulary_size)
                if config.shared_embeddings
                else f"{blocks.compact(config.vocabulary_size)} → {blocks.compact(config.num_target_tokens)}",
                MATRICES[config.shared_embeddings, config.tied_output],
            ),
            (
                say("Feed-forward"),
                formulas.ACTIVATIONS[config.activation],
                say("activation between {n} units", n=config.d_feedforward),
            ),
            (say("Positions"), *CODES[config.position_code]),
        ),
    ]


PANEL = Panel(
    "map",
    say("Map"),
    say("The whole model, with the shapes of this sentence at every arrow. Click on a box to open it up."),
    say("Paper, figure {n}", n="1"),
    overview,
)

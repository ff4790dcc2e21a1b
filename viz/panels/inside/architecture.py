"""The panel "Map": figure 1 of the paper for this model, with the shapes and maps of this sentence."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import architecture, stations
from attention_atlas.model.config import Norm, PositionCode
from attention_atlas.model.trace.kinds import Side
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels import formulas
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

MATRICES = {  # (shared_embeddings, tied_output)
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
    PositionCode.RELATIVE: (say("relative"), say("each head adds a number to its scores by distance")),
    PositionCode.NONE: (say("none"), say("nothing tells the encoder its order")),
    **{code: (formula, say("computed, but not as in the paper")) for code, formula in formulas.CONTRASTS.items()},
}


SIDES = {
    Side.ENCODER: (say("Encoder: reads the source"), "source"),
    Side.DECODER: (say("Decoder: reads its own words and, in cross-attention, the memory"), "target"),
}


def overview(scene: Scene) -> list[dict]:
    """Draw the map of the model, and its sizes."""
    trace, config = scene.trace, scene.translator.config
    encoder, decoder = map(config.of, Side)
    if encoder.num_heads == decoder.num_heads:
        heads = say("{n} heads of d_k = {width}", n=encoder.num_heads, width=encoder.d_head)
    else:
        heads = say(
            "in the encoder {n} heads of d_k = {width}, in the decoder {m} of {other}",
            n=encoder.num_heads,
            width=encoder.d_head,
            m=decoder.num_heads,
            other=decoder.d_head,
        )
    if encoder.d_feedforward == decoder.d_feedforward:
        units = say("activation between {n} units", n=encoder.d_feedforward)
    else:
        units = say(
            "activation between {n} units in the encoder, {m} in the decoder",
            n=encoder.d_feedforward,
            m=decoder.d_feedforward,
        )
    vocabulary = [config.vocabulary_size, *([] if config.shared_embeddings else [config.num_target_tokens])]
    return [
        blocks.flow([_stack(scene, side) for side in Side]),
        blocks.facts(
            blocks.fact("This sentence", f"{len(trace.source_ids)} → {len(trace.target_ids)}", "tokens, in → out"),
            ("d_model", blocks.compact(config.d_model), heads),
            (
                say("Norm"),
                f"{'pre' if config.norm_first else 'post'}-norm{', RMS' * (config.norm is Norm.RMS)}",
                say("before each sub-layer") if config.norm_first else say("after each sub-layer, as in the paper"),
            ),
            (
                say("Vocabulary"),
                " → ".join(map(blocks.compact, vocabulary)),
                MATRICES[config.shared_embeddings, config.tied_output],
            ),
            (say("Feed-forward"), formulas.ACTIVATIONS[config.activation], units),
            (say("Positions"), *CODES[config.position_code]),
        ),
        blocks.note(
            "Each half is a model in its own right: the encoder alone, which reads, is a BERT; the "
            "decoder alone, without cross-attention, which goes on writing, is a GPT."
        ),
    ]


def _stack(scene: Scene, side: Side) -> dict:
    """Return one side of the map, for blocks.flow."""
    trace, translator = scene.trace, scene.translator
    title, name = SIDES[side]
    encoder = side is Side.ENCODER
    ids, tokens = (trace.source_ids, trace.source_tokens) if encoder else (trace.decoder_ids, trace.decoder_inputs)
    rows = stations.embedding_rows(translator, ids, scene.output, side=name, interventions=trace.interventions)
    stack = architecture.stack(
        side, translator.config, scene.output, rows, layer=scene.selection.layer, best=trace.top_probabilities
    )
    return {
        "title": title,
        "words": [labels.display(token) for token in tokens],
        "entry": [_box(station) for station in stack.entry],
        "layers": stack.layers,
        "shown": stack.shown + 1,
        "link": {"tab": "inside", "panel": "residual", "side": side.value},
        "sublayers": [
            {
                "boxes": [_box(station) for station in sublayer.stations],
                "norm": _box(sublayer.norm),
                "first": sublayer.norm_first,
                "residual": sublayer.residual,
                "memory": sublayer.reads_memory,
            }
            for sublayer in stack.sublayers
        ],
        "exit": [_box(station) for station in stack.exit],
    }


def _box(station: architecture.Station) -> dict:
    """Return the box of a station, which links to its panel."""
    limit = max((float(np.abs(picture).max()) for picture in station.pictures), default=1.0)
    return {
        "name": station.name,
        "shape": " × ".join(map(blocks.compact, station.shape)),
        "axes": list(station.axes),
        "link": {"tab": "inside", "panel": station.panel, **station.controls},
        "maps": [blocks.heatmap(picture, "", limit=limit, signed=station.signed) for picture in station.pictures],
    }


PANEL = Panel(
    "map",
    "Map",
    "The whole model, with the shapes of this sentence at every arrow. Choose a box to open it up.",
    say("Paper, figure {n}", n="1"),
    overview,
)

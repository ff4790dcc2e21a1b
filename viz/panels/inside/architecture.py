"""The panel "Whole model": one picture from the typed words to the next one, which opens stage by stage."""

from __future__ import annotations

from attention_atlas.model.config import Norm, PositionCode
from attention_atlas.model.nets.recurrent import Recurrent
from attention_atlas.model.trace.kinds import Side
from attention_atlas.viz.panels import formulas, network, picture
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


def overview(scene: Scene) -> list[dict]:
    """Draw the picture of the model, and its sizes."""
    if isinstance(scene.translator.model, Recurrent):
        return network.overview(scene)
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
        blocks.inside(picture.overview(scene)),
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


PANEL = Panel(
    "map",
    "Whole model",
    "From the words you typed to the probabilities of the next word. Click a part to open it.",
    say("Paper, figure {n}", n="1"),
    overview,
    of_any_network=True,
)

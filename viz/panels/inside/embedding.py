"""The panel "Token + position": the embedding of each token, the code of its position, and their sum."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import stations
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.viz.panels.menus import ENCODER, SIDE, tokens_of
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def embedding(scene: Scene, side: str) -> list[dict]:
    """Draw the vectors that enter the first layer of a side."""
    encoder, trace = side == ENCODER, scene.trace
    ids, name = (trace.source_ids, "source") if encoder else (trace.decoder_ids, "target")
    vectors = stations.embedding_rows(scene.translator, ids, scene.output, side=name, interventions=trace.interventions)
    tokens, limit = tokens_of(scene, side), float(np.abs(vectors.added).max())
    config = scene.translator.config
    matrix = "E" if config.shared_embeddings else "E_source" if encoder else "E_target"
    scaled = " · √d_model" if config.scale_embedding else ""
    early = config.norm_before_positions and not encoder
    total = "s" if config.norm_embedding and not early else "x"  # the sum, before the norm where there is one
    looked_up = f"norm({matrix}[token]{scaled})" if early else f"{matrix}[token]{scaled}"

    def column_pair(title: str, values: np.ndarray) -> list[tuple]:
        """Return the columns of vectors and of their lengths."""
        lengths = map(blocks.number, np.linalg.norm(values, axis=1))
        return [(title, blocks.strips(values[:, :48], tokens, limit=limit)), (say("length"), lengths)]

    error = blocks.facts(blocks.fact("Largest error of the sum", vectors.error, "against what entered the first layer"))
    sums = [(say("+ position"), vectors.positions), (f"= {total}", vectors.added)]
    if not isinstance(scene.translator.model, Transformer):
        sums = []  # a recurrent network reads its words in order, and adds no positions
    return [
        blocks.formula(
            f"{total} = {looked_up}{' + PE(pos)' * config.adds_positions}" + ",  x = norm(s)" * (total == "s")
        ),
        blocks.columns(
            (say("Token"), map(blocks.token, tokens)),
            ("id", map(blocks.number, ids)),
            *column_pair(matrix + scaled, vectors.scaled),
            *(pair for title, values in sums for pair in column_pair(title, values)),
            caption=say(
                "The first 48 of {n} dimensions; blue is negative, orange positive, one scale for "
                "all. Length: the Euclidean norm of the whole vector.",
                n=vectors.added.shape[1],
            ),
        ),
        error if sums else blocks.note("This network adds no positions: it reads its words in order."),
    ]


PANEL = Panel(
    "embedding",
    "Token + position",
    "What enters the first layer is a token's embedding plus its position code. Which of the two is larger?",
    say("Paper, sections {n}", n="3.4, 3.5"),
    embedding,
    controls=(SIDE,),
    of_any_network=True,
    method=say("Most models multiply the embedding by √d_model first."),
)

"""The panel "Without weights": attention between embeddings without projections, compared with a trained head."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import stations
from attention_atlas.model.analysis.formulas.scoring import asymmetry, attend, self_weight
from attention_atlas.model.analysis.formulas.stages import score_matrix
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.patterns import entropy_bits
from attention_atlas.viz.panels.menus import HEAD, LAYER, resolve
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

ALONE, PLACED = "alone", "placed"
INPUT = Choice("x", {ALONE: say("embeddings alone"), PLACED: say("embeddings and positions")}, ALONE, scale=2)


def plain(scene: Scene, which: str, layer: int, head: int) -> list[dict]:
    """Draw softmax(x xᵀ), scaled and not, and a trained head of the encoder. which: what x contains."""
    output, kind = scene.output, AttentionKind.ENCODER_SELF
    _, at_layer, at_head, _ = resolve(scene, kind.value, layer, head)
    rows = stations.embedding_rows(
        scene.translator, scene.trace.source_ids, output, side="source", interventions=scene.trace.interventions
    )
    x = rows.scaled if which == ALONE else rows.scaled + rows.positions
    tokens = [labels.display(token) for token in scene.trace.source_tokens]
    scores, weights, outputs = zip(attend(x), attend(x, scaled=True))
    trained = say("layer {layer}, head {head}: trained", layer=at_layer + 1, head=at_head + 1)
    names = ("softmax(x xᵀ)", "softmax(x xᵀ / √d)", trained)
    scores = (*scores, score_matrix(output, kind, at_layer, at_head).scaled)
    weights = (*weights, scene.trace.encoder_self.weights[at_layer, at_head])
    pictures = [
        blocks.heatmap(values, name, rows=tokens, columns=tokens, limit=1.0, signed=False)
        for name, values in zip(names, weights)
    ]
    return [
        blocks.formula("y = softmax(x xᵀ) x", say("no W_Q, no W_K, no W_V: queries, keys and values are x itself")),
        blocks.maps(*pictures),
        blocks.columns(
            (say("Weights"), names),
            (say("own weight, mean"), [blocks.bar(self_weight(weight)) for weight in weights]),
            (say("entropy, mean"), [say("{bits} bits", bits=f"{entropy_bits(w).mean():.2f}") for w in weights]),
            (say("asymmetry of the scores"), [blocks.number(asymmetry(score)) for score in scores]),
            caption=say(
                "Own weight: what a token gives to itself. Asymmetry: the largest difference between a's "
                "score for b and b's score for a, in standard deviations of the scores."
            ),
        ),
        blocks.facts(
            blocks.fact("Cosine of y to x", _cosine(outputs[0], x), "mean over the tokens, unscaled"),
            blocks.fact("The same, divided by √d", _cosine(outputs[1], x), "1: attention has changed nothing"),
        ),
    ]


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Return the mean cosine of corresponding rows."""
    return float(((a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))).mean())


PANEL = Panel(
    "plain",
    "Without weights",
    "Attention without weights: each token attends almost only to itself. A trained head does not.",
    say("Paper, section {n}", n="3.2"),
    plain,
    controls=(INPUT, LAYER, HEAD),
    method=say(
        "A vector is most similar to itself, and without weights a's score for b equals b's score for "
        "a. A trained head is free of both."
    ),
)

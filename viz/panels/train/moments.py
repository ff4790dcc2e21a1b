"""The panel "Two moments": a record of the training compared with the last one, as two models are compared."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.model_comparison import (
    MIN_WORDS,
    cka_of_products,
    compare_heads,
    pool_heads,
)
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.training.learned import Learned
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.heads.twins import head_pairs, layer_maps, probability_table
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.train.learned import RECORD, UNRECORDED, read_history, update_text
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def moments(scene: Scene, record: int) -> list[dict]:
    """Compare a record (from 1) with the last one."""
    history = read_history(scene.translator)
    if history is None:
        return [UNRECORDED]
    at = min(record, len(history.updates)) - 1
    states = {side: values for side in Side if (values := _layers(history, side, at)) is not None}
    unknown = blocks.note(
        "The states of this record were not saved, so its layers cannot be compared with the final ones."
    )
    return [
        blocks.stack(update_text(history, at), _probabilities(history, at)),
        layer_maps(states) if states else unknown,
        *(_heads(history, kind, at) for kind in history.kinds),
    ]


def _probabilities(history: Learned, at: int) -> dict:
    """Return the table of the references' probabilities, by word if the history has these, else by sentence."""
    titles = [say("update {n}", n=int(history.updates[i])) for i in (at, -1)]
    caption = say(
        "Log-probability of the recorded sentences' references, in nats: chosen update, then end of training."
    )
    probes = range(len(history.probes))
    tokens = [history.sentences(probe)[1] for probe in probes]
    by_token = [history.log_probability(probe) for probe in probes]
    if any(values is None or np.isnan(values[at]).any() for values in by_token):
        names = [probe["reference"] for probe in history.probes]
        sums = -history.loss[[at, -1]].T * np.array([len(target) for target in tokens])[:, None]
        return probability_table((say("Sentence"), *titles), names, sums, caption)
    words = [(values, *word) for target, values in zip(tokens, by_token) for word in labels.words(target)]
    sums = np.array([values[[at, -1]][:, list(group)].sum(1) for values, group, _ in words])
    return probability_table((say("Word"), *titles), [word for *_, word in words], sums, caption)


def _layers(history: Learned, side: Side, at: int) -> np.ndarray | None:
    """Return the CKA of a record's layers and the last one's [layer, layer] over all sentences; None without states."""
    pairs = []
    for probe in range(len(history.probes)):
        products = history.products(side, probe)
        if products is not None and products.shape[-1] >= MIN_WORDS and np.isfinite(products[at]).all():
            pairs.append((products[at].astype(float), products[-1].astype(float)))
    if not pairs:
        return None
    count = range(len(pairs[0][0]))
    return np.array([[cka_of_products([(early[a], last[b]) for early, last in pairs]) for b in count] for a in count])


def _heads(history: Learned, kind: AttentionKind, at: int) -> dict:
    """Return the table of the most similar heads of one kind at both moments."""
    maps = [
        tuple(pool_heads(history.maps(kind, probe)[i], kind, *history.sentences(probe)) for i in (at, -1))
        for probe in range(len(history.probes))
    ]
    alike, width = compare_heads(maps), history.maps(kind, 0).shape[2]
    return head_pairs(kind, alike, (width, width))


PANEL = Panel(
    "moments",
    "Then and now",
    "Compare any recorded update of the training with the last one: words, layers and heads.",
    say("Kornblith et al. 2019"),
    moments,
    controls=(RECORD,),
    paper="https://arxiv.org/abs/1905.00414",
    of_any_network=True,
)

"""Two moments of one training, any record and the last: the measures of two models on one sentence, on the recorded
sentences."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.model_comparison import (
    MIN_WORDS,
    assign,
    cka_of_products,
    compare_heads,
    pool_heads,
)
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.words import SPACE
from attention_atlas.model.training.learned import Learned
from attention_atlas.viz.panels.heads.twins import layers, partners, probable
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.train.learned import NOBODY, RECORD, recorded, when
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def moments(scene: Scene, record: int) -> list[dict]:
    found = recorded(scene)
    if found is None:
        return [NOBODY]
    at = min(record, len(found.updates)) - 1
    states = {side: values for side in Side if (values := _layers(found, side, at)) is not None}
    unknown = blocks.note(
        "The states of this record were not kept: it is not known how similar its layers are to the last ones."
    )
    return [
        when(found, at),
        _probable(found, at),
        layers(states) if states else unknown,
        *(_heads(found, kind, at) for kind in found.kinds),
    ]


def _probable(found: Learned, at: int) -> dict:
    """Of the recorded sentences' references: word by word where that was recorded, else each as a whole."""
    titles = [say("update {n}", n=int(found.updates[i])) for i in (at, -1)]
    caption = say(
        "Log-probability of the recorded sentences' references in nats, at the chosen update and at the last."
    )
    probes = range(len(found.probes))
    tokens, given = [found.sentences(probe)[1] for probe in probes], [found.log_probability(probe) for probe in probes]
    if any(own is None or np.isnan(own[at]).any() for own in given):
        names = [one["reference"] for one in found.probes]
        sums = -found.loss[[at, -1]].T * np.array([len(target) for target in tokens])[:, None]
        return probable((say("Sentence"), *titles), names, sums, caption)
    words = [(target, own, group) for target, own in zip(tokens, given) for group in content_words(target)]
    names = ["".join(target[i] for i in group).replace(SPACE, "") for target, _, group in words]
    sums = np.array([own[[at, -1]][:, list(group)].sum(1) for _, own, group in words])
    return probable((say("Word"), *titles), names, sums, caption)


def _layers(found: Learned, side: Side, at: int) -> np.ndarray | None:
    """CKA of a record's layers and the last one's, over all sentences; None where states were not recorded."""
    pairs = []
    for probe in range(len(found.probes)):
        products = found.products(side, probe)
        if products is not None and products.shape[-1] >= MIN_WORDS and np.isfinite(products[at]).all():
            pairs.append((products[at].astype(float), products[-1].astype(float)))
    if not pairs:
        return None
    count = range(len(pairs[0][0]))
    return np.array([[cka_of_products([(one[a], last[b]) for one, last in pairs]) for b in count] for a in count])


def _heads(found: Learned, kind: AttentionKind, at: int) -> dict:
    maps = [
        tuple(pool_heads(found.maps(kind, probe)[i], kind, *found.sentences(probe)) for i in (at, -1))
        for probe in range(len(found.probes))
    ]
    alike, width = compare_heads(maps), found.maps(kind, 0).shape[2]
    return partners(kind, alike, assign(alike), (width, width))


PANEL = Panel(
    "moments",
    say("Two moments"),
    say(
        "Any recorded update of this model's training beside its last one: how probable the same words were, how alike "
        "the layers are, and which heads were there already?"
    ),
    say("Kornblith et al. 2019"),
    moments,
    controls=(RECORD,),
    paper="https://arxiv.org/abs/1905.00414",
    of_any_network=True,
)

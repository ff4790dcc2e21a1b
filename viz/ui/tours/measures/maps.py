"""Measures of a translation as it stands: its attention maps and probabilities. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from model.trace.kinds import AttentionKind, Side
from model.trace.survey import cells
from model.training import learned
from model.training.history import NAME
from viz.ui.tours.measures.measured import NOTHING, Measured, Unit, share, tenths
from viz.ui.tours.scene import StopScene, shown
from viz.words import Words, join, say

MOST = 0.5  # of a row


def probability(scene: StopScene) -> Measured:
    """Of the pair's translation, all its pieces."""
    if not scene.target:
        return NOTHING
    return Measured(float(np.exp(scene.trace.log_probability[list(scene.target)].sum())))


def weight(scene: StopScene) -> Measured:
    """What the head gives to the pair's source word when its translation is about to be written."""
    if not (scene.source and scene.target):
        return NOTHING
    return Measured(float(scene.weights[scene.target[0], list(scene.source)].sum()))


def read_back(scene: StopScene) -> Measured:
    """What the head gives to the pair's source word in the row that reads the translation's last piece."""
    if not (scene.source and scene.target):
        return NOTHING
    row = scene.target[-1] + 1
    if row >= len(scene.trace.target_ids):
        return NOTHING
    return Measured(float(scene.weights[row, list(scene.source)].sum()), row=row)


def best_head(scene: StopScene) -> Measured:
    """The largest weight that any cross-attention head gives to the pair's source word when its translation is about to
    be written."""
    given = scene.given
    if given is None:
        return NOTHING
    return Measured(float(given.max()), also={"count": int((given > MOST).sum()), "of": given.size})


def statistic(scene: StopScene, name: str) -> Measured:
    """One of the survey's statistics of the head, in this sentence."""
    kind = scene.head[0]
    maps = scene.trace.maps(kind)
    found = cells.statistics(kind, scene.weights, maps.query_tokens, maps.key_tokens)
    if name not in found:
        return NOTHING
    return Measured(float(found[name].values), also={"chance": share(found[name].chance)})


def sharpest(scene: StopScene) -> Measured:
    """The mean largest weight of a row, of the cross-attention head with most of it; and of the one with least."""
    confidence = scene.trace.maps(AttentionKind.CROSS).weights.max(-1).mean(-1)
    return Measured(float(confidence.max()), also={"least": share(float(confidence.min())), "of": confidence.size})


def mean_probability(scene: StopScene) -> Measured:
    """The geometric mean of what the written tokens were given."""
    found = float(np.exp(np.mean(scene.trace.log_probability)))
    return Measured(found if scene.trace.finished else None, also={"steps": len(scene.trace.target_ids)})


def trained(scene: StopScene) -> Measured:
    """The same, and what was recorded of the model's training."""
    found = mean_probability(scene)
    return replace(found, also={**found.also, "records": _records(scene.translator.folder)})


def _records(folder: Path | None) -> Words:
    """From which update on sentences were looked at while a checkpoint was trained, and how their loss went."""
    if folder is None or not (folder / NAME).is_file():
        return say("How this model learned was not recorded.")
    found = learned.read(folder)
    (first, last), (before, after) = (found.updates[[0, -1]].tolist(), found.loss.mean(1)[[0, -1]])
    replayed = say(
        "The panel replays what became of {n} sentences from update {first}, where their mean loss was "
        "{before} nats a token, to update {last}, where it was {after}.",
        n=len(found.probes),
        first=first,
        last=last,
        before=f"{before:.2f}",
        after=f"{after:.2f}",
    )
    earlier = [say("What was learned before update {n} is not in these records.", n=first)] if first else []
    return join([replayed, *earlier], " ")


def moved(scene: StopScene) -> Measured:
    """How far the pair's word stands from where it stood in the source, each position a share of its sentence."""
    if not (scene.source and scene.target):
        return NOTHING
    at, by = scene.source[0] / (len(scene.trace.source_ids) - 1), scene.target[0] / len(scene.trace.target_ids)
    return Measured(abs(at - by))


def pieces(scene: StopScene) -> Measured:
    """How many pieces the pair's source word is made of."""
    if not scene.source:
        return NOTHING
    spelled = " + ".join(shown(scene.trace.source_tokens, [i]) for i in scene.source)
    return Measured(float(len(scene.source)), Unit.COUNT, {"pieces": spelled})


def digits(scene: StopScene) -> Measured:
    """How many digits of the pair's number the translation keeps in order."""
    source, target = (re.sub(r"\D", "", text) for text in (scene.pair.source, scene.trace.translation))
    kept = SequenceMatcher(None, source, target, autojunk=False).get_matching_blocks()
    return Measured(float(sum(block.size for block in kept)), Unit.COUNT, {"count": len(source)})


def uneven(scene: StopScene) -> Measured:
    """How much surer the model was of its surest piece than of its least sure one."""
    trace = scene.trace
    p = np.round(np.exp(trace.log_probability), 3)  # as it is written: the difference of what is written is said, too
    step = int(np.argmin(trace.log_probability))
    token, other = next(
        (token, float(q))
        for token, q in zip(trace.top_tokens[step], trace.top_probabilities[step])
        if token != trace.target_tokens[step]
    )
    return Measured(
        float(p.max() - p.min()),
        Unit.POINTS,
        {
            "piece": shown(trace.target_tokens, [step]),
            "least": tenths(float(p.min())),
            "most": tenths(float(p.max())),
            "other": shown((token,), (0,)),
            "p": share(other),
        },
    )


def future(scene: StopScene) -> Measured:
    """The largest weight that any of the decoder's heads gives to a token that is not written yet."""
    weights = scene.trace.maps(AttentionKind.DECODER_SELF).weights
    return Measured(float(np.triu(weights, 1).max()), Unit.ERROR)


def rows(scene: StopScene) -> Measured:
    """How far the sum of any row is from 1."""
    return Measured(
        max(
            float(np.abs(scene.trace.maps(kind).weights.sum(-1, dtype=np.float64) - 1).max())
            for kind in scene.trace.kinds
        ),
        Unit.ERROR,
    )


def sharper(scene: StopScene) -> Measured:
    """How much larger the mean largest weight of a row of cross-attention would be without the division by √d_k: a
    softmax of scores that are √d_k times as large is the weights to that power, each row summing to 1 again."""
    weights = scene.trace.maps(AttentionKind.CROSS).weights.astype(np.float64)
    raised = weights ** np.sqrt(scene.translator.config.of(Side.DECODER).d_head)
    raised /= raised.sum(-1, keepdims=True)
    before, after = (round(float(found.max(-1).mean()), 3) for found in (weights, raised))
    return Measured(after - before, Unit.POINTS, {"before": tenths(before), "after": tenths(after)})


MEASURES: Mapping[str, Callable[..., Measured]] = {
    measure.__name__: measure
    for measure in (
        probability,
        weight,
        read_back,
        best_head,
        statistic,
        sharpest,
        mean_probability,
        trained,
        moved,
        pieces,
        digits,
        uneven,
        future,
        rows,
        sharper,
    )
}

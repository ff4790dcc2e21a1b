"""Heads by what they do: a stop says which property it wants, never which head."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from model.analysis.survey.own import surveyed
from model.trace.kinds import AttentionKind
from model.trace.language import Refusal
from viz.ui.scene import most_telling
from viz.ui.tours.scene import Head, StopScene

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS


def points(scene: StopScene) -> Head:
    """The cross-attention head that points most clearly in this sentence."""
    found = most_telling(scene.trace)
    return found.kind, found.layer, found.head


def reads(scene: StopScene) -> Head:
    """The cross-attention head that gives most to the pair's source word when its translation is about to be written;
    where that was not written, the one that points most clearly."""
    given = scene.given
    return points(scene) if given is None else (CROSS, *_largest(given))


def aligned(scene: StopScene) -> Head:
    """The cross-attention head whose weights align best to the word about to be written; without a survey that says
    so, the one that `reads` picks."""
    try:
        return _by(CROSS, "alignment_predicted")(scene)
    except Refusal:
        return reads(scene)


def _by(kind: AttentionKind, statistic: str) -> Callable[[StopScene], Head]:
    """The head of a kind that has most of a statistic over many sentences, if it is named for that there."""

    def find(scene: StopScene) -> Head:
        survey = surveyed(scene.translator, scene.trace.direction)
        if survey is None:
            raise Refusal(
                "There is no survey of this model's heads beside its weights, so nothing is known about what they do "
                "in general. The tab Heads can run one."
            )
        found = survey.kinds.get(kind)
        if found is None or statistic not in found.statistics:
            raise Refusal("The survey of this model's heads does not count this.")
        return kind, *_largest(found.statistics[statistic].value)

    return find


def _largest(values: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(int(np.nanargmax(values)), values.shape)
    return int(layer), int(head)


HEADS: Mapping[str, Callable[[StopScene], Head]] = {
    "points": points,
    "reads": reads,
    "previous_encoder": _by(ENCODER, "previous"),
    "previous_decoder": _by(DECODER, "previous"),
    "aligned": aligned,
    "aligned_read": _by(CROSS, "alignment_read"),
}

"""Measures of a translation as it stands: its attention maps and probabilities. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from model.trace.kinds import AttentionKind, Side
from model.trace.survey import cells
from viz.ui.tours.measures.measured import NOTHING, Measured, Unit, share
from viz.ui.tours.place import Place, text_of

MOST = 0.5  # of a row


def probability(place: Place) -> Measured:
    """Of the pair's translation, all its pieces."""
    if not place.target:
        return NOTHING
    return Measured(float(np.exp(place.trace.log_probability[list(place.target)].sum())))


def weight(place: Place) -> Measured:
    """What the head gives to the pair's source word when its translation is about to be written."""
    if not (place.source and place.target):
        return NOTHING
    return Measured(float(place.weights[place.target[0], list(place.source)].sum()))


def read_back(place: Place) -> Measured:
    """What the head gives to the pair's source word in the row that reads the translation's last piece."""
    rows = len(place.trace.target_ids)
    if not (place.source and place.target) or place.target[-1] + 1 >= rows:
        return NOTHING
    return Measured(float(place.weights[place.target[-1] + 1, list(place.source)].sum()))


def best_head(place: Place) -> Measured:
    """The largest weight that any cross-attention head gives to the pair's source word when its translation is about to
    be written."""
    given = place.given
    if given is None:
        return NOTHING
    return Measured(float(given.max()), also={"count": int((given > MOST).sum()), "of": given.size})


def statistic(place: Place, name: str) -> Measured:
    """One of the survey's statistics of the head, in this sentence."""
    kind = place.head[0]
    maps = place.trace.maps(kind)
    found = cells.statistics(kind, place.weights, maps.query_tokens, maps.key_tokens)
    if name not in found:
        return NOTHING
    return Measured(float(found[name].values), also={"chance": share(found[name].chance)})


def sharpest(place: Place) -> Measured:
    """The mean largest weight of a row, of the cross-attention head with most of it; and of the one with least."""
    confidence = place.trace.maps(AttentionKind.CROSS).weights.max(-1).mean(-1)
    return Measured(float(confidence.max()), also={"least": share(float(confidence.min())), "of": confidence.size})


def mean_probability(place: Place) -> Measured:
    """The geometric mean of what the written tokens were given."""
    found = float(np.exp(np.mean(place.trace.log_probability)))
    return Measured(found if place.trace.finished else None, also={"steps": len(place.trace.target_ids)})


def later(place: Place) -> Measured:
    """By how many words of the source the pair's word stands behind the one that reads it out of turn: how far its
    place in the source lies behind its place in the translation, in shares of the sentence."""
    if not (place.source and place.target):
        return NOTHING
    at, by = place.source[0] / (len(place.trace.source_ids) - 1), place.target[0] / len(place.trace.target_ids)
    return Measured(abs(at - by))


def pieces(place: Place) -> Measured:
    """How many pieces the pair's source word is made of."""
    if not place.source:
        return NOTHING
    spelled = " + ".join(text_of(place.trace.source_tokens, [i]) for i in place.source)
    return Measured(float(len(place.source)), Unit.COUNT, {"pieces": spelled})


def copied(place: Place) -> Measured:
    """1 where the pair's translation was written."""
    return Measured(float(bool(place.target)), Unit.COUNT, {"translation": place.trace.translation})


def least_sure(place: Place) -> Measured:
    """The smallest probability of a piece that was written; with its runner-up."""
    step = int(np.argmin(place.trace.log_probability))
    others = [(token, float(p)) for token, p in zip(place.trace.top_tokens[step], place.trace.top_probabilities[step])
              if token != place.trace.target_tokens[step]]
    token, p = others[0]
    return Measured(float(np.exp(place.trace.log_probability[step])), also={
        "piece": text_of(place.trace.target_tokens, [step]), "other": text_of((token,), (0,)), "p": share(p)})


def candidates(place: Place) -> Measured:
    """The entropy of the next piece's distribution where the pair's translation begins, in bits."""
    if not place.target:
        return NOTHING
    bits = float(place.trace.entropy[place.target[0]])
    return Measured(bits, Unit.BITS, {"choices": f"{2 ** bits:.1f}"})


def future(place: Place) -> Measured:
    """The largest weight that any of the decoder's heads gives to a token that is not written yet."""
    weights = place.trace.maps(AttentionKind.DECODER_SELF).weights
    return Measured(float(np.triu(weights, 1).max()), Unit.ERROR)


def rows(place: Place) -> Measured:
    """How far the sum of any row is from 1."""
    return Measured(max(float(np.abs(place.trace.maps(kind).weights.sum(-1, dtype=np.float64) - 1).max())
                        for kind in place.trace.kinds), Unit.ERROR)


def heads(place: Place) -> Measured:
    """How many heads there are."""
    count = {kind: place.trace.maps(kind).num_layers * place.trace.maps(kind).num_heads for kind in place.trace.kinds}
    decoder = sum(number for kind, number in count.items() if kind.side is Side.DECODER)
    return Measured(float(sum(count.values())), Unit.COUNT, {"decoder": decoder, "maps": len(count)})


MEASURES: Mapping[str, Callable[..., Measured]] = {measure.__name__: measure for measure in (
    probability, weight, read_back, best_head, statistic, sharpest, mean_probability, later, pieces, copied,
    least_sure, candidates, future, rows, heads)}

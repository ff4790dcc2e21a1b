"""Break the model and compare: positions off or shifted, words shuffled, heads switched off.

Every run goes down the model's one path with Interventions as arguments. Two traces stand side by side: the free
translation of each, and, so that maps have equal shapes, the broken model forced through the plain translation.

>>> from attention_atlas.model.trace.kinds import AttentionKind
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> found = compare(translator, trace, Interventions(heads_off=frozenset({(AttentionKind.CROSS, 2, 4)})))
>>> loss = trace.log_probability.sum() - found.forced_log_probability.sum()  # nats, of the whole translation
>>> loss.shape, found.changes[AttentionKind.CROSS].shape == trace.cross.weights.shape[:2]
((), True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.again import check_again
from attention_atlas.model.analysis.order import token_order
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import jensen_shannon_bits
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A trace and a broken model on the same sentence.

    plain             the trace, with whatever the model was changed by already
    broken            the free translation with something broken besides
    forced_log_probability  float32 [step]: of the trace's tokens, under the broken model
    changes           per kind: float64 [layers, heads], mean over rows of the Jensen-Shannon divergence in bits between
                      the plain map and the broken one, both reading the plain translation (0: the same map; 1: no
                      weight in common). Where words were shuffled, keys and rows are put back in the plain order first.
    """

    plain: TranslationTrace
    broken: TranslationTrace
    forced_log_probability: np.ndarray
    changes: dict[AttentionKind, np.ndarray]


def compare(
    translator: Translator, trace: TranslationTrace, interventions: Interventions, *, text: str | None = None
) -> Comparison:
    """Translate again with something broken, beside the trace's own interventions. text: another order of the same
    words, None for the sentence itself.

    ValueError if an intervention names what does not exist, if text is not the trace's words in another order, or if
    the trace's own interventions cannot be run again.
    """
    check_again(translator, trace)
    changes = trace.interventions | interventions
    ids = trace.source_ids if text is None else tuple(translator.encode(text, trace.direction))
    order = (
        np.arange(len(ids))
        if text is None
        else token_order(trace.source_tokens, translator.tokenizer.in_words(translator.tokenizer.tokens(ids)))
    )
    broken = translator.trace(text or trace.source_text, trace.direction, source_ids=ids, interventions=changes)
    forced = translator.trace(
        text or trace.source_text, trace.direction, source_ids=ids, target=trace.target_ids, interventions=changes
    )
    back = np.argsort(order)  # the place in the new sentence of each token of the old one
    moved = {}
    for kind in trace.kinds:
        weights = forced.maps(kind).weights  # [layers, heads, query, key]
        weights = weights if kind is AttentionKind.DECODER_SELF else weights[..., back]
        weights = weights[:, :, back] if kind is AttentionKind.ENCODER_SELF else weights
        moved[kind] = jensen_shannon_bits(trace.maps(kind).weights, weights).mean(-1)
    return Comparison(trace, broken, forced.log_probability, moved)

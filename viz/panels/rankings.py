"""The order in which the attribution methods are shown.

A faithfulness table is measured for a checkpoint over many sentences (model/analysis/why/faithfulness.py). Methods are
ranked by their agreement with occlusion.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from attention_atlas.model.analysis.why import faithfulness
from attention_atlas.model.analysis.why.methods import METHODS, OCCLUSIONS, attention, methods_of, occlusion
from attention_atlas.model.trace.why.faithfulness import Faithfulness, best_method
from attention_atlas.model.translator import Translator
from attention_atlas.viz.words import Words, say

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ranking:
    """The order of the methods by name, those that are folded away, and the reason for the order."""

    order: tuple[str, ...]
    folded: frozenset[str]
    reason: Words


def read_table(translator: Translator) -> Faithfulness | None:
    """Return the faithfulness table in a checkpoint's folder, of whatever weights; None without a readable one.

    Methods that no longer exist are left out. A damaged file is logged.
    """
    try:
        table = translator.folder and faithfulness.load_faithfulness(translator.folder)
    except ValueError as error:
        log.warning("%s", error)
        return None
    return table and replace(table, methods=tuple(scores for scores in table.methods if scores.method in METHODS))


def ranking_of(translator: Translator) -> Ranking:
    """Return the order of the methods for a model.

    With a table of its weights: by agreement with occlusion, if the best method reaches the bar; else occlusion alone,
    the others folded. Without a table: all methods, occlusion first.
    """
    table, order = read_table(translator), tuple(methods_of(translator.model))
    if table is None:
        reason = say(
            "Which method to trust has not been measured for this model. {method} comes first because it "
            "is itself a measurement.",
            method=occlusion.MASK.title,
        )
        return Ranking(order, frozenset(), reason)
    if table.digest != translator.digest:
        reason = say(
            "Which method to trust was measured for other weights ({digest}), not for these. {method} "
            "comes first because it is itself a measurement.",
            digest=table.digest,
            method=occlusion.MASK.title,
        )
        return Ranking(order, frozenset(), reason)
    ranked = [scores.method for scores in table.by_agreement()]
    order = (*ranked, *(name for name in order if name not in ranked))
    best = best_method(table, raw=attention.RAW.slug)
    if best is None:
        occlusions = tuple(method.slug for method in OCCLUSIONS)
        folded = tuple(name for name in order if name not in occlusions)
        reason = say(
            "Only occlusion is shown: over {n} sentences no method agreed with it well enough (median "
            "rank correlation of at least 0.5, and 0.15 above attention's).",
            n=table.sentences,
        )
        return Ranking((*occlusions, *folded), frozenset(folded), reason)
    reason = say(
        "{method} comes first because it agreed best with occlusion by another replacement over {n} "
        "sentences (median rank correlation {rho}).",
        method=METHODS[best.method].title,
        n=table.sentences,
        rho=f"{best.agreement.value:.2f}",
    )
    return Ranking(order, frozenset(), reason)

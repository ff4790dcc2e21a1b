"""Which row of the tokens' matrix stands first: what was measured of this model over many sentences decides."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from model.analysis.why import faithful
from model.analysis.why.methods import attention, occlusion
from model.analysis.why.registry import METHODS, OCCLUSIONS
from model.trace.why.faithfulness import Faithfulness, first
from model.translator import Translator
from viz.words import Words, say

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lead:
    """order: the methods' names; folded: those of them that are shown only when asked for; reason: why so."""

    order: tuple[str, ...]
    folded: frozenset[str]
    reason: Words


def table(translator: Translator) -> Faithfulness | None:
    """What was measured of a checkpoint, of whatever weights, of the methods that there are; None if nothing was, or
    the file is damaged, which the log says."""
    try:
        found = translator.folder and faithful.read(translator.folder)
    except ValueError as error:
        log.warning("%s", error)
        return None
    return found and replace(found, methods=tuple(one for one in found.methods if one.method in METHODS))


def leading(translator: Translator) -> Lead:
    """With a table of these weights: the method that agrees best with occlusion under the other replacement, if it
    reaches the bar; else occlusion alone. Without one, all rows, occlusion first."""
    found, order = table(translator), tuple(METHODS)
    if found is None or found.digest != translator.digest:
        return Lead(order, frozenset(), unmeasured(found, translator))
    best = first(found, raw=attention.RAW.name)
    if best is None:
        measured = tuple(method.name for method in OCCLUSIONS)
        return Lead(order, frozenset(order) - frozenset(measured), say(
            "Occlusion stands alone: over {n} sentences no method agreed with it well enough (a median rank "
            "correlation of 0.5, and 0.15 more than attention's).", n=found.sentences))
    values = {"method": METHODS[best.method].name, "n": found.sentences, "rho": f"{best.agreement.value:.2f}"}
    return Lead((best.method, *(name for name in order if name != best.method)), frozenset(), say(
        "{method} stands first: over {n} sentences it agreed best with occlusion by another replacement (median rank "
        "correlation {rho}).", **values))


def unmeasured(found: Faithfulness | None, translator: Translator) -> Words:
    """Why there is nothing to decide by, and how to make it."""
    command = f"python -m model.faithfulness --checkpoint checkpoints/{translator.name}"
    if found is None:
        return say("Which row to believe has not been measured for this model: {command} does. Until then {method} "
                   "stands first: it is itself a measurement.", command=command, method=occlusion.MASK.name)
    return say("Which row to believe was measured for other weights ({digest}); {command} does it for these. Until "
               "then {method} stands first: it is itself a measurement.", command=command,
               digest=found.digest, method=occlusion.MASK.name)

"""A translation's recorded pass once more, for what a trace does not hold: with all that the model was changed by."""

from __future__ import annotations

from model.nets.records import ForwardOutput
from model.trace.interventions import NO_INTERVENTIONS, Interventions
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.translator import Translator


def recorded(
    translator: Translator, trace: TranslationTrace, *, also: Interventions = NO_INTERVENTIONS
) -> ForwardOutput:
    """One recorded pass over the trace's own ids, under its own interventions and those of `also`: a batch of one.
    ValueError if other weights wrote it; a Refusal, in words, for interventions that cannot be run again."""
    check_again(translator, trace)
    return translator.inspect(trace.source_ids, trace.target_ids, interventions=trace.interventions | also)


def translated(translator: Translator, trace: TranslationTrace, interventions: Interventions) -> TranslationTrace:
    """The trace's own source translated under these interventions instead. ValueError for those that cannot be used."""
    return translator.trace(
        trace.source_text, trace.direction, source_ids=trace.source_ids, interventions=interventions
    )


def check_again(translator: Translator, trace: TranslationTrace, *, taken_apart: bool = False) -> None:
    """The errors of recorded(). taken_apart: what is asked is answered from a pass's parts, in which the edits of named
    places would be missing: such a trace is refused, too."""
    if trace.digest != translator.digest:
        raise ValueError(f"this trace was written by other weights ({trace.digest}, here {translator.digest})")
    changes = trace.interventions
    if changes.patches or changes.in_words or (taken_apart and changes.edits):
        raise Refusal(
            "this trace was written with changes to the model that cannot be run again ({changes}): ask "
            "about another one",
            changes=changes.describe(),
        )

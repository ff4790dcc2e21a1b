"""A translation's recorded pass once more, for what a trace does not hold: with all that the model was changed by."""

from __future__ import annotations

from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator


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
    if taken_apart:
        check_plain(translator)
        if changes.edits:
            raise Refusal(
                "this trace was written with edits of named places ({changes}), which are missing where a pass is "
                "taken apart: ask about another one",
                changes=changes.describe(),
            )
    if changes.patches or changes.in_words:
        raise Refusal(
            "this trace was written with changes to the model that cannot be run again ({changes}): ask "
            "about another one",
            changes=changes.describe(),
        )


def check_plain(translator: Translator) -> None:
    """The errors of what is computed from a Transformer's parts. A Refusal for another network; ValueError for what
    edit() returns, whose changes would be missing there."""
    check_transformer(translator.model)
    if translator.changes:
        raise ValueError(
            "an edited translator is taken apart here, and its edits would be missing: ask the one that edit() was "
            "called on"
        )

"""Run a trace's translation again under its own interventions, for what the trace does not hold.

`record_pass` returns a recorded pass, `retranslate` a new translation; the checks refuse what cannot be run again.
"""

from __future__ import annotations

from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator


def record_pass(translator: Translator, trace: TranslationTrace) -> ForwardOutput:
    """Record a pass over the trace's ids, a batch of one, under its interventions. Raises what check_rerun() raises."""
    check_rerun(translator, trace)
    return translator.inspect(trace.source_ids, trace.target_ids, interventions=trace.interventions)


def retranslate(translator: Translator, trace: TranslationTrace, interventions: Interventions) -> TranslationTrace:
    """Translate the trace's source under these interventions instead of its own.

    Raises ValueError for interventions that cannot be used.
    """
    return translator.trace(
        trace.source_text, trace.direction, source_ids=trace.source_ids, interventions=interventions
    )


def check_rerun(translator: Translator, trace: TranslationTrace, *, needs_parts: bool = False) -> None:
    """Raise ValueError if other weights wrote the trace, and a Refusal if its interventions cannot be run again.

    needs_parts: also refuse edits of named places, for analyses that compute with a pass's parts and would miss them.
    """
    if trace.digest != translator.digest:
        raise ValueError(f"this trace was written by other weights ({trace.digest}, here {translator.digest})")
    changes = trace.interventions
    if needs_parts:
        check_no_edits(translator)
        if changes.edits:
            raise Refusal(
                "this trace was made with edits of named places ({changes}), which are missing when a pass "
                "is taken apart: ask about another one",
                changes=changes.describe(),
            )
    if changes.patches or changes.in_words:
        raise Refusal(
            "this trace was made with changes to the model that cannot be run again ({changes}): ask about another one",
            changes=changes.describe(),
        )


def check_unedited(translator: Translator) -> None:
    """Check that an analysis may compute with the parts of the translator's model.

    Raises a Refusal for a network that is not a Transformer, and ValueError for a translator that edit() returned: its
    edits would be missing.
    """
    check_transformer(translator.model)
    check_no_edits(translator)


def check_no_edits(translator: Translator) -> None:
    """Raise ValueError for a translator that edit() returned."""
    if translator.changes:
        raise ValueError(
            "an edited translator cannot be analysed by the model's parts, where its edits would be missing: pass the "
            "translator that edit() was called on"
        )

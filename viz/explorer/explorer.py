"""The explorer: every head of the model on one screen. The page draws it from one payload for each translation."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.trust import load_alignment_errors
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.alignment import RowToken
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.survey import DirectionSurvey
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.component import add_component
from attention_atlas.viz.explorer import compare, overlays
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.panels.scene import Selection, most_telling
from attention_atlas.viz.wire.payload import payload
from attention_atlas.viz.wire.survey import marks
from attention_atlas.viz.words import Words, say


def add_explorer(value: dict, *, model: bool = False) -> None:
    """Add the explorer with a payload. model: whether a model is there to answer its questions."""
    options = {
        "formats": [{"name": name, "about": form.about} for name, form in FORMATS.items()],
        **overlays.options(model=model),
        "pairs": compare.pair_menus() if model else {},
    }
    add_component("explorer", value, options=options, elem_id="explorer")


def explorer_payload(
    translators: Translators | None, trace: TranslationTrace, selection: Selection | None = None
) -> dict:
    """Return the explorer's payload of a translation: its maps, and what a survey of these weights says of the heads.

    selection: what to open with; None to keep the page's selection.
    """
    made_by, address = translators.by_digest(trace.digest) if translators else None, Address.of(trace)
    survey = made_by.survey if made_by else None
    measured = survey.directions.get(trace.direction) if survey else None
    return {
        **payload(trace, selection and selection.clamp(trace)),
        "address": address and address.to_plain(),
        "marks": marks(measured),
        "alignment": _alignment(made_by, trace, measured),
        "beyond": _beyond(made_by, trace) if made_by else None,
        "language": compare.language(trace),
        "glosses": compare.gloss_words(trace, measured),
    }


def opening_selection(translators: Translators, trace: TranslationTrace) -> Selection:
    """Return the head that the page opens with: the cross-attention head with the lowest alignment error for the word
    written; without a measurement the one that points most clearly."""
    alignment = _alignment(translators.by_digest(trace.digest), trace, None)
    return Selection(AttentionKind.CROSS, *alignment["opens"]) if alignment else most_telling(trace)


def _alignment(made_by: Translator | None, trace: TranslationTrace, survey: DirectionSurvey | None) -> dict | None:
    """Return which cross-attention heads align words, None if nobody measured it.

    errors     percent, [layer][head], for rows that stand for the word written; sentences: how many were linked by hand
    opens      [layer, head] of the lowest error; these three are None without links by hand
    linked_by  [layer, head, row] of the heads that words are linked by; row: "read" or "predicted"
    """
    if made_by is None or AttentionKind.CROSS not in trace.kinds:
        return None
    measured = load_alignment_errors(made_by.folder, made_by.digest).get(trace.direction)
    voters = survey.linked_by if survey else ()
    if measured is None and not voters:
        return None
    rates = measured and measured.rates[RowToken.PREDICTED]
    return {
        "errors": measured and np.round(rates, 1).tolist(),
        "sentences": measured and measured.sentences,
        "opens": measured and [int(i) for i in np.unravel_index(np.nanargmin(rates), rates.shape)],
        "linked_by": [[voter.layer, voter.head, voter.row.value] for voter in voters],
    }


def _beyond(made_by: Translator, trace: TranslationTrace) -> Words | None:
    """Return a warning if a text is longer than those that its model was made for, else None."""
    made_for = made_by.config.max_length
    if max(len(trace.source_ids), len(trace.target_ids)) <= made_for:
        return None
    return say(
        "Longer than the {n} tokens this model was built for: the translation is unreliable, the maps are exact.",
        n=made_for,
    )

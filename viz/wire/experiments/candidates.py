"""What the model would write before and after a change, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from model.trace.why.question import Question
from model.trace.why.removal import Removal
from viz.maps import labels
from viz.wire import blocks
from viz.words import Words, say


def candidates(found: Removal, tokens: Sequence[str], question: Question, before: Words, after: Words) -> dict:
    """The most probable tokens of either run with both probabilities; tokens: of found.ids; before, after: headings."""
    asked = (question.token_id, question.contrast_id)
    rows = [
        [blocks.token(labels.display(token)), blocks.bar(float(p)), blocks.bar(float(q))]
        for token, p, q in zip(tokens, *found.probabilities)
    ]
    return blocks.table(
        (say("Next token"), before, after),
        rows,
        marked=[i for i, one in enumerate(found.ids) if one in asked],
        caption=say("Probabilities, measured: the most probable tokens of either run; those compared are marked."),
    )

"""Occlusion: take a word away, run the model again, see what the metric loses (Zeiler and Fergus 2014; Li et al. 2016).

All pieces of a word go together. Two replacements, because each has a defect of its own: where they disagree, neither
is to be believed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.method import Answer, Method
from attention_atlas.model.analysis.why.metric import candidates, measure
from attention_atlas.model.analysis.why.passes.change import masked, replaced
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.effects import Losses
from attention_atlas.model.trace.why.evidence import Evidence, Unit

INSTEAD = 3  # tokens of each run: the one in question may be among them


def by_mask(case: Case) -> Answer:
    """Each column's keys masked in every layer and head; what the row itself reads is replaced by the mean."""
    note = say(
        "The word just read reaches this row whatever is masked: it is the {mean} instead.", mean=case.mean_rows[2]
    )
    return Answer(case.effects(masked(*case.columns.masks())), notes=(note,))


@torch.inference_mode()
def losses(case: Case) -> Losses:
    """Each column masked once: what the metric loses, what log p(token) does, and what would be written instead."""
    hidden = torch.cat([case.output.hidden[:, -1], case.run(masked(*case.columns.masks()))])
    metric = case.measure(hidden).cpu().numpy()
    alone = replace(case.question, contrast_id=None, contrast=None)
    log_p = metric if case.question == alone else measure(case.model, alone, hidden).cpu().numpy()
    ids, probable = (found.cpu().numpy() for found in candidates(case.model, hidden, INSTEAD))
    return Losses(
        float(metric[0]), float(log_p[0]), metric[0] - metric[1:], log_p[0] - log_p[1:], ids, np.exp(probable)
    )


def by_mean(case: Case) -> Answer:
    """Each column's embeddings replaced by the mean, positions kept."""
    return Answer(case.effects(replaced(*case.columns.masks())), notes=(case.mean_rows[2],))


MASK = Method(
    "occlusion_by_mask",
    say("occlusion by mask"),
    Evidence.MEASURED,
    Unit.NATS,
    say("No head may read the word; the model runs again."),
    say("Two words that say the same thing hide each other: without one, the other still speaks."),
    by_mask,
)
MEAN = Method(
    "occlusion_by_mean",
    say("occlusion by mean"),
    Evidence.MEASURED,
    Unit.NATS,
    say("The word's embedding becomes the average one; the model runs again."),
    say("No word is average: the model reads something that it was never trained on."),
    by_mean,
)

"""Occlusion: remove a word, run the model again, and measure the metric's loss.

After Zeiler and Fergus (2014) and Li et al. (2016). All pieces of a word are removed together, by masking or by the
mean embedding. Each replacement has its own defect: where the two disagree, neither should be trusted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from attention_atlas.model.analysis.why.case import Case, mask_words, replace_words, top_tokens
from attention_atlas.model.analysis.why.method import Attribution, Method, any_network
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.effects import Losses
from attention_atlas.model.trace.why.evidence import Evidence, Unit

NUM_CANDIDATES = 3  # most probable tokens of each run; one of them may be the token in question


def occlude_by_mask(case: Case) -> Attribution:
    """Mask each column's keys in every layer and head; the row's own token is replaced by the mean. A recurrent network
    skips the column."""
    note = say(
        "The word just read reaches this row even if it is masked, so it is replaced by the {mean}.",
        mean=case.mean_rows[2],
    )
    return Attribution(case.measure_effects(mask_words(*case.columns.masks())), notes=(note,))


@torch.inference_mode()
def measure_losses(case: Case) -> Losses:
    """Mask each column once; return the losses of the metric and of log p(token), and what would be written instead."""
    hidden = torch.cat([case.output.hidden[:, -1], case.run(mask_words(*case.columns.masks()))])
    metric = case.measure(hidden).cpu().numpy()
    token_only = replace(case, question=replace(case.question, contrast_id=None, contrast=None))
    log_p = metric if case.question == token_only.question else token_only.measure(hidden).cpu().numpy()
    ids, top_log_p = (top.cpu().numpy() for top in top_tokens(case.model, hidden, NUM_CANDIDATES))
    return Losses(
        float(metric[0]), float(log_p[0]), metric[0] - metric[1:], log_p[0] - log_p[1:], ids, np.exp(top_log_p)
    )


def occlude_by_mean(case: Case) -> Attribution:
    """Replace each column's embeddings by the mean, and keep their positions."""
    return Attribution(case.measure_effects(replace_words(*case.columns.masks())), notes=(case.mean_rows[2],))


MASK = Method(
    "occlusion_by_mask",
    say("occlusion by mask"),
    Evidence.MEASURED,
    Unit.NATS,
    say("The word is hidden from the model, which runs again."),
    say("Two words with the same information hide each other: without one, the other still supports the token."),
    occlude_by_mask,
    applies=any_network,
)
MEAN = Method(
    "occlusion_by_mean",
    say("occlusion by mean"),
    Evidence.MEASURED,
    Unit.NATS,
    say("The word's embedding is replaced by the average; the model runs again."),
    say("No word is average: the model reads something it was never trained on."),
    occlude_by_mean,
    applies=any_network,
)

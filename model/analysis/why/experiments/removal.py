"""What the model would write after a change, beside what it wrote: without one word, and after any other change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.metric import candidates
from attention_atlas.model.analysis.why.passes.change import Change
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.trace.why.effects import Removal

SHOWN = 5  # of the most probable tokens, before and after


@torch.inference_mode()
def without(case: Case, column: int, how: Callable[[np.ndarray, np.ndarray], Change]) -> Removal:
    """The case without one column's word. how: masked or replaced of model.analysis.why.passes.change. ValueError for a
    column that there is not."""
    if not 0 <= column < len(case.columns):
        raise ValueError(f"columns are 0 to {len(case.columns) - 1}, found {column}")
    return beside(case, case.run(how(*(mask[[column]] for mask in case.columns.masks()))))


@torch.inference_mode()
def beside(case: Case, changed: Tensor) -> Removal:
    """The plain run beside a changed one, whose decoder's output at the question's row is changed [1, d_model]."""
    hidden = torch.cat((case.output.hidden[:, -1], changed))
    question, (ids, _) = case.question, candidates(case.model, hidden, SHOWN)
    asked = [question.token_id] + ([] if question.contrast_id is None else [question.contrast_id])
    listed = list(dict.fromkeys([*asked, *ids.flatten().tolist()]))
    probabilities = exact(case.model.project(hidden)).softmax(-1)[:, listed].cpu().numpy()
    before, after = case.measure(hidden).tolist()
    order = np.argsort(-probabilities.max(0), kind="stable")
    return Removal(before, after, tuple(listed[i] for i in order), probabilities[:, order])

"""The metric of a question, measured from the decoder's output, and the vector that an exact split projects on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.model.nets.blocks import MAX_LOGITS, exact, log_probabilities, with_float64
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.why.attribution import Question


@dataclass(frozen=True, eq=False)
class Direction:
    """A linear reading of the decoder's output x [d_model]: vector . x + constant. float64."""

    vector: Tensor
    constant: float

    def __call__(self, hidden: Tensor) -> Tensor:
        """hidden [.., d_model] -> [..], float64, differentiable."""
        return exact(hidden) @ self.vector + self.constant


def direction(model: Transformer, question: Question) -> Direction:
    """logit(token) - logit(contrast); without a contrast, logit(token) - mean logit of the vocabulary."""
    weight, bias = model.output_matrix.detach(), model.output_bias
    offsets = weight.new_zeros(len(weight)) if bias is None else bias.detach()

    def less_the_contrast(rows: Tensor) -> Tensor:
        against = question.contrast_id
        minus = _mean(rows) if against is None else exact(rows[against])
        return exact(rows[question.token_id]) - minus

    return Direction(model.output_scale * less_the_contrast(weight), float(less_the_contrast(offsets)))


def _mean(rows: Tensor) -> Tensor:
    """The mean row of a matrix or a vector, float64. Torch would first make a float64 of all of it: 2 GB."""
    parts = rows.split(max(1, MAX_LOGITS // rows[0].numel()))
    return torch.stack([with_float64(part).sum(0, dtype=torch.float64) for part in parts]).sum(0) / len(rows)


def measure(model: Transformer, question: Question, hidden: Tensor) -> Tensor:
    """The metric [batch], float64 nats, of the decoder's output at the question's row, hidden [batch, d_model].
    log p(token) - log p(contrast), or log p(token): both what the model says, not its linear reading."""
    if question.contrast_id is not None:
        return direction(model, question)(hidden)
    ids = torch.full((len(hidden),), question.token_id, device=hidden.device)
    return log_probabilities(model.project, hidden, ids, model.config.num_target_tokens, dtype=torch.float64)


@torch.inference_mode()
def candidates(model: Transformer, hidden: Tensor, count: int = 10) -> tuple[Tensor, Tensor]:
    """Ids and log-probabilities, [batch, count] each, of the most probable tokens after hidden [batch, d_model]."""
    found = exact(model.project(hidden)).log_softmax(-1).topk(count, dim=-1)
    return found.indices, found.values

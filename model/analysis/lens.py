"""The logit lens: what each decoder layer would predict if it were the last (nostalgebraist 2020, "interpreting GPT:
the logit lens")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.nets.records import ForwardOutput
from model.nets.transformer import Transformer
from model.trace.kinds import Side


@dataclass(frozen=True, eq=False)
class LogitLens:
    """Row 0 reads the decoder's input, row l the residual stream after layer l; the last row is the model's own
    distribution. Each array is [layers + 1, step].

    top_ids               int32, the most probable next token
    top_probabilities     float32
    chosen_probabilities  float32, of the token that the step took in the end
    chosen_ranks          int32, of that token, from 1
    """

    top_ids: np.ndarray
    top_probabilities: np.ndarray
    chosen_probabilities: np.ndarray
    chosen_ranks: np.ndarray


@torch.inference_mode()
def lens_logits(model: Transformer, output: ForwardOutput) -> Tensor:
    """The final norm and the output projection on the residual stream before the first decoder layer and after each:
    [layers + 1, batch, target, vocabulary]. output: recorded. ValueError if it is not."""
    records = output.layers(Side.DECODER)
    stream = [records[0].before, *(record.after for record in records)]
    return model.project(model.decoder.norm(torch.stack(stream)))


@torch.inference_mode()
def logit_lens(model: Transformer, output: ForwardOutput, target_ids: list[int]) -> LogitLens:
    """The lens over a recorded pass of a batch of one; target_ids y1 .. yT, what its rows predict."""
    logits = lens_logits(model, output)[:, 0].float()  # [layers + 1, step, vocabulary]
    normaliser = logits.logsumexp(-1)
    top, top_ids = logits.max(-1)
    taken = torch.tensor(target_ids, device=logits.device).expand(len(logits), -1)[..., None]
    chosen = logits.gather(-1, taken)  # [layers + 1, step, 1]
    ranks = (logits > chosen).sum(-1) + 1
    return LogitLens(
        top_ids.cpu().numpy().astype(np.int32), (top - normaliser).exp().cpu().numpy(),
        (chosen[..., 0] - normaliser).exp().cpu().numpy(), ranks.cpu().numpy().astype(np.int32))

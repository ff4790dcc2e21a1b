"""The logit lens: what each decoder layer would predict if it were the last (nostalgebraist 2020, "interpreting GPT:
the logit lens")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.nets.blocks import blocks
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
def lens_streams(model: Transformer, output: ForwardOutput) -> Tensor:
    """What the lens projects: the final norm on the residual stream before the first decoder layer and after each,
    [layers + 1, batch, target, d_model]. output: recorded. ValueError if it is not."""
    records = output.layers(Side.DECODER)
    return model.decoder.norm(torch.stack([records[0].before, *(record.after for record in records)]))


@torch.inference_mode()
def logit_lens(model: Transformer, output: ForwardOutput, target_ids: list[int]) -> LogitLens:
    """The lens over a recorded pass of a batch of one; target_ids y1 .. yT, what its rows predict. Block by block: of
    12 layers, 100 steps and 256,000 tokens, all logits at once are 1.3 GB."""
    streams = lens_streams(model, output)[:, 0]  # [layers + 1, step, d_model]
    layers, steps, _ = streams.shape
    rows, taken = streams.flatten(0, 1), torch.tensor(target_ids, device=streams.device).repeat(layers)
    found = [
        _read(model.project(rows[part]).float(), taken[part])
        for part in blocks(len(rows), model.config.num_target_tokens)
    ]
    top_ids, top, chosen, ranks = (torch.cat(parts).view(layers, steps).cpu().numpy() for parts in zip(*found))
    return LogitLens(top_ids.astype(np.int32), top, chosen, ranks.astype(np.int32))


def _read(logits: Tensor, taken: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """logits [row, vocabulary], taken [row] -> the best ids, their probabilities, the taken ones', and their ranks."""
    normaliser = logits.logsumexp(-1)
    top, top_ids = logits.max(-1)
    chosen = logits.gather(-1, taken[:, None])  # [row, 1]
    return (
        top_ids,
        (top - normaliser).exp(),
        (chosen[:, 0] - normaliser).exp(),
        (logits > chosen).count_nonzero(-1) + 1,
    )

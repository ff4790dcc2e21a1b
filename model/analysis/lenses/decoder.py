"""What each decoder layer would predict if it were the last, read through a lens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.lenses.tuned import divergence
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import Side


@dataclass(frozen=True, eq=False)
class DecoderLens:
    """Row 0 reads the decoder's input, row l the residual stream after layer l; the last row is the model's own
    distribution. Each array is [layers + 1, step].

    top_ids               int32, the most probable next token
    top_probabilities     float32
    chosen_probabilities  float32, of the token that the step took in the end
    chosen_ranks          int32, of that token, from 1
    divergences           float32, how far from what the model says in the end: KL(model's own, row's), in nats
    """

    top_ids: np.ndarray
    top_probabilities: np.ndarray
    chosen_probabilities: np.ndarray
    chosen_ranks: np.ndarray
    divergences: np.ndarray


def streams_of(output: ForwardOutput, side: Side) -> Tensor:
    """The residual stream before a stack's first layer and after each, [layers + 1, batch, position, d_model]. output:
    recorded. ValueError if it is not."""
    records = output.layers(side)
    return torch.stack([records[0].before, *(record.after for record in records)])


@torch.inference_mode()
def decoder_lens(
    model: Transformer,
    output: ForwardOutput,
    target_ids: Sequence[int],
    lens: Callable[[Tensor], Tensor] = lambda streams: streams,
) -> DecoderLens:
    """A lens over a recorded pass of a batch of one; target_ids y1 .. yT, what its rows predict. lens: what it makes of
    the streams [layers + 1, step, d_model] (Lenses.of_decoder); without one it is the logit lens. Some steps at a time:
    of 12 layers, 100 steps and 256,000 tokens, all logits at once are 1.3 GB."""
    streams = model.decoder.norm(lens(streams_of(output, Side.DECODER)[:, 0]))
    taken = torch.tensor(target_ids, device=streams.device)
    found = [
        _read(model.project(streams[:, part]).float(), taken[part])
        for part in blocks(len(taken), len(streams) * model.config.num_target_tokens)
    ]
    return DecoderLens(*(torch.cat(parts, dim=1).cpu().numpy() for parts in zip(*found)))


def _read(logits: Tensor, taken: Tensor) -> tuple[Tensor, ...]:
    """logits [layers + 1, step, vocabulary], taken [step] -> what DecoderLens holds of these steps."""
    normaliser = logits.logsumexp(-1)
    top, top_ids = logits.max(-1)
    chosen = logits.gather(-1, taken[None, :, None].expand(len(logits), -1, 1))
    apart = divergence(logits[-1].log_softmax(-1), logits)
    return (
        top_ids.int(),
        (top - normaliser).exp(),
        (chosen[..., 0] - normaliser).exp(),
        ((logits > chosen).count_nonzero(-1) + 1).int(),
        apart.clamp(min=0),
    )

"""Read the decoder's residual streams through a lens: what each layer would predict if it were the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.lenses.tuned import divergence
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.places.registry import AFTER
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import Side, SubLayerName


@dataclass(frozen=True, eq=False)
class DecoderLens:
    """The prediction of each layer at each step; every array is [layers + 1, step].

    Row 0 reads the decoder's input, row l the residual stream after layer l; the last row is the model's own
    distribution.

    top_ids               int32, the most probable next token
    top_probabilities     float32
    chosen_probabilities  float32, of the token that was written
    chosen_ranks          int32, the rank of that token, from 1
    divergences           float32, KL(the model's own distribution, the row's), in nats
    """

    top_ids: np.ndarray
    top_probabilities: np.ndarray
    chosen_probabilities: np.ndarray
    chosen_ranks: np.ndarray
    divergences: np.ndarray


def stream_names(config: ModelConfig, side: Side) -> tuple[str, ...]:
    """Return the names of the places of a stack's residual stream: before the first layer and after each layer."""
    layers = config.num_encoder_layers if side is Side.ENCODER else config.num_decoder_layers
    ends = [f"{side.value}.{layer}.{AFTER[SubLayerName.FEED_FORWARD]}" for layer in range(layers)]
    return (f"{side.value}.0.{AFTER[None]}", *ends)


def streams_of(output: ForwardOutput, side: Side) -> Tensor:
    """Return the residual stream before a stack's first layer and after each, [layers + 1, batch, position, d_model].
    Raises ValueError if the pass was not recorded."""
    records = output.layers(side)
    return torch.stack([records[0].before, *(record.after for record in records)])


@torch.inference_mode()
def decoder_lens(
    model: Transformer,
    output: ForwardOutput,
    target_ids: Sequence[int],
    lens: Callable[[Tensor], Tensor] = lambda streams: streams,
) -> DecoderLens:
    """Apply a lens to a recorded pass of a batch of one.

    target_ids: y1 .. yT, which the rows of the decoder predict. lens: maps the streams [layers + 1, step, d_model]
    before the last norm (see Lenses.of_decoder); by default the logit lens.
    """
    streams = model.decoder.norm(lens(streams_of(output, Side.DECODER)[:, 0]))
    targets = torch.tensor(target_ids, device=streams.device)
    # In blocks of steps: with 12 layers, 100 steps and 256,000 tokens, all logits would take 1.3 GB.
    results = [
        _read(model.project(streams[:, part]).float(), targets[part])
        for part in blocks(len(targets), len(streams) * model.config.num_target_tokens)
    ]
    return DecoderLens(*(torch.cat(parts, dim=1).cpu().numpy() for parts in zip(*results)))


def _read(logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
    """Return the fields of DecoderLens for logits [layers + 1, step, vocabulary] and target ids [step]."""
    normaliser = logits.logsumexp(-1)
    top, top_ids = logits.max(-1)
    target_logits = logits.gather(-1, targets[None, :, None].expand(len(logits), -1, 1))
    return (
        top_ids.int(),
        (top - normaliser).exp(),
        (target_logits[..., 0] - normaliser).exp(),
        ((logits > target_logits).count_nonzero(-1) + 1).int(),
        divergence(logits[-1].log_softmax(-1), logits).clamp(min=0),
    )

"""The encoder's streams read in target words, and what the decoder would write of a stream before the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.lenses.decoder import streams_of
from attention_atlas.model.analysis.lenses.fitted import Lenses
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import with_given
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator

TOP = 10


@dataclass(frozen=True, eq=False)
class EncoderLens:
    """Row 0 reads the embeddings, row l the stream after encoder layer l. Each array is [layers + 1, source, TOP].

    ids     int32, the target pieces that this stream makes the decoder's last one point to most, the first most of all
    shares  float32, of each in a softmax over the vocabulary: how clearly, not how probably
    """

    ids: np.ndarray
    shares: np.ndarray


@torch.inference_mode()
def encoder_lens(model: Transformer, output: ForwardOutput, lenses: Lenses) -> EncoderLens:
    """The Jacobian lens over the encoder of a recorded pass of a batch of one."""
    streams = streams_of(output, Side.ENCODER)[:, 0]  # [layers + 1, source, d_model]
    return EncoderLens(*(part.cpu().numpy() for part in best(model, pointed(streams, lenses))))


def pointed(streams: Tensor, lenses: Lenses) -> Tensor:
    """J h of the encoder's streams [layers + 1, .., d_model]: of their shape."""
    return torch.einsum("l...d,led->l...e", streams, lenses.encoder.to(streams))


def best(model: Transformer, streams: Tensor, count: int = TOP) -> tuple[Tensor, Tensor]:
    """Streams of the decoder's basis [layers + 1, position, d_model] through the last norm and the output matrix: ids
    int32 and shares float32 [layers + 1, position, count]."""
    rows = model.decoder.norm(streams).flatten(0, 1)
    found = [
        model.project(rows[part]).float().softmax(-1).topk(count)
        for part in blocks(len(rows), model.config.num_target_tokens)
    ]
    shares, ids = (torch.cat(parts).unflatten(0, streams.shape[:2]) for parts in zip(*found))
    return ids.int(), shares


@torch.inference_mode()
def layer_translations(
    translator: Translator,
    source_ids: Sequence[int],
    direction: str | None = None,
    interventions: Interventions = NO_INTERVENTIONS,
) -> list[list[int]]:
    """Greedy translations, one with the stream of each encoder layer in place of the encoder's output, the embeddings'
    first (DecoderLens, Langedijk et al. 2024). The last is the translation itself. A Refusal for a network that is no
    Transformer."""
    check_transformer(translator.model)
    model = translator.model
    output = translator.inspect(source_ids, [translator.tokenizer.end_id], interventions=interventions)
    memories = model.encoder.norm(streams_of(output, Side.ENCODER)[:, 0])
    # One batch, a stream a row: as many steps as the longest of them takes, not as all take together.
    changed = translator.edit({"encoder.final": lambda x, at: memories})
    changed.changes = with_given(changed.changes, interventions)
    return changed.generate([source_ids] * len(memories), direction, batch_size=len(memories))

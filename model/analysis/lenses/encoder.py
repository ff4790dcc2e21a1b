"""Read the encoder's residual streams: as target words, or by decoding from each of them.

encoder_lens() applies the Jacobian lens, layer_translations() the DecoderLens; measure_hits() counts how often the
Jacobian lens finds words of the reference translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.lenses.decoder import stream_names, streams_of
from attention_atlas.model.analysis.lenses.storage import HitRates, Lenses
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import add_changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

TOP = 10
COMMON = 300  # ids below are symbols, endings and the most common words, which prove nothing
BATCH = 32


@dataclass(frozen=True, eq=False)
class EncoderLens:
    """The target pieces that each encoder stream points to; each array is [layers + 1, source, TOP].

    Row 0 reads the embeddings, row l the stream after encoder layer l.

    ids     int32, the target pieces with the largest logits, best first
    shares  float32, of each in a softmax over the vocabulary; not a probability of being written
    """

    ids: np.ndarray
    shares: np.ndarray


@torch.inference_mode()
def encoder_lens(model: Transformer, output: ForwardOutput, lenses: Lenses) -> EncoderLens:
    """Apply the Jacobian lens to the encoder of a recorded pass of a batch of one."""
    streams = streams_of(output, Side.ENCODER)[:, 0]  # [layers + 1, source, d_model]
    return EncoderLens(*(part.cpu().numpy() for part in top_pieces(model, apply_jacobian(streams, lenses))))


def apply_jacobian(streams: Tensor, lenses: Lenses) -> Tensor:
    """Return J h for the encoder's streams [layers + 1, .., d_model]."""
    return torch.einsum("l...d,led->l...e", streams, lenses.encoder.to(streams))


def top_pieces(model: Transformer, streams: Tensor, count: int = TOP) -> tuple[Tensor, Tensor]:
    """Read streams in the decoder's basis [layers + 1, position, d_model] through the last norm and the output matrix:
    ids int32 and shares float32 [layers + 1, position, count]."""
    rows = model.decoder.norm(streams).flatten(0, 1)
    results = [
        model.project(rows[part]).float().softmax(-1).topk(count)
        for part in blocks(len(rows), model.config.num_target_tokens)
    ]
    shares, ids = (torch.cat(parts).unflatten(0, streams.shape[:2]) for parts in zip(*results))
    return ids.int(), shares


@torch.inference_mode()
def measure_hits(translator: Translator, lenses: Lenses, pairs: Sequence[tuple[str, str]], direction: str) -> HitRates:
    """Measure how often the Jacobian lens finds a word of the reference, and of the next pair's reference for
    comparison. pairs: (source, reference). Raises ValueError for fewer than two pairs that fit the model."""
    pairs = [(s, t) for s, t in pairs if s.strip() and t.strip() and translator.fits(s, direction)]
    if len(pairs) < 2:
        raise ValueError("this takes two sentences at the least")
    names, tokenizer = stream_names(translator.config, Side.ENCODER), translator.tokenizer
    references = [{piece for piece in tokenizer.encode(target) if piece >= COMMON} for _, target in pairs]
    hits, num_tokens, first = torch.zeros(2, len(names)), 0, 0
    for batch in batched(pairs, BATCH):
        run = translator.run([s for s, _ in batch], [t for _, t in batch], names=names, direction=direction)
        for row, (source, _) in enumerate(run.tokens):
            words = [i for i, token in enumerate(source) if not is_symbol(token)]
            streams = torch.stack([run[name][row, words] for name in names])
            ids, _ = top_pieces(translator.model, apply_jacobian(streams, lenses))
            for shift in (0, 1):
                reference = references[(first + row + shift) % len(pairs)]
                is_hit = [[bool(reference & {*top}) for top in layer] for layer in ids.tolist()]
                hits[shift] += torch.tensor(is_hit).sum(1)
            num_tokens += len(words)
        first += len(batch)
    own, other = (tuple(round(share, 4) for share in row) for row in (hits / num_tokens).tolist())
    return HitRates(len(pairs), own, other)


@torch.inference_mode()
def layer_translations(
    translator: Translator,
    source_ids: Sequence[int],
    direction: str | None = None,
    interventions: Interventions = NO_INTERVENTIONS,
) -> list[list[int]]:
    """Translate greedily from each encoder stream in place of the encoder's output, the embeddings first (DecoderLens,
    Langedijk et al. 2024). The last translation is the model's own. Raises a Refusal for a network that is not a
    Transformer."""
    check_transformer(translator.model)
    model = translator.model
    output = translator.inspect(source_ids, [translator.tokenizer.end_id], interventions=interventions)
    memories = model.encoder.norm(streams_of(output, Side.ENCODER)[:, 0])
    # All streams in one batch, so that the number of steps is that of the longest translation.
    changed = translator.edit({"encoder.final": lambda x, at: memories})
    changed.changes = add_changes(changed.changes, interventions)
    return changed.generate([source_ids] * len(memories), direction, batch_size=len(memories))

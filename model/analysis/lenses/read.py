"""Read residual streams through lenses: as next tokens, as target words, or by decoding from each of them.

decoder_lens() says what each layer of the decoder would predict if it were the last. encoder_lens() applies the
Jacobian lens to the encoder, layer_translations() the DecoderLens; measure_hits() counts how often the Jacobian lens
finds words of the reference translation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.lenses.storage import HitRates, Lenses
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.places.registry import AFTER
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import add_changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import Side, SubLayerName
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

TOP = 10
COMMON = 300  # ids below are symbols, endings and the most common words, which prove nothing
BATCH = 32


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


def divergence(log_probabilities: Tensor, logits: Tensor) -> Tensor:
    """Return KL(exp(log_probabilities), softmax(logits)) of each row, in nats; both [.., row, vocabulary]."""
    return (log_probabilities.exp() * (log_probabilities - logits.log_softmax(-1))).sum(-1)


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

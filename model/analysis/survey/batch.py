"""One pass over a batch of sentences: attention maps, gradients of the gates, and ablations of single heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.means import Means
from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.blocks import log_probabilities
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask, pad, padding_mask
from attention_atlas.model.nets.records import AttentionRecord, ForwardOutput
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.translator import Translator

ENCODER, DECODER = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF


@dataclass(frozen=True, eq=False)
class Item:
    """One sentence of a survey.

    number      its position in the corpus, which determines its bootstrap resamples
    target_ids  y1 .. yT with `</s>`; empty: use the model's own translation
    line        its line among the project's own sentences, if it is one of them
    counts      False for a sentence outside the corpus that only serves as an example
    """

    number: int
    text: str
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    line: int | None = None
    counts: bool = True


@dataclass(frozen=True, eq=False)
class Pass:
    """A teacher-forced pass of a batch.

    source_ids, decoder_ids, target_ids  int64 [batch, length], padded
    source_lengths, target_lengths       [batch]
    output                               recorded, without gradients
    slopes                               kind -> float64 [batch, layers, heads]: the gradient of each sentence's mean
                                         log-probability per token by the gates of the heads; may be empty
    """

    source_ids: Tensor
    decoder_ids: Tensor
    target_ids: Tensor
    source_lengths: tuple[int, ...]
    target_lengths: tuple[int, ...]
    output: ForwardOutput
    slopes: dict[AttentionKind, np.ndarray]

    def axes(self, kind: AttentionKind, row: int) -> tuple[int, int]:
        """Return the numbers of queries and keys of a sentence."""
        source, target = self.source_lengths[row], self.target_lengths[row]
        return (
            source if kind is AttentionKind.ENCODER_SELF else target,
            target if kind is AttentionKind.DECODER_SELF else source,
        )


def run(
    translator: Translator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, slopes: bool = True
) -> Pass:
    """Run one teacher-forced pass. slopes: also take the gradients of the gates."""
    model, begin = translator.model, translator.tokenizer.begin_id
    source_ids, decoder_ids, target_ids = (
        pad(rows, model.config.pad_id).to(translator.device)
        for rows in (sources, [[begin, *ids[:-1]] for ids in targets], targets)
    )
    lengths = tuple(map(len, sources)), tuple(map(len, targets))
    gradients = ()
    with torch.inference_mode(False), torch.set_grad_enabled(slopes):
        gates = {
            kind: source_ids.new_ones(len(sources), layers, model.num_heads[kind], dtype=torch.float32).requires_grad_()
            for kind, layers in (model.num_layers.items() if slopes else ())
        }
        output = model(source_ids, decoder_ids, interventions=Sweep(gates=gates), record=True)
        if slopes:
            means = mean_log_probability(model, output.hidden, target_ids, lengths[1])
            gradients = torch.autograd.grad(means.sum(), list(gates.values()))
    return Pass(
        source_ids,
        decoder_ids,
        target_ids,
        *lengths,
        output,
        {kind: gradient.cpu().double().numpy() for kind, gradient in zip(gates, gradients)},
    )


def mean_log_probability(model: Transformer, hidden: Tensor, target_ids: Tensor, lengths: Sequence[int]) -> Tensor:
    """Return each sentence's mean natural log-probability per token [batch], of the decoder's output hidden [batch,
    target, d_model]. Differentiable once."""
    counts = torch.tensor(lengths, device=hidden.device)
    is_token = torch.arange(target_ids.shape[1], device=hidden.device) < counts[:, None]
    values = log_probabilities(model.project, hidden[is_token], target_ids[is_token], model.config.num_target_tokens)
    return torch.zeros(is_token.shape, device=hidden.device).masked_scatter(is_token, values).sum(-1) / counts


@torch.no_grad()
def value_lengths(attention: MultiHeadAttention, record: AttentionRecord) -> Tensor:
    """Return |v W_O|, the length of each head's output for each key: [batch, heads, key] (Kobayashi et al. 2020,
    section 3.1). Computed as v (W_O W_O^T) v^T, because the vectors v W_O take d_model / d_head times the memory."""
    by_head = attention.output.weight.unflatten(1, (attention.num_heads, -1)).permute(1, 2, 0)
    gram = by_head @ by_head.transpose(1, 2)  # of by_head [heads, d_head, d_model]
    return ((record.values @ gram) * record.values).sum(-1).clamp_min(0).sqrt()


@torch.no_grad()
def maps_and_lengths(model: Transformer, output: ForwardOutput, kind: AttentionKind) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights [batch, layers, heads, query, key] and the value lengths [batch, layers, heads, key] of a
    recorded pass."""
    records = [layer.attention(kind) for layer in output.records(kind)]
    lengths = [value_lengths(model.attention(kind, index), record) for index, record in enumerate(records)]
    return tuple(torch.stack(parts, dim=1).cpu().numpy() for parts in ([r.weights.detach() for r in records], lengths))


def similarity(weights: np.ndarray, allowed: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Return 1 minus the mean Jensen-Shannon divergence, in bits, of the rows of each two maps: [maps, maps or others].

    weights: maps [maps, query, key]; others: further maps [others, query, key] to compare them with, by default
    themselves. Rows with a single allowed key are left out. 1: the same rows; 0: no key in common.
    """
    rows = allowed.sum(1) > 1
    maps = weights[:, rows].astype(np.float64)
    second = maps if others is None else others[:, rows].astype(np.float64)
    if not rows.any():
        return np.ones((len(maps), len(second)))

    def entropy(rows: np.ndarray) -> np.ndarray:
        return -(rows * np.log2(rows, out=np.zeros_like(rows), where=rows > 0)).sum(-1).mean(-1)

    first_entropy, result = entropy(maps), np.eye(len(maps), len(second))
    second_entropy = first_entropy if others is None else entropy(second)
    for i in range(len(maps)):
        start = i + 1 if others is None else 0  # among themselves, each pair once
        if start < len(second):
            mixed = entropy((maps[i] + second[start:]) / 2)
            result[i, start:] = 1 - (mixed - (first_entropy[i] + second_entropy[start:]) / 2)
        if others is None:
            result[start:, i] = result[i, start:]
    return result


@torch.inference_mode()
def ablation_losses(model: Transformer, batch: Pass, means: Means) -> dict[AttentionKind, np.ndarray]:
    """Return the loss in mean log-probability per token when a head is replaced by its mean output: kind -> float64
    [batch, layers, heads]. Each layer starts from its recorded input."""
    plain = mean_log_probability(model, batch.output.hidden, batch.target_ids, batch.target_lengths)
    padding = padding_mask(batch.source_ids, model.config.pad_id)

    def repeat(kind: AttentionKind, x: Tensor) -> Tensor:
        """Repeat each sentence once for each head."""
        return x.detach().repeat_interleave(model.num_heads[kind], dim=0)

    def without_one_head(kind: AttentionKind, layer: int, length: int) -> Sweep:
        """Return the sweep whose row r of a sentence lacks head r of the layer."""
        layers, heads = model.num_layers[kind], model.num_heads[kind]
        gates = model.embedding.weight.new_ones(heads, layers, heads)
        gates[:, layer] -= torch.eye(heads, device=gates.device)
        mean_outputs = torch.from_numpy(means.by_position(kind, length)[None]).to(gates)
        return Sweep(gates={kind: gates.repeat(len(plain), 1, 1)}, replacements={kind: mean_outputs})

    def loss(kind: AttentionKind, hidden: Tensor) -> np.ndarray:
        heads = model.num_heads[kind]
        lengths = [length for length in batch.target_lengths for _ in range(heads)]
        ablated = mean_log_probability(model, hidden, repeat(kind, batch.target_ids), lengths)
        return (plain.repeat_interleave(heads) - ablated).cpu().double().reshape(-1, heads).numpy()

    losses = {kind: [] for kind in model.num_layers}
    rows = repeat(ENCODER, padding)
    for layer, record in enumerate(batch.output.layers(Side.ENCODER)):
        sweep = without_one_head(ENCODER, layer, batch.source_ids.shape[1])
        memory, _ = model.encoder(repeat(ENCODER, record.before), rows, interventions=sweep, start=layer)
        source = SourceMemory(memory, rows, padded_lengths=rows.sum(-1).flatten())
        hidden, _ = model.decode(repeat(ENCODER, batch.decoder_ids), source)
        losses[ENCODER].append(loss(ENCODER, hidden))
    source = SourceMemory(repeat(DECODER, batch.output.memory), repeat(DECODER, padding))
    length = batch.decoder_ids.shape[1]
    causal = causal_mask(length, device=padding.device)
    for layer, record in enumerate(batch.output.layers(Side.DECODER)):
        for kind in (DECODER, AttentionKind.CROSS):
            sweep = without_one_head(kind, layer, length)
            hidden, _ = model.decoder(repeat(kind, record.before), causal, source, interventions=sweep, start=layer)
            losses[kind].append(loss(kind, hidden))
    return {kind: np.stack(layers, axis=1) for kind, layers in losses.items()}

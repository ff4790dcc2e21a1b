"""One pass over a batch of sentences: every head's maps, what its values weigh, and what its gate is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.blocks import log_probabilities
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.records import AttentionRecord, ForwardOutput
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator


@dataclass(frozen=True, eq=False)
class Item:
    """One sentence of a survey. number: in the order of the corpus, from which its resamples are drawn. target_ids: y1
    .. yT with `</s>`; empty: the model's own translation is taken. line: its place among the project's own sentences,
    where it is one of those. counts: whether it belongs to the corpus; a sentence may be there as an example alone."""

    number: int
    text: str
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    line: int | None = None
    counts: bool = True


@dataclass(frozen=True, eq=False)
class Pass:
    """source_ids, decoder_ids, target_ids int64 [batch, length], padded; source_lengths, target_lengths [batch];
    output: recorded, without gradients. slopes: kind -> float64 [batch, layers, heads], of each sentence's mean
    log-probability a token by the gates, or empty."""

    source_ids: Tensor
    decoder_ids: Tensor
    target_ids: Tensor
    source_lengths: tuple[int, ...]
    target_lengths: tuple[int, ...]
    output: ForwardOutput
    slopes: dict[AttentionKind, np.ndarray]

    def axes(self, kind: AttentionKind, row: int) -> tuple[int, int]:
        """How many queries and keys a sentence has."""
        source, target = self.source_lengths[row], self.target_lengths[row]
        return (
            source if kind is AttentionKind.ENCODER_SELF else target,
            target if kind is AttentionKind.DECODER_SELF else source,
        )


def run(
    translator: Translator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, slopes: bool = True
) -> Pass:
    """One teacher-forced pass, with gradients of the gates where slopes are asked for."""
    model, begin = translator.model, translator.tokenizer.begin_id
    source_ids, decoder_ids, target_ids = (
        pad([list(ids) for ids in rows], model.config.pad_id).to(translator.device)
        for rows in (sources, [[begin, *ids[:-1]] for ids in targets], targets)
    )
    lengths = tuple(map(len, sources)), tuple(map(len, targets))
    gates = (
        {
            kind: torch.ones(len(sources), layers, model.num_heads[kind], device=translator.device)
            for kind, layers in model.num_layers.items()
        }
        if slopes
        else {}
    )
    with torch.inference_mode(False), torch.set_grad_enabled(slopes):
        for gate in gates.values():
            gate.requires_grad_()
        output = model(source_ids, decoder_ids, interventions=Sweep(gates=gates), record=True)
        found = ()
        if slopes:
            means = mean_log_probability(model, output.hidden, target_ids, lengths[1])
            found = torch.autograd.grad(means.sum(), list(gates.values()))
    return Pass(
        source_ids,
        decoder_ids,
        target_ids,
        *lengths,
        output,
        {kind: gradient.cpu().double().numpy() for kind, gradient in zip(gates, found)},
    )


def mean_log_probability(model: Transformer, hidden: Tensor, target_ids: Tensor, lengths: Sequence[int]) -> Tensor:
    """A sentence's mean natural log-probability a token [batch], of the decoder's output hidden [batch, target,
    d_model]; differentiable once."""
    counts = torch.tensor(lengths, device=hidden.device)
    real = torch.arange(target_ids.shape[1], device=hidden.device) < counts[:, None]
    found = log_probabilities(model.project, hidden[real], target_ids[real], model.config.num_target_tokens)
    return torch.zeros(real.shape, device=hidden.device).masked_scatter(real, found).sum(-1) / counts


@torch.no_grad()
def value_lengths(attention: MultiHeadAttention, record: AttentionRecord) -> Tensor:
    """The length of what each head would write of each key, |v W_O|: [batch, heads, key] (Kobayashi et al. 2020,
    section 3.1). By v (W_O W_O^T) v^T: the vectors themselves are d_model / d_head times as many numbers."""
    by_head = attention.output.weight.unflatten(1, (attention.num_heads, -1)).permute(1, 2, 0)
    # by_head [heads, d_head, d_model]
    gram = by_head @ by_head.transpose(1, 2)
    return ((record.values @ gram) * record.values).sum(-1).clamp_min(0).sqrt()


@torch.no_grad()
def maps_and_lengths(model: Transformer, output: ForwardOutput, kind: AttentionKind) -> tuple[np.ndarray, np.ndarray]:
    """Weights [batch, layers, heads, query, key] and lengths of values [batch, layers, heads, key] of a recorded
    pass."""
    records = [layer.attention(kind) for layer in output.records(kind)]
    lengths = [value_lengths(model.attention(kind, index), record) for index, record in enumerate(records)]
    return tuple(torch.stack(parts, dim=1).cpu().numpy() for parts in ([r.weights.detach() for r in records], lengths))


def similarity(weights: np.ndarray, allowed: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """1 less the mean Jensen-Shannon divergence, in bits, of the rows of every two of maps [maps, query, key], or of
    each of them and each of the others [others, query, key]: [maps, maps or others]. 1: the same rows; 0: no key in
    common."""
    rows = allowed.sum(1) > 1
    chosen = weights[:, rows].astype(np.float64)
    beside = chosen if others is None else others[:, rows].astype(np.float64)
    if not rows.any():
        return np.ones((len(chosen), len(beside)))

    def entropy(rows: np.ndarray) -> np.ndarray:
        return -(rows * np.log2(rows, out=np.zeros_like(rows), where=rows > 0)).sum(-1).mean(-1)

    own, found = entropy(chosen), np.eye(len(chosen), len(beside))
    if others is None:  # each two once, and a map with itself never
        for index in range(len(chosen) - 1):
            between = entropy((chosen[index] + chosen[index + 1 :]) / 2) - (own[index] + own[index + 1 :]) / 2
            found[index, index + 1 :] = found[index + 1 :, index] = 1 - between
        return found
    theirs = entropy(beside)
    for index in range(len(chosen)):
        found[index] = 1 - (entropy((chosen[index] + beside) / 2) - (own[index] + theirs) / 2)
    return found

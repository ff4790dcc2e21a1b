"""Attention computed step by step in float64: Q, K and V, every stage of a query, all scores, and the joined heads.

Everything is computed again from what the model read and recorded, and compared with what it recorded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.model.analysis.head_loop import find_attention_input
from attention_atlas.model.analysis.why.contributions import applied_weights
from attention_atlas.model.nets.attention import edges_mask
from attention_atlas.model.nets.records import AttentionRecord, ForwardOutput
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator


@dataclass(frozen=True, eq=False)
class Dissection:
    """The stages of softmax(q K^T / sqrt(d_k)) V for one query of one head, over all keys, in float64 unless stated.

    With relative positions they are those of softmax(q K^T + bias) V.

    query [d_k]; keys, values [key, d_k]
    products     [key, d_k]   q * k, element by element
    dots         [key]        their sums
    divided                   whether the dots are divided by sqrt(d_k)
    bias         [key]        what relative positions add to the dots; None if there are none
    scaled       [key]        the scores: dots / sqrt(d_k), dots + bias, or both
    allowed      bool [key]   the keys that the mask and the interventions allow
    heard        bool [key]   the keys whose value is used: an intervention may remove a weight after the softmax
    masked       [key]        scaled, -inf where not allowed
    weights      [key]        softmax(masked)
    recorded     float32 [key]  the weights that the model computed
    unscaled_weights [key]    softmax without the bias, or without the division if there is no bias
    """

    query: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    products: np.ndarray
    dots: np.ndarray
    scaled: np.ndarray
    allowed: np.ndarray
    heard: np.ndarray
    masked: np.ndarray
    weights: np.ndarray
    recorded: np.ndarray
    unscaled_weights: np.ndarray
    divided: bool = True
    bias: np.ndarray | None = None

    @property
    def output(self) -> np.ndarray:
        """The sum of weight * value over the keys that are heard, [d_k]: the head's output at this position."""
        return (self.weights * self.heard) @ self.values

    @property
    def error(self) -> float:
        """The largest difference between the weights and the recorded ones."""
        return float(np.abs(self.weights - self.recorded).max())


def dissect(output: ForwardOutput, kind: AttentionKind, layer: int, head: int, *, query: int) -> Dissection:
    """Return the stages of one query position of one head (Vaswani et al. 2017, equation 1).

    output: of Translator.inspect, a batch of one. Raises ValueError if layer, head or query do not exist.
    """
    record = output.attention(kind, layer)
    _, heads, queries, keys = record.weights.shape
    if not 0 <= head < heads:
        raise ValueError(f"heads are 0 to {heads - 1}, found {head}")
    if not 0 <= query < queries:
        raise ValueError(f"query positions are 0 to {queries - 1}, found {query}")
    q, k, v = (in_numpy(part[0, head]) for part in (record.queries, record.keys, record.values))
    q, allowed, bias = q[query], open_cells(output, kind, layer)[head, query], bias_of(record, head)
    heard = edges_mask(record.edit.zeroed, (heads, queries, keys))[head, query].numpy()
    bias = None if bias is None else bias[query]
    products = k * q
    scores, masked, weights = (part[0] for part in attention(q[None], k, allowed, scaled=record.scaled, bias=bias))
    return Dissection(
        query=q,
        keys=k,
        values=v,
        products=products,
        dots=products.sum(-1),
        scaled=scores,
        allowed=allowed,
        heard=heard,
        masked=masked,
        weights=weights,
        recorded=record.weights[0, head, query].float().cpu().numpy(),
        unscaled_weights=attention(q[None], k, allowed, scaled=record.scaled and bias is not None)[2][0],
        divided=record.scaled,
        bias=bias,
    )


def bias_of(record: AttentionRecord, head: int) -> np.ndarray | None:
    """Return the bias that relative positions add to one head's scores, float64 [query, key]; None if there is none."""
    if record.bias is not None:
        return in_numpy(record.bias[0, head])
    return None if record.scaled else np.zeros(record.weights.shape[2:])


def open_cells(output: ForwardOutput, kind: AttentionKind, layer: int) -> np.ndarray:
    """Return the cells that a layer's mask and the interventions allow, bool [heads, query, key].

    The model masks the decoder's future, interventions the edges that they cut; a single sentence has no padding.
    """
    record = output.attention(kind, layer)
    cells = edges_mask(record.edit.cut, record.weights.shape[1:]).numpy()
    return np.tril(cells) if kind is AttentionKind.DECODER_SELF else cells


def attention(
    queries: np.ndarray,
    keys: np.ndarray,
    allowed: np.ndarray | bool = True,
    *,
    scaled: bool = True,
    bias: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, masked scores and weights [query, key] of queries [query, d_k] and keys [key, d_k] (equation 1).

    allowed, bias: bool and float [query, key]; the bias is added to the scores. scaled: whether they are divided by
    sqrt(d_k).
    """
    scores = queries @ keys.T / (math.sqrt(queries.shape[-1]) if scaled else 1.0) + (0.0 if bias is None else bias)
    masked = np.where(allowed, scores, -np.inf)
    return scores, masked, softmax(masked)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return exp(s) / sum exp(s) along the last axis; -inf becomes 0. At least one score must be finite."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def in_numpy(tensor: Tensor) -> np.ndarray:
    """Return a tensor as a float64 array."""
    return tensor.detach().cpu().double().numpy()


def dropped(weights: np.ndarray, rate: float, *, seed: int = 0) -> np.ndarray:
    """Return one draw of the weights under dropout, as in training (Srivastava et al. 2014).

    Each weight becomes 0 with probability `rate`, and the others are divided by 1 - rate, so that the mean of many
    draws is the weights. rate: at least 0 and below 1.
    """
    assert 0.0 <= rate < 1.0, rate
    mask = np.random.default_rng(seed).random(weights.shape) >= rate
    return weights * mask / (1.0 - rate)


@dataclass(frozen=True, eq=False)
class Projection:
    """One of Q, K and V: x W + b, float64. width: of all heads side by side, in most models d_model.

    read       [length, d_model]       x, the input stream
    weight     [d_model, width]        W; head i has columns i d_k .. (i + 1) d_k - 1
    bias       [width]                 zeros where the model has none
    projected  [length, width]         x W + b
    heads      [heads, length, d_k]    the same numbers, split into heads
    error      the largest difference from what the model recorded
    """

    read: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    projected: np.ndarray
    heads: np.ndarray
    error: float


@torch.inference_mode()
def projections(
    translator: Translator, output: ForwardOutput, kind: AttentionKind, layer: int
) -> tuple[Projection, Projection, Projection]:
    """Return Q, K and V of one attention (Vaswani et al. 2017, section 3.2.2).

    output: of Translator.inspect, a batch of one. Raises ValueError if the layer does not exist.
    """
    inputs, record = find_attention_input(translator, output, kind, layer), output.attention(kind, layer)
    module, parts = inputs.module, []
    for weight, bias, stream, recorded in zip(
        module.projection.weight.chunk(3),
        _bias(module.projection).chunk(3),
        (inputs.queries, inputs.memory, inputs.memory),
        (record.queries, record.keys, record.values),
    ):
        x, w, b, expected = (in_numpy(tensor) for tensor in (stream[0], weight.T, bias, recorded[0]))
        projected = x @ w + b
        heads = projected.reshape(len(x), module.num_heads, -1).transpose(1, 0, 2)  # [heads, length, d_k]
        parts.append(Projection(x, w, b, projected, heads, float(np.abs(heads - expected).max())))
    return parts[0], parts[1], parts[2]


def _bias(linear: nn.Linear) -> Tensor:
    return linear.weight.new_zeros(len(linear.weight)) if linear.bias is None else linear.bias


@dataclass(frozen=True, eq=False)
class JoinedHeads:
    """The heads' outputs at one query, and the vector that W_O makes of them; float64.

    contexts      [heads, d_k]      softmax(..) V of each head; 0 for a head that is switched off
    head_outputs  [heads, d_model]  each context times its own rows of W_O
    bias          [d_model]         the bias of W_O
    output        [d_model]         Concat(..) W_O + b, the sum of head_outputs and bias
    recorded      [d_model]         what the model added to its residual stream
    """

    contexts: np.ndarray
    head_outputs: np.ndarray
    bias: np.ndarray
    output: np.ndarray
    recorded: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """The share of each head, and last of the bias, in the output's squared length: (part . output) / |output|^2,
        [heads + 1]. They sum to 1; a part that points against the output has a negative share."""
        parts = np.vstack((self.head_outputs, self.bias))
        length = float(self.output @ self.output)
        return parts @ self.output / length if length else np.zeros(len(parts))

    @property
    def error(self) -> float:
        """The largest difference of the output from the recorded vector."""
        return float(np.abs(self.output - self.recorded).max())


@torch.inference_mode()
def join_heads(
    translator: Translator, output: ForwardOutput, kind: AttentionKind, layer: int, *, query: int
) -> JoinedHeads:
    """Join the heads at one query position (section 3.2.2). Raises ValueError if the layer or the query does not
    exist."""
    module, record = translator.model.attention(kind, layer), output.layer(kind, layer)
    added = in_numpy(record.sublayer(kind.sublayer).added[0])  # [query, d_model]
    if not 0 <= query < len(added):
        raise ValueError(f"query positions are 0 to {len(added) - 1}, found {query}")
    attended = record.attention(kind)
    weights, values = in_numpy(applied_weights(attended)[0, :, query]), in_numpy(attended.values[0])
    contexts = np.einsum("hk,hkd->hd", weights, values)
    by_head = in_numpy(module.output.weight.T).reshape(*contexts.shape, -1)  # [heads, d_k, d_model]
    outputs, bias = np.einsum("hd,hdm->hm", contexts, by_head), in_numpy(_bias(module.output))
    return JoinedHeads(contexts, outputs, bias, outputs.sum(0) + bias, added[query])


@torch.inference_mode()
def head_lengths(translator: Translator, output: ForwardOutput, kind: AttentionKind, layer: int) -> np.ndarray:
    """Return the length of what each head adds through its own rows of W_O, float32 [heads, query]."""
    record, matrix = output.attention(kind, layer), translator.model.attention(kind, layer).output.weight
    contexts = (applied_weights(record).float() @ record.values.float())[0]  # [heads, query, d_k]
    by_head = matrix.float().T.reshape(len(contexts), contexts.shape[-1], -1)  # [heads, d_k, d_model]
    return (contexts @ by_head).norm(dim=-1).cpu().numpy()


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """The scores of every query and key of one head, float64 [query, key].

    scaled   Q K^T / sqrt(d_k), or with relative positions Q K^T + bias
    masked   scaled, -inf where the mask closes
    weights  the softmax of masked
    error    the largest difference of the weights from the recorded ones
    bias     what relative positions add
    """

    scaled: np.ndarray
    masked: np.ndarray
    weights: np.ndarray
    error: float
    bias: np.ndarray | None = None


def score_matrix(output: ForwardOutput, kind: AttentionKind, layer: int, head: int) -> ScoreMatrix:
    """Compute the scores and weights of one head (Vaswani et al. 2017, equation 1)."""
    record = output.attention(kind, layer)
    queries, keys, recorded = (in_numpy(x[0, head]) for x in (record.queries, record.keys, record.weights))
    allowed, bias = open_cells(output, kind, layer)[head], bias_of(record, head)
    scaled, masked, weights = attention(queries, keys, allowed, scaled=record.scaled, bias=bias)
    return ScoreMatrix(scaled, masked, weights, float(np.abs(weights - recorded).max()), bias)

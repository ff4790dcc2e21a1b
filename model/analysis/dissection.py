"""Every stage of one query's attention, softmax(q K^T / sqrt(d_k)) V, as numbers.

With relative positions it is softmax(q K^T + bias) V. The queries, keys and values are those that the model recorded;
the stages are computed again in float64 and compared with the recorded weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.nets.attention import edges_mask
from attention_atlas.model.nets.records import AttentionRecord, ForwardOutput
from attention_atlas.model.trace.kinds import AttentionKind


@dataclass(frozen=True, eq=False)
class Dissection:
    """The stages for one query of one head, over all keys; float64 unless stated otherwise.

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


def in_numpy(tensor: torch.Tensor) -> np.ndarray:
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

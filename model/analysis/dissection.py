"""One query of one attention taken apart: every stage of softmax(q K^T / sqrt(d_k)) V, as numbers; of a network with
relative positions, of softmax(q K^T + bias) V.

The inputs are those the model used (a LayerRecord's queries, keys and values); the stages are computed again here, in
float64, and compared with the weights the model recorded.
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
    """The stages for one query of one head, over all keys in one order. float64 unless said otherwise.

    query [d_k]; keys, values [key, d_k]
    products     [key, d_k]   q * k, element by element
    dots         [key]        their sums
    divided                   whether the dots are divided by sqrt(d_k)
    bias         [key]        what relative positions add then; None where they are divided and nothing is added
    scaled       [key]        the scores: dots / sqrt(d_k), dots + bias, or both
    allowed      bool [key]   what the mask and the interventions let through
    heard        bool [key]   of which keys the value is heard: an intervention may take a weight away after the softmax
    masked       [key]        scaled, -inf where not allowed
    weights      [key]        softmax(masked)
    contributions [key, d_k]  weight * value of what is heard
    output       [d_k]        their sum: what this head says at this position
    recorded     float32 [key]  the weights the model itself computed
    unscaled_weights [key]    softmax without the bias, or where there is none without the division
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
    contributions: np.ndarray
    output: np.ndarray
    recorded: np.ndarray
    unscaled_weights: np.ndarray
    divided: bool = True
    bias: np.ndarray | None = None

    @property
    def error(self) -> float:
        """The largest difference from the model's own weights."""
        return float(np.abs(self.weights - self.recorded).max())


def dissect(output: ForwardOutput, kind: AttentionKind, layer: int, head: int, *, query: int) -> Dissection:
    """Take one query position of one head apart. output: Translator.inspect's, a batch of one.

    ValueError if layer, head or query do not exist.
    """
    record = output.attention(kind, layer)
    _, heads, queries, keys = record.weights.shape
    if not 0 <= head < heads:
        raise ValueError(f"heads are 0 to {heads - 1}, found {head}")
    if not 0 <= query < queries:
        raise ValueError(f"query positions are 0 to {queries - 1}, found {query}")
    heard = edges_mask(record.edit.zeroed, (heads, queries, keys))[head, query].numpy()
    return stages(
        in_numpy(record.queries[0, head, query]),
        in_numpy(record.keys[0, head]),
        in_numpy(record.values[0, head]),
        open_cells(output, kind, layer)[head, query],
        heard,
        recorded=record.weights[0, head, query].float().cpu().numpy(),
        scaled=record.scaled,
        bias=None if (bias := bias_of(record, head)) is None else bias[query],
    )


def stages(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    allowed: np.ndarray,
    heard: np.ndarray | None = None,
    *,
    recorded: np.ndarray,
    scaled: bool = True,
    bias: np.ndarray | None = None,
) -> Dissection:
    """Every stage from q [d_k], K and V [key, d_k] and the mask's row [key] (Vaswani et al. 2017, equation 1).
    Eight parameters: the equation's four, what an intervention leaves of it, what it is compared with, and what
    relative positions do in the division's place."""
    heard = np.ones(len(keys), bool) if heard is None else heard
    products = keys * query
    scores, masked, weights = (part[0] for part in attention(query[None], keys, allowed, scaled=scaled, bias=bias))
    contributions = (weights * heard)[:, None] * values
    return Dissection(
        query=query,
        keys=keys,
        values=values,
        products=products,
        dots=products.sum(-1),
        scaled=scores,
        allowed=allowed,
        heard=heard,
        masked=masked,
        weights=weights,
        contributions=contributions,
        output=contributions.sum(0),
        recorded=recorded,
        unscaled_weights=attention(query[None], keys, allowed, scaled=scaled and bias is not None)[2][0],
        divided=scaled,
        bias=bias,
    )


def bias_of(record: AttentionRecord, head: int) -> np.ndarray | None:
    """What relative positions add to the scores of one head, float64 [query, key]; None where they add nothing to
    any."""
    if record.bias is not None:
        return in_numpy(record.bias[0, head])
    return None if record.scaled else np.zeros(record.weights.shape[2:])


def open_cells(output: ForwardOutput, kind: AttentionKind, layer: int) -> np.ndarray:
    """What a layer's mask and the interventions let through, bool [heads, query, key]: the model closes the decoder's
    future, an intervention the edges that it cuts; nothing of a sentence by itself is padded."""
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
    """Scores, masked scores and weights [query, key] of queries [query, d_k] and keys [key, d_k] (equation 1). scaled:
    by 1 / sqrt(d_k). allowed: bool [query, key]. bias: what is added to the scores [query, key]."""
    scores = queries @ keys.T / (math.sqrt(queries.shape[-1]) if scaled else 1.0) + (0.0 if bias is None else bias)
    masked = np.where(allowed, scores, -np.inf)
    return scores, masked, softmax(masked)


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(s) / sum exp(s) along the last axis; -inf becomes 0. At least one score must be finite."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def in_numpy(tensor: torch.Tensor) -> np.ndarray:
    """float64, on the CPU."""
    return tensor.detach().cpu().double().numpy()


def dropped(weights: np.ndarray, rate: float, *, seed: int = 0) -> np.ndarray:
    """One draw of what training with dropout on the weights multiplies the values by (Srivastava et al. 2014): each
    weight is left out with probability `rate`, and what is left is 1 / (1 - rate) times as large, so that the mean of
    many draws is the weights. rate: at least 0 and below 1."""
    assert 0.0 <= rate < 1.0, rate
    kept = np.random.default_rng(seed).random(weights.shape) >= rate
    return weights * kept / (1.0 - rate)

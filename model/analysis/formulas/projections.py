"""The linear maps around attention: from x to queries, keys and values, and from the heads' outputs to one vector.

Everything is computed again in float64 from the streams that the model read, and compared with what the model recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.model.analysis.dissection import attention, bias_of, in_numpy, open_cells
from attention_atlas.model.analysis.head_loop import find_attention_input
from attention_atlas.model.analysis.why.contributions import applied_weights
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator


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

"""The addends of one number of a pass: what it is a sum of, in float64, from the records of Translator.inspect.

A query's, key's or value's number is a sum over the dimensions of what its projection read, a score one over the
dimensions of query and key, a head's output one over keys, and a logit one over the dimensions of the decoder's output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.formulas.stages import dissect, in_numpy
from attention_atlas.model.analysis.head_loop import find_attention_input
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator

PARTS = ("query", "key", "value")


@dataclass(frozen=True, eq=False)
class Addends:
    """A number as a sum.

    values    [n], the addends
    bias      what is added besides them
    recorded  the number as the model computed it
    """

    values: np.ndarray
    bias: float
    recorded: float

    @property
    def total(self) -> float:
        """The sum of all addends and the bias."""
        return float(self.values.sum()) + self.bias

    def largest(self, count: int = 3) -> list[int]:
        """Return the indices of the addends of the largest absolute values, largest first."""
        return np.argsort(-np.abs(self.values), kind="stable")[:count].tolist()


@torch.inference_mode()
def projected_addends(
    translator: Translator,
    output: ForwardOutput,
    kind: AttentionKind,
    layer: int,
    head: int,
    *,
    part: str,
    position: int,
    dimension: int,
) -> Addends:
    """Return the addends x_j W_ji of one number of a query, a key or a value. part: of PARTS."""
    inputs, record = find_attention_input(translator, output, kind, layer), output.attention(kind, layer)
    module, number = inputs.module, PARTS.index(part)
    column = number * module.width + head * module.d_head + dimension
    read = in_numpy((inputs.memory if number else inputs.queries)[0, position])
    weight, bias = in_numpy(module.projection.weight[column]), module.projection.bias
    recorded = (record.queries, record.keys, record.values)[number]
    return Addends(
        read * weight,
        0.0 if bias is None else float(bias[column]),
        float(recorded[0, head, position, dimension]),
    )


def score_addends(
    output: ForwardOutput, kind: AttentionKind, layer: int, head: int, *, query: int, key: int
) -> Addends:
    """Return the products q_i k_i of a query and a key. Their sum is the score before the division and the bias."""
    stages = dissect(output, kind, layer, head, query=query)
    record = output.attention(kind, layer)
    recorded = float(record.queries[0, head, query] @ record.keys[0, head, key])
    return Addends(stages.products[key], 0.0, recorded)


def output_addends(
    output: ForwardOutput, kind: AttentionKind, layer: int, head: int, *, query: int, dimension: int
) -> Addends:
    """Return the addends weight * value, one for each key, of one number of a head's output."""
    stages = dissect(output, kind, layer, head, query=query)
    recorded = float(output.attention(kind, layer).head_outputs[0, head, query, dimension])
    return Addends(stages.weights * stages.heard * stages.values[:, dimension], 0.0, recorded)


@torch.inference_mode()
def logit_addends(translator: Translator, output: ForwardOutput, *, step: int, token: int) -> Addends:
    """Return the addends h_j W_j of a logit: the decoder's output times the token's row of the output matrix."""
    hidden = output.hidden[0, step]
    recorded = float(output.project(hidden)[token])
    model = translator.model
    values = in_numpy(hidden) * in_numpy(model.output_matrix[token]) * model.output_scale
    return Addends(values, 0.0 if model.output_bias is None else float(model.output_bias[token]), recorded)

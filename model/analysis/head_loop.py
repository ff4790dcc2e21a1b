"""Multi-head attention in a loop over heads, compared with the model's own, which computes all heads at once."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.model.nets.attention import MultiHeadAttention, scaled_dot_product
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.serve.device import finish
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator

MIN_RUNS = 3  # timed rounds, even beyond the time budget: a median of fewer is not reliable


@dataclass(frozen=True, eq=False)
class AttentionInput:
    """The input of one attention of the model.

    module   the attention
    queries  [batch, query, d_model], the (normed) stream that queries are computed from
    memory   [batch, key, d_model], the stream that keys and values are computed from
    mask     its mask, or None
    bias     [1, heads, query, key], what relative positions add to the scores
    """

    module: MultiHeadAttention
    queries: Tensor
    memory: Tensor
    mask: Tensor | None
    bias: Tensor | None = None


@torch.inference_mode()
def find_attention_input(
    translator: Translator, output: ForwardOutput, kind: AttentionKind, layer: int
) -> AttentionInput:
    """Return an attention's input from a recorded pass. Raises ValueError if the layer does not exist."""
    read = output.layer(kind, layer).sublayer(kind.sublayer).read
    module = translator.model.attention(kind, layer)
    if kind is AttentionKind.CROSS:
        return AttentionInput(module, read, output.memory, None)
    open_ = kind is AttentionKind.ENCODER_SELF or not translator.config.look_ahead_mask
    mask = None if open_ else causal_mask(read.shape[1], device=read.device)
    return AttentionInput(module, read, read, mask, output.attention(kind, layer).bias)


@torch.inference_mode()
def attend_at_once(inputs: AttentionInput) -> tuple[Tensor, Tensor]:
    """Run the model's own attention: output [batch, query, d_model] and weights [batch, heads, query, key]."""
    module = inputs.module
    keys, values = module.project_keys_values(inputs.memory)
    return module(module.project_queries(inputs.queries), keys, values, inputs.mask, bias=inputs.bias)


@torch.inference_mode()
def attend_by_head(inputs: AttentionInput) -> tuple[Tensor, Tensor]:
    """Run the paper's formula in a loop over heads (Vaswani et al. 2017, section 3.2.2); shapes as attend_at_once().

    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V), then Concat(head_1 .. head_h) W^O.
    """
    module = inputs.module
    heads, width = module.width, module.d_head
    outputs, weights = [], []
    for head in range(module.num_heads):
        q, k, v = (
            module.project_rows(stream, rows)  # [batch, length, d_k]
            for part, stream in enumerate((inputs.queries, inputs.memory, inputs.memory))
            for rows in [slice(part * heads + head * width, part * heads + (head + 1) * width)]
        )
        mask = None if inputs.mask is None else inputs.mask[:, 0]
        bias = None if inputs.bias is None else inputs.bias[:, head]
        out, weight = scaled_dot_product(q, k, v, mask, scaled=module.scaled, bias=bias)
        outputs.append(out)
        weights.append(weight)
    return module.output(torch.cat(outputs, dim=-1)), torch.stack(weights, dim=1)


@dataclass(frozen=True)
class HeadsComparison:
    """How the loop compares with computing all heads at once.

    output_difference  the largest difference between the outputs
    scale              the largest absolute value of the output
    loop_seconds, vectorised_seconds  medians over `runs` runs
    """

    output_difference: float
    scale: float
    loop_seconds: float
    vectorised_seconds: float
    runs: int

    @property
    def relative(self) -> float:
        """The difference as a share of the output's largest value."""
        return self.output_difference / self.scale if self.scale else 0.0


def compare_loop(inputs: AttentionInput, *, runs: int = 1, budget: float = float("inf")) -> HeadsComparison:
    """Compare the outputs and the times of both computations.

    Runs alternate, after a warm-up that is not counted. budget: seconds after which no more than MIN_RUNS are made.
    """
    (loop_output, _), (output, _) = attend_by_head(inputs), attend_at_once(inputs)
    differences = float((loop_output - output).abs().max()), float(output.abs().max())
    _seconds(attend_by_head, inputs)
    _seconds(attend_at_once, inputs)
    loops, together = [], []
    while len(loops) < runs and (len(loops) < MIN_RUNS or sum(loops) + sum(together) < budget):
        loops.append(_seconds(attend_by_head, inputs))
        together.append(_seconds(attend_at_once, inputs))
    return HeadsComparison(*differences, statistics.median(loops), statistics.median(together), len(loops))


@torch.inference_mode()
def make_random_attention(batch: int, length: int, d_model: int, heads: int, device: torch.device) -> AttentionInput:
    """Return self-attention of these sizes with random weights and streams.

    d_model is rounded down to a multiple of heads, but is at least heads.
    """
    width = max(heads, d_model - d_model % heads)
    generator, module = torch.Generator().manual_seed(0), MultiHeadAttention(width, heads).to(device)
    for parameter in module.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * width**-0.5)
    stream = torch.randn(batch, length, width, generator=generator).to(device)
    return AttentionInput(module, stream, stream, None)


def _seconds(function: Callable, inputs: AttentionInput) -> float:
    """Time one call in seconds."""
    finish(inputs.queries.device)
    started = time.perf_counter()
    function(inputs)
    finish(inputs.queries.device)
    return time.perf_counter() - started

"""Multi-head attention the slow way, one head after the other, beside the model's own that does all at once."""

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

LEAST = 3  # rounds that are timed, whatever they take: a median of fewer is whatever came first


@dataclass(frozen=True, eq=False)
class AttentionInput:
    """What one attention of the model read: its module, the (normed) stream its queries come from
    [batch, query, d_model], the one its keys and values come from [batch, key, d_model], its mask, and what relative
    positions add to its scores [1, heads, query, key]."""

    module: MultiHeadAttention
    queries: Tensor
    memory: Tensor
    mask: Tensor | None
    bias: Tensor | None = None


@torch.inference_mode()
def attention_input(translator: Translator, output: ForwardOutput, kind: AttentionKind, layer: int) -> AttentionInput:
    """Find it again from a recorded pass of Translator.inspect. ValueError if the layer does not exist."""
    read = output.layer(kind, layer).sublayer(kind.sublayer).read
    module = translator.model.attention(kind, layer)
    if kind is AttentionKind.CROSS:
        return AttentionInput(module, read, output.memory, None)
    open_ = kind is AttentionKind.ENCODER_SELF or not translator.config.look_ahead_mask
    mask = None if open_ else causal_mask(read.shape[1], device=read.device)
    return AttentionInput(module, read, read, mask, output.attention(kind, layer).bias)


@torch.inference_mode()
def vectorised(given: AttentionInput) -> tuple[Tensor, Tensor]:
    """The model's own way: output [batch, query, d_model] and weights [batch, heads, query, key]."""
    module = given.module
    keys, values = module.project_keys_values(given.memory)
    return module(module.project_queries(given.queries), keys, values, given.mask, bias=given.bias)


@torch.inference_mode()
def one_by_one(given: AttentionInput) -> tuple[Tensor, Tensor]:
    """The paper's formula as written: head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V), in a loop, then
    Concat(head_1 .. head_h) W^O (Vaswani et al. 2017, section 3.2.2). Shapes as in vectorised()."""
    module = given.module
    heads, width = module.width, module.d_head
    outputs, weights = [], []
    for head in range(module.num_heads):
        q, k, v = (
            module.project_rows(stream, rows)  # [batch, length, d_k]
            for part, stream in enumerate((given.queries, given.memory, given.memory))
            for rows in [slice(part * heads + head * width, part * heads + (head + 1) * width)]
        )
        mask = None if given.mask is None else given.mask[:, 0]
        bias = None if given.bias is None else given.bias[:, head]
        out, weight = scaled_dot_product(q, k, v, mask, scaled=module.scaled, bias=bias)
        outputs.append(out)
        weights.append(weight)
    return module.output(torch.cat(outputs, dim=-1)), torch.stack(weights, dim=1)


@dataclass(frozen=True)
class HeadsComparison:
    """Largest differences between the two ways, the largest absolute value of the output to judge the first by, and the
    median seconds of each (None where not measured)."""

    output_difference: float
    scale: float
    loop_seconds: float | None = None
    vectorised_seconds: float | None = None
    runs: int = 0

    @property
    def relative(self) -> float:
        """The output's difference as a share of its largest value."""
        return self.output_difference / self.scale if self.scale else 0.0


def compare_ways(given: AttentionInput, *, runs: int = 0, budget: float = float("inf")) -> HeadsComparison:
    """Compute both ways; with runs > 0 also time each that often, alternating, and take medians. The first round still
    wakes threads and fills caches: it is not counted. budget: seconds after which no more rounds begin than LEAST."""
    (loop_output, _), (output, _) = one_by_one(given), vectorised(given)
    differences = float((loop_output - output).abs().max()), float(output.abs().max())
    if not runs:
        return HeadsComparison(*differences)
    _seconds(one_by_one, given)
    _seconds(vectorised, given)
    loops, together = [], []
    while len(loops) < runs and (len(loops) < LEAST or sum(loops) + sum(together) < budget):
        # Alternating: whatever else the machine does then falls on both alike.
        loops.append(_seconds(one_by_one, given))
        together.append(_seconds(vectorised, given))
    return HeadsComparison(*differences, statistics.median(loops), statistics.median(together), len(loops))


@dataclass(frozen=True)
class Sizes:
    """Of an attention to be tried: sentences, tokens of each, d_model, heads."""

    batch: int
    length: int
    d_model: int
    heads: int


def fitted_width(d_model: int, heads: int) -> int:
    """The largest width up to d_model that the heads can share evenly; at least one dimension each."""
    return max(heads, d_model - d_model % heads)


@torch.inference_mode()
def random_attention(sizes: Sizes, device: torch.device, *, seed: int = 0) -> AttentionInput:
    """Self-attention of these sizes over random streams, with random weights. d_model must be a multiple of heads."""
    generator, module = torch.Generator().manual_seed(seed), MultiHeadAttention(sizes.d_model, sizes.heads).to(device)
    for parameter in module.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * sizes.d_model**-0.5)
    stream = torch.randn(sizes.batch, sizes.length, sizes.d_model, generator=generator).to(device)
    return AttentionInput(module, stream, stream, None)


def _seconds(function: Callable, given: AttentionInput) -> float:
    finish(given.queries.device)
    started = time.perf_counter()
    function(given)
    finish(given.queries.device)
    return time.perf_counter() - started

"""Multi-head attention in a loop over heads, compared with the model's own, which computes all heads at once."""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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
def attend_by_head(inputs: AttentionInput, *, project_at_once: bool = False) -> tuple[Tensor, Tensor]:
    """Run the paper's formula in a loop over heads (Vaswani et al. 2017, section 3.2.2); shapes as attend_at_once().

    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V), then Concat(head_1 .. head_h) W^O. project_at_once: compute the
    products with W^Q, W^K and W^V before the loop, as attend_at_once() does, so that only attention is in the loop.
    """
    module, streams = inputs.module, (inputs.queries, inputs.memory, inputs.memory)
    projected = None
    if project_at_once:
        projected = (module.project_queries(inputs.queries), *module.project_keys_values(inputs.memory))

    def project(head: int) -> list[Tensor]:  # q, k and v of a head, each [batch, length, d_k]
        if projected is not None:
            return [part[:, head] for part in projected]
        starts = (part * module.width + head * module.d_head for part in range(3))
        return [module.project_rows(x, slice(start, start + module.d_head)) for x, start in zip(streams, starts)]

    outputs, weights = [], []
    for head in range(module.num_heads):
        mask = None if inputs.mask is None else inputs.mask[:, 0]
        bias = None if inputs.bias is None else inputs.bias[:, head]
        out, weight = scaled_dot_product(*project(head), mask, scaled=module.scaled, bias=bias)
        outputs.append(out)
        weights.append(weight)
    return module.output(torch.cat(outputs, dim=-1)), torch.stack(weights, dim=1)


class PeakMemory(TorchDispatchMode):
    """Counts the bytes of the tensors that exist at one time: `peak` is the largest number since the mode was entered.

    Tensors from before, such as weights and inputs, and memory inside an operation do not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.peak = 0
        self._tensors: dict[int, int] = {}  # address of the numbers -> how many tensors, views included, have them

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        known = {_address(tensor) for tensor in _tensors((args, kwargs))}
        results = func(*args, **(kwargs or {}))
        for tensor in _tensors(results):
            address, size = _address(tensor), tensor.untyped_storage().nbytes()
            if address not in self._tensors:
                if address in known:
                    continue
                self._tensors[address] = 0
                self.bytes += size
            self._tensors[address] += 1
            weakref.finalize(tensor, self._release, address, size)
        self.peak = max(self.peak, self.bytes)
        return results

    def _release(self, address: int, size: int) -> None:
        self._tensors[address] -= 1
        if not self._tensors[address]:
            del self._tensors[address]
            self.bytes -= size


def _tensors(values: object) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@dataclass(frozen=True)
class HeadsComparison:
    """How the loop compares with computing all heads at once.

    output_difference  the largest difference between the outputs
    relative_error     the norm of the difference between the outputs over the norm of the loop's output
    heads_error        the same if the loop shares the projections of queries, keys and values
    loop_seconds, vectorised_seconds  medians over `runs` runs
    loop_bytes, vectorised_bytes      the largest memory at one time, without the weights and the input
    """

    output_difference: float
    relative_error: float
    heads_error: float
    loop_seconds: float
    vectorised_seconds: float
    loop_bytes: int
    vectorised_bytes: int
    runs: int


def compare_loop(inputs: AttentionInput, *, runs: int = 1, budget: float = float("inf")) -> HeadsComparison:
    """Compare the outputs, the times and the memory of both computations.

    Runs alternate, after a warm-up that is not counted. budget: seconds after which no more than MIN_RUNS are made.
    """
    with PeakMemory() as loop_memory:
        loop_output, _ = attend_by_head(inputs)
    with PeakMemory() as memory:
        output, _ = attend_at_once(inputs)
    shared_output, _ = attend_by_head(inputs, project_at_once=True)
    _seconds(attend_by_head, inputs)
    _seconds(attend_at_once, inputs)
    loops, together = [], []
    while len(loops) < runs and (len(loops) < MIN_RUNS or sum(loops) + sum(together) < budget):
        loops.append(_seconds(attend_by_head, inputs))
        together.append(_seconds(attend_at_once, inputs))
    return HeadsComparison(
        float((loop_output - output).abs().max()),
        _relative_error(output, loop_output),
        _relative_error(output, shared_output),
        statistics.median(loops),
        statistics.median(together),
        loop_memory.peak,
        memory.peak,
        len(loops),
    )


def _relative_error(output: Tensor, naive: Tensor) -> float:
    """Return |output - naive| / |naive|, with Euclidean norms over all numbers."""
    output, naive = output.cpu().double(), naive.cpu().double()  # not every device has float64
    norm = float(naive.norm())
    return float((output - naive).norm()) / norm if norm else 0.0


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

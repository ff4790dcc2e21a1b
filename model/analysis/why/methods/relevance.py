"""AttnLRP: propagate relevance from the metric back to the words by a modified gradient (Achtibat et al. 2024).

A gradient says what a small change would do; layer-wise relevance propagation says which inputs produced the value. Of
a product of two factors that both depend on the input (a weight and a value, a query and a key) each gets half. The
divisor of a norm, and the share of its input that an activation passes on, are treated as constants.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.method import Attribution, Method
from attention_atlas.model.analysis.why.methods.gradients import compute_gradients, multiply_by_input
from attention_atlas.model.nets.places.visit import At
from attention_atlas.model.nets.sweep import Sweep, combine
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.evidence import Evidence, Unit

HALF, QUARTER = 0.5, 0.25
# The attention pattern's half is shared by queries and keys; values take the other half.
SHARES = (("*.q", QUARTER), ("*.k", QUARTER), ("*.v", HALF))
GATED = (("*.ffn.pre", HALF), ("*.ffn.gate", HALF))


def attn_lrp(case: Case) -> Attribution:
    """Return relevance . embedding, summed over each column (Achtibat et al. 2024, section 3)."""
    shares = (*SHARES, *(GATED if case.model.config.gated else ()))
    sweep = Sweep(edits=tuple((pattern, _scale_gradient(share)) for pattern, share in shares))
    with _Rules():
        _, *relevance = compute_gradients(case, case.source_rows, case.target_rows, combine(case.interventions, sweep))
    return multiply_by_input(case, *relevance)


class _WithGradientOf(torch.autograd.Function):
    """The value of one tensor with the gradient of another of its shape; the forward pass stays bit-identical."""

    @staticmethod
    def forward(ctx, value: Tensor, slope: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient


def _scale_gradient(share: float):
    def scale(x: Tensor, at: At) -> Tensor:
        return _WithGradientOf.apply(x.detach(), share * x)

    return scale


def _norm(x: Tensor, shape: list[int], weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Run a layer norm with its divisor as a constant in the backward pass."""
    divisor = (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt().detach()
    linear = (x - x.mean(-1, keepdim=True)) / divisor * weight + bias
    return _WithGradientOf.apply(F.layer_norm(x, shape, weight, bias, eps).detach(), linear)


def _rms_norm(x: Tensor, shape: list[int], weight: Tensor, eps: float) -> Tensor:
    """Run an RMS norm with its divisor as a constant in the backward pass."""
    divisor = (x.square().mean(-1, keepdim=True) + eps).sqrt().detach()
    return _WithGradientOf.apply(F.rms_norm(x, shape, weight, eps).detach(), x / divisor * weight)


def _activation(function):
    """Wrap an activation f so that the backward pass treats f(x) as x times the constant f(x) / x."""

    def activate(x: Tensor, **options: object) -> Tensor:
        value = function(x, **options).detach()
        return _WithGradientOf.apply(value, x * torch.where(x == 0, 0.0, value / x).detach())

    return activate


RULES = {F.layer_norm: _norm, F.rms_norm: _rms_norm, **{f: _activation(f) for f in (torch.relu, F.silu, F.gelu)}}


class _Rules(TorchFunctionMode):
    """A context in which norms and activations of this thread use the rules above in the backward pass."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return RULES.get(function, function)(*args, **(kwargs or {}))


ATTN_LRP = Method(
    "attn_lrp",
    say("AttnLRP"),
    Evidence.PROXY,
    Unit.NATS,
    say("The metric, propagated back layer by layer to the inputs that produced it; products share it."),
    say("Biases take a share too, so the row need not add up to the metric."),
    attn_lrp,
)

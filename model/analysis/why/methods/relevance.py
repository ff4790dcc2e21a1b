"""AttnLRP: relevance handed back from the metric to the words, as a gradient with other rules (Achtibat et al. 2024).

A gradient asks what a small change would do; layer-wise relevance propagation asks who made the value that is there. Of
a product of two things that both came from the input (a weight and a value, a query and a key) each gets half; what a
norm divides by, and the share of its input that an activation lets through, count as numbers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.method import Answer, Method
from attention_atlas.model.analysis.why.methods.gradients import gradients, times_input
from attention_atlas.model.nets.places.visit import At
from attention_atlas.model.nets.sweep import Sweep, combine
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.evidence import Evidence, Unit

HALF, QUARTER = 0.5, 0.25
# A pattern's half is shared by queries and keys; values take the other.
SHARES = (("*.q", QUARTER), ("*.k", QUARTER), ("*.v", HALF))
GATED = (("*.ffn.pre", HALF), ("*.ffn.gate", HALF))


def attn_lrp(case: Case) -> Answer:
    """relevance . embedding, summed over each column (Achtibat et al. 2024, section 3)."""
    shares = (*SHARES, *(GATED if case.model.config.gated else ()))
    halved = Sweep(edits=tuple((pattern, _sharing(share)) for pattern, share in shares))
    with _Rules():
        _, *found = gradients(case, case.source_rows, case.target_rows, combine(case.interventions, halved))
    return times_input(case, *found)


class _Sloped(torch.autograd.Function):
    """The value of one tensor with the slope of another of its shape: no bit of the pass changes."""

    @staticmethod
    def forward(ctx, value: Tensor, slope: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient


def _sharing(share: float):
    def shared(x: Tensor, at: At) -> Tensor:
        return _Sloped.apply(x.detach(), share * x)

    return shared


def _norm(x: Tensor, shape: list[int], weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The divisor counts as a number: what is left is linear."""
    divisor = (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt().detach()
    linear = (x - x.mean(-1, keepdim=True)) / divisor * weight + bias
    return _Sloped.apply(F.layer_norm(x, shape, weight, bias, eps).detach(), linear)


def _rms_norm(x: Tensor, shape: list[int], weight: Tensor, eps: float) -> Tensor:
    """As _norm()."""
    divisor = (x.square().mean(-1, keepdim=True) + eps).sqrt().detach()
    return _Sloped.apply(F.rms_norm(x, shape, weight, eps).detach(), x / divisor * weight)


def _activation(function):
    """f(x) counts as x times the number f(x) / x."""

    def activated(x: Tensor, **options: object) -> Tensor:
        value = function(x, **options).detach()
        return _Sloped.apply(value, x * torch.where(x == 0, 0.0, value / x).detach())

    return activated


RULES = {F.layer_norm: _norm, F.rms_norm: _rms_norm, **{f: _activation(f) for f in (torch.relu, F.silu, F.gelu)}}


class _Rules(TorchFunctionMode):
    """Norms and activations of what this thread runs meanwhile hand relevance back."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return RULES.get(function, function)(*args, **(kwargs or {}))


ATTN_LRP = Method(
    "attn_lrp",
    say("AttnLRP"),
    Evidence.PROXY,
    Unit.NATS,
    say("The metric, passed back layer by layer to what it is made of; products share it."),
    say("Biases take a share, too: the row need not add up to the metric."),
    attn_lrp,
)

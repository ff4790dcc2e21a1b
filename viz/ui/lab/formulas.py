"""The model's formulas as its own options make them."""

from __future__ import annotations

from model.config import Activation, ModelConfig

ACTIVATIONS = {Activation.RELU: "ReLU", Activation.SILU: "SiLU", Activation.GELU: "GELU"}


def feed_forward(config: ModelConfig) -> str:
    """Paper, equation 2, with the model's activation."""
    inner = "x W₁ + b₁"
    active = (
        f"max(0, {inner})" if config.activation is Activation.RELU else (f"{ACTIVATIONS[config.activation]}({inner})")
    )
    smooth = {Activation.SILU: ",  SiLU(z) = z / (1 + exp(−z))", Activation.GELU: ",  GELU(z) = z · Φ(z)"}
    return f"FFN(x) = {active} W₂ + b₂{smooth.get(config.activation, '')}"


def logits(config: ModelConfig) -> str:
    """Paper, section 3.4, with the model's own output matrix and bias."""
    matrix = "W" if not config.tied_output else "E" if config.shared_embeddings else "E_target"
    return f"logits = {matrix} · x{' + b' * config.logits_bias},   p = exp(logit − log Σ exp(logits))"

"""The model's formulas as its own options make them."""

from __future__ import annotations

from model.config import Activation, ModelConfig

ACTIVATIONS = {
    Activation.RELU: "ReLU",
    Activation.SILU: "SiLU",
    Activation.GELU: "GELU",
    Activation.GELU_TANH: "GELU",
}


def feed_forward(config: ModelConfig) -> str:
    """Paper, equation 2, with the model's activation."""
    inner = "x W₁" + " + b₁" * config.biases
    active = (
        f"max(0, {inner})" if config.activation is Activation.RELU else (f"{ACTIVATIONS[config.activation]}({inner})")
    )
    smooth = {
        Activation.SILU: ",  SiLU(z) = z / (1 + exp(−z))",
        Activation.GELU: ",  GELU(z) = z · Φ(z)",
        Activation.GELU_TANH: ",  GELU(z) ≈ z/2 · (1 + tanh(√(2/π) (z + 0.044715 z³)))",
    }
    active = f"({active} ⊙ x V)" if config.gated else active
    return f"FFN(x) = {active} W₂{' + b₂' * config.biases}{smooth.get(config.activation, '')}"


def logits(config: ModelConfig) -> str:
    """Paper, section 3.4, with the model's own output matrix and bias."""
    matrix = "W" if not config.tied_output else "E" if config.shared_embeddings else "E_target"
    scaled = " / √d_model" * config.scale_output
    return f"logits = {matrix} · x{scaled}{' + b' * config.logits_bias},   p = exp(logit − log Σ exp(logits))"

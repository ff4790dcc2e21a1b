"""Formulas of the model as its configuration makes them, and helpers of the panels about positions."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.config import Activation, ModelConfig, PositionCode
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.words import Words, say

ACTIVATIONS = {Activation.RELU: "ReLU", Activation.SILU: "SiLU", Activation.GELU: "GELU", Activation.GELU_TANH: "GELU"}


def feed_forward(config: ModelConfig) -> str:
    """Return the formula of the feed-forward network with the model's activation (paper, equation 2)."""
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
    """Return the formula of the logits with the model's output matrix and bias (paper, section 3.4)."""
    matrix = "W" if not config.tied_output else "E" if config.shared_embeddings else "E_target"
    scaled = " / √d_model" * config.scale_output
    return f"logits = {matrix} · x{scaled}{' + b' * config.logits_bias},   p = exp(logit − log Σ exp(logits))"


# Positions. Paper, section 3.5.
SECTION = say("Paper, section {n}", n="3.5")


def model_table(scene: Scene, length: int) -> np.ndarray:
    """Return the vectors that the model adds at positions 0 .. length - 1: float32 [length, d_model]."""
    return scene.translator.model.source_positions(0, length).flatten(0, -2).detach().float().cpu().numpy()


def max_positions(config: ModelConfig) -> int:
    """Return the largest number of positions that a panel shows."""
    return min(256, config.max_length)


def last_pair(config: ModelConfig) -> int:
    """Return the index of the last pair of dimensions (a sine and a cosine)."""
    return config.d_model // 2 - 1


# Position codes that a toy can be trained with for comparison, at dimension i.
CONTRASTS = {
    PositionCode.COUNT: "PE(pos, i) = pos",
    PositionCode.NORMALISED: "PE(pos, i) = pos / (n − 1)",
    PositionCode.BINARY: "PE(pos, i) = bit i of pos",
    PositionCode.SINE: "PE(pos, i) = sin(pos / base^(i/d_model))",
    PositionCode.TUTORIAL: "PE(pos, i) = sin(pos / base^(2i/d)),  PE(pos, i+1) = cos(pos / base^(2(i+1)/d))",
}


def code_formula(config: ModelConfig) -> Words | str:
    """Return the formula of the model's position code (paper, section 3.5)."""
    if config.position_code in CONTRASTS:
        return CONTRASTS[config.position_code]
    start = config.position_offset
    at = f"(pos + {start})" if start else "pos"
    if config.position_code is PositionCode.LEARNED:
        return say("PE(pos) = row {n} of a learned table", n=f"pos + {start}" if start else "pos")
    if config.position_code is PositionCode.INTERLEAVED:
        return f"PE(pos, 2i) = sin({at} / base^(2i/d_model)),  PE(pos, 2i+1) = cos({at} / base^(2i/d_model))"
    angle = f"{at} / base^({exponent(config)})"
    return f"PE(pos, i) = sin({angle}),  PE(pos, d_model/2 + i) = cos({angle})"


def exponent(config: ModelConfig) -> str:
    """Return the exponent of the base in the wavelength of pair i."""
    return "i/(d_model/2 − 1)" if config.position_code is PositionCode.FAIRSEQ else "2i/d_model"

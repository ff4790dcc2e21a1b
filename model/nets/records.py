"""What a recorded pass leaves behind: return values, never hooks or attributes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """One attention of one layer: weights [batch, heads, query, key] (softmax, before dropout), and the projected
    queries, keys and values [batch, heads, length, d_head]."""

    weights: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor


@dataclass(frozen=True, eq=False)
class LayerRecord:
    """What one layer did.

    residuals    the residual stream [batch, length, d_model]: the layer's input, then after each sub-layer
    norm_inputs  what each sub-layer's layer norm read [batch, length, d_model]; norm_epsilon: the norms' epsilon
    activations  the feed-forward's hidden units after the activation, the paper's ReLU or another
                 [batch, length, d_feedforward]
    """

    self_attention: AttentionRecord
    cross_attention: AttentionRecord | None
    residuals: tuple[Tensor, ...]
    norm_inputs: tuple[Tensor, ...]
    norm_epsilon: float
    activations: Tensor

    @property
    def norm_scales(self) -> tuple[Tensor, ...]:
        """1 / standard deviation [batch, length] by which each sub-layer's layer norm multiplied."""
        # Computed when asked for: a translation records, and most never look at these.
        return tuple((x.float().var(-1, unbiased=False) + self.norm_epsilon).rsqrt() for x in self.norm_inputs)


@dataclass(frozen=True, eq=False)
class ForwardOutput:
    """logits [batch, target, vocabulary]; memory [batch, source, d_model], the encoder's output; hidden
    [batch, target, d_model], what the output projection read; one record a layer, or none without record=True."""

    logits: Tensor
    memory: Tensor
    hidden: Tensor
    encoder_records: tuple[LayerRecord, ...] = ()
    decoder_records: tuple[LayerRecord, ...] = ()

"""The kinds of attention that an encoder-decoder has. Importable without torch."""

from __future__ import annotations

from enum import Enum


class AttentionKind(str, Enum):
    """The three attentions of an encoder-decoder Transformer (Vaswani et al. 2017, section 3.2.3)."""

    ENCODER_SELF = "encoder_self"
    DECODER_SELF = "decoder_self"
    CROSS = "cross"

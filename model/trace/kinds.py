"""The kinds of attention in an encoder-decoder model, its two sides and its sub-layers.

Functions that take one of these enums also take its value:

>>> AttentionKind("cross").side
<Side.DECODER: 'decoder'>
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attention_atlas.model.trace import check_integer

__all__ = ["TRANSFORMER_KINDS", "AttentionKind", "Kind", "NamedEnum", "Side", "SubLayerName"]


class NamedEnum(str, Enum):
    """A string enum that raises ValueError with the list of its names for an unknown one."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise ValueError(f"{value!r} is none of {', '.join(cls)}")


def coerce_enums(instance: object, **types: type[NamedEnum]) -> None:
    """Convert fields of a frozen dataclass to these enums. ValueError, with the field, for an unknown name."""
    for name, type_ in types.items():
        try:
            object.__setattr__(instance, name, type_(getattr(instance, name)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def coerce_integers(instance: object, *names: str, optional: bool = False) -> None:
    """Convert fields of a frozen dataclass to int. ValueError for anything else; with optional, None is kept."""
    for name in names:
        value = getattr(instance, name)
        if value is not None or not optional:
            object.__setattr__(instance, name, check_integer(name, value))


class Side(NamedEnum):
    """The two stacks of layers."""

    ENCODER = "encoder"
    DECODER = "decoder"


class SubLayerName(NamedEnum):
    """The functions that a layer adds to the residual stream, in order (Vaswani et al. 2017, section 3.1)."""

    SELF_ATTENTION = "self_attention"
    CROSS_ATTENTION = "cross_attention"  # decoder only
    FEED_FORWARD = "feed_forward"


class AttentionKind(NamedEnum):
    """The three attentions of an encoder-decoder Transformer (Vaswani et al. 2017, section 3.2.3), and the attention of
    recurrent networks."""

    ENCODER_SELF = "encoder_self"
    DECODER_SELF = "decoder_self"
    CROSS = "cross"
    ALIGNMENT = "alignment"  # from a recurrent decoder's state to the encoder's states (Bahdanau et al. 2015)

    @property
    def side(self) -> Side:
        """The stack that its layers belong to."""
        return Side.ENCODER if self is AttentionKind.ENCODER_SELF else Side.DECODER

    @property
    def sublayer(self) -> SubLayerName:
        """The sub-layer that it is. ValueError for ALIGNMENT, which is in no Transformer layer."""
        if self is AttentionKind.ALIGNMENT:
            raise ValueError("alignment belongs to recurrent networks, which have no sub-layers")
        return SubLayerName.CROSS_ATTENTION if self is AttentionKind.CROSS else SubLayerName.SELF_ATTENTION


TRANSFORMER_KINDS = (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS)

Kind = AttentionKind | Any  # the type of parameters that also take a kind's value, such as "cross"

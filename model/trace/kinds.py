"""The kinds of attention that an encoder-decoder has, and where they stand. Importable without torch.

Whatever takes one of these takes its value, too:

>>> AttentionKind("cross").side
<Side.DECODER: 'decoder'>
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attention_atlas.model.trace import check_integer

__all__ = ["TRANSFORMER_KINDS", "AttentionKind", "Kind", "NamedEnum", "Side", "SubLayerName"]


class NamedEnum(str, Enum):
    """An enumeration whose members people name: another name is refused in words."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise ValueError(f"{value!r} is none of {', '.join(cls)}")


def coerce_enums(instance: object, **types: type[NamedEnum]) -> None:
    """Make enums of the strings that stand for them. ValueError, with the names that there are, for another."""
    for name, type_ in types.items():
        object.__setattr__(instance, name, type_(getattr(instance, name)))


def coerce_integers(instance: object, *names: str) -> None:
    """Make plain numbers of these fields. ValueError, in words, for one that is not whole; None stays."""
    for name in names:
        if (value := getattr(instance, name)) is not None:
            object.__setattr__(instance, name, check_integer(name, value))


class Side(NamedEnum):
    """The two stacks of layers."""

    ENCODER = "encoder"
    DECODER = "decoder"


class SubLayerName(NamedEnum):
    """The functions that a layer adds to the residual stream, in this order (Vaswani et al. 2017, section 3.1)."""

    SELF_ATTENTION = "self_attention"
    CROSS_ATTENTION = "cross_attention"  # decoder only
    FEED_FORWARD = "feed_forward"


class AttentionKind(NamedEnum):
    """The three attentions of an encoder-decoder Transformer (Vaswani et al. 2017, section 3.2.3), and the one of the
    recurrent networks before it."""

    ENCODER_SELF = "encoder_self"
    DECODER_SELF = "decoder_self"
    CROSS = "cross"
    ALIGNMENT = "alignment"  # of a recurrent decoder (Bahdanau et al. 2015): its state asks the encoder's states

    @property
    def side(self) -> Side:
        """The stack whose layers it stands in."""
        return Side.ENCODER if self is AttentionKind.ENCODER_SELF else Side.DECODER

    @property
    def sublayer(self) -> SubLayerName:
        """Which of a layer's sub-layers it is. ValueError for a recurrent network's, which has none."""
        if self is AttentionKind.ALIGNMENT:
            raise ValueError("an alignment stands in no sub-layer: it is a recurrent network's")
        return SubLayerName.CROSS_ATTENTION if self is AttentionKind.CROSS else SubLayerName.SELF_ATTENTION


TRANSFORMER_KINDS = (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS)

Kind = AttentionKind | Any  # of what holds a kind and takes "cross" for one, too

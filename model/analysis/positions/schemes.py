"""Sinusoidal positional encoding (Vaswani et al. 2017, section 3.5), and the schemes it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.nets.positions import sinusoidal_encoding
from model.trace.language import say


def count_encoding(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
    """PE(pos) = pos: the position itself. [length, 1]"""
    return positions.double()[:, None]


def normalised_count_encoding(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
    """PE(pos) = pos / (length - 1): from 0 at the first to 1 at the last token of THIS sentence. [length, 1]"""
    return positions.double()[:, None] / max(1, length - 1)


def binary_encoding(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
    """PE(pos, i) = bit i of pos, the lowest first: 0 or 1. [length, d_model]"""
    bits = torch.arange(min(d_model, 62), device=positions.device)
    encoding = ((positions.long()[:, None] >> bits) & 1).double()
    return torch.nn.functional.pad(encoding, (0, d_model - len(bits)))


def sine_encoding(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
    """PE(pos, i) = sin(pos / base^(i / d_model)): one wave a dimension, without its cosine. [length, d_model]"""
    exponents = torch.arange(d_model, dtype=torch.float64, device=positions.device) / d_model
    return (positions.double()[:, None] / base**exponents).sin()


def tutorial_encoding(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
    """PE(pos, i) = sin(pos / base^(2i / d_model)) and PE(pos, i + 1) = cos(pos / base^(2(i + 1) / d_model)) for even i:
    a mistake that tutorials copy from one another. i already steps by two, and the cosine has a frequency of its own,
    so no pair turns as one. [length, d_model]"""
    exponents = 2 * torch.arange(d_model, dtype=torch.float64, device=positions.device) / d_model
    angles = positions.double()[:, None] / base**exponents
    return torch.where(torch.arange(d_model, device=positions.device) % 2 == 0, angles.sin(), angles.cos())


def paper_encoding(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
    """sinusoidal_encoding() with the signature of the others. [length, d_model]"""
    return sinusoidal_encoding(positions, d_model, base=base).double()


@dataclass(frozen=True)
class Scheme:
    """A way to give positions a code.

    encode: (positions [n], d_model, *, length, base) -> float64 [n, width]; `length` is that of the sentence, which
    only one scheme looks at. step: the d_model it can be built with are multiples of this; 0: its width is 1 whatever
    d_model is.
    """

    name: str
    formula: str
    encode: Callable[..., Tensor]
    step: int = 1

    def table(self, length: int, d_model: int, *, base: float = 10_000.0) -> np.ndarray:
        """The codes of positions 0 .. length - 1 of a sentence of that length: float64 [length, width]."""
        if length < 1:
            raise ValueError(f"length must be at least 1, found {length}")
        return self.encode(torch.arange(length), d_model, length=length, base=base).numpy()

    def at(self, position: int, length: int, d_model: int, *, base: float = 10_000.0) -> np.ndarray:
        """The code of one position, which may lie outside the sentence of this length: float64 [width]."""
        return self.encode(torch.tensor([position]), d_model, length=length, base=base).numpy()[0]


SCHEMES = (
    Scheme(say("count"), "pos", count_encoding, step=0),
    Scheme(say("normalised count"), "pos / (length − 1)", normalised_count_encoding, step=0),
    Scheme(say("binary index"), "bit i of pos", binary_encoding),
    Scheme(say("sine only"), "sin(pos / base^(i/d))", sine_encoding),
    Scheme(
        say("a tutorial's exponents"), "sin(pos / base^(2i/d)), cos(pos / base^(2(i+1)/d))", tutorial_encoding, step=2
    ),
    Scheme(say("sine and cosine"), "sin, cos(pos / base^(2i/d))", paper_encoding, step=2),
)

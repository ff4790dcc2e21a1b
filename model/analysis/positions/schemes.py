"""Sinusoidal positional encoding (Vaswani et al. 2017, section 3.5), and the schemes it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.nets.positions import (
    binary_encoding,
    count_encoding,
    normalised_count_encoding,
    sine_encoding,
    sinusoidal_encoding,
    tutorial_encoding,
)
from attention_atlas.model.trace.language import say


def paper_encoding(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
    """sinusoidal_encoding() with the signature of the others. [length, d_model]"""
    return sinusoidal_encoding(positions, d_model, base=base).double()


@dataclass(frozen=True)
class Scheme:
    """A way to give positions a code.

    encode: (positions [n], d_model, *, length, base) -> float64 [n, width]; `length` is that of the sentence, which
    only one scheme looks at. step: the d_model it can be built with are multiples of this; 0: its width is 1 whatever
    d_model is. same: two numbers nearer than this are one. rows: how many positions have a code; None: any.
    """

    name: str
    formula: str
    encode: Callable[..., Tensor]
    step: int = 1
    same: float = 1e-6  # below what float32 sums of order 1 resolve
    rows: int | None = None

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


def of_table(name: str, encode: Callable[[int], Tensor], *, rows: int | None) -> Scheme:
    """What a model adds itself, as a scheme: encode(length) -> [length, d_model], in the float32 that it computes in,
    whose rounding of long vectors is no difference. rows: how many there are; None: any number."""

    def found(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
        return encode(int(positions.max()) + 1)[positions].detach().double().cpu()

    return Scheme(name, "", found, same=1e-4, rows=rows)

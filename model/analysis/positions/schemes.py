"""Position codes: the sinusoidal one (Vaswani et al. 2017, section 3.5) and the schemes it is compared with."""

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
    """Return sinusoidal_encoding() with the signature of the other schemes: [length, d_model]."""
    return sinusoidal_encoding(positions, d_model, base=base).double()


@dataclass(frozen=True)
class Scheme:
    """A position code.

    encode  (positions [n], d_model, *, length, base) -> float64 [n, width]; `length` is that of the sentence, which
    only
            one scheme uses
    step    d_model must be a multiple of this; 0 if the width is always 1
    same    numbers closer than this count as equal
    rows    the number of positions that have a code; None for any number
    """

    name: str
    formula: str
    encode: Callable[..., Tensor]
    step: int = 1
    same: float = 1e-6  # below the resolution of float32 sums of order 1
    rows: int | None = None

    def table(self, length: int, d_model: int, *, base: float = 10_000.0) -> np.ndarray:
        """Return the codes of the positions of a sentence: float64 [length, width]."""
        if length < 1:
            raise ValueError(f"length must be at least 1, found {length}")
        return self.encode(torch.arange(length), d_model, length=length, base=base).numpy()

    def at(self, position: int, length: int, d_model: int, *, base: float = 10_000.0) -> np.ndarray:
        """Return the code of one position, which may be outside the sentence: float64 [width]."""
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
    """Return a model's own position table as a scheme. encode(length) -> [length, d_model], in float32, whose rounding
    is tolerated. rows: the number of rows; None for any number."""

    def encode_rows(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
        return encode(int(positions.max()) + 1)[positions].detach().double().cpu()

    return Scheme(name, "", encode_rows, same=1e-4, rows=rows)

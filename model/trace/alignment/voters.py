"""Which heads links are read from, and by which row. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RowToken(str, Enum):
    """Which row of the decoder stands for a token: the one that READS it, or the one before, that PREDICTED it. Layers
    near the input align by the first, layers near the output by the second; taken for each other, links are off by one
    word."""

    READ = "read"
    PREDICTED = "predicted"


@dataclass(frozen=True)
class Voter:
    """A cross-attention head, which row it is read by, and whether by the lengths of weight times value (Kobayashi et
    al. 2020) or by weight alone."""

    layer: int
    head: int
    row: RowToken
    by_length: bool

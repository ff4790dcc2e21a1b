"""The geometry of sinusoidal codes: wavelengths, similarity by offset, and shifts as rotations.

Vaswani et al. 2017, section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a linear function of
PE(pos)".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.config import ModelConfig, PositionCode

NEAR = 1e-3  # relative to the largest squared length; larger squares keep at least 12 of 16 digits
CHUNK = 4096  # pairs whose differences are computed at once


@dataclass(frozen=True, eq=False)
class Waves:
    """The waves of a sinusoidal code, one for each pair of dimensions.

    sines, cosines  int [d_model / 2]: the dimensions with sine and cosine
    rates           float64 [d_model / 2]: radians per position
    """

    sines: np.ndarray
    cosines: np.ndarray
    rates: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """The wavelengths in positions: float64 [d_model / 2]."""
        return 2.0 * np.pi / self.rates


def waves(d_model: int, base: float = 10_000.0, code: PositionCode = PositionCode.INTERLEAVED) -> Waves:
    """Return the waves of a code: the paper's, with base^(-2i / d_model) radians per position for pair i, or another
    family's. Raises ValueError for an odd width or a code without waves."""
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, found {d_model}")
    if not code.has_waves:
        raise ValueError(f"{code.value} positions have no waves")
    pairs = np.arange(d_model // 2)
    if code is PositionCode.INTERLEAVED:
        return Waves(2 * pairs, 2 * pairs + 1, base ** (-2.0 * pairs / d_model))
    steps = d_model if code is PositionCode.HALVES else 2 * (d_model // 2 - 1)
    return Waves(pairs, d_model // 2 + pairs, np.exp(-math.log(base) * 2.0 * pairs / steps))


def waves_of(config: ModelConfig) -> Waves:
    """Return the waves of a model's position code. Raises ValueError as waves() does."""
    return waves(config.d_model, config.position_base, config.position_code)


def strongest_wave(column: np.ndarray) -> tuple[float, float]:
    """Return the wavelength with the largest share of the variance of a column [length], and that share, 0 to 1.

    Only wavelengths that divide the length are considered; a constant column gives infinity and 0. Shows how close each
    column of a learned table is to a wave.
    """
    column = np.asarray(column, np.float64)
    power = np.abs(np.fft.rfft(column - column.mean())) ** 2
    power[1 : (len(column) + 1) // 2] *= (
        2.0  # all frequencies except the mean and the fastest one of an even length occur twice
    )
    total = power.sum()
    if len(column) < 2 or total <= 1e-24 * len(column):
        return math.inf, 0.0
    at = int(power.argmax())
    return len(column) / at, float(power[at] / total)


def pairwise_distances(table: np.ndarray) -> np.ndarray:
    """Return the Euclidean distances between the rows of table [length, width]: float64 [length, length].

    |a|^2 + |b|^2 - 2ab loses half the digits of small distances, so those are recomputed from differences.
    """
    table = np.asarray(table, np.float64)
    lengths = (table**2).sum(-1)
    squares = lengths[:, None] + lengths - 2 * table @ table.T
    rows, columns = np.nonzero(squares <= NEAR * lengths.max(initial=0.0))
    for start in range(0, len(rows), CHUNK):
        a, b = rows[start : start + CHUNK], columns[start : start + CHUNK]
        squares[a, b] = ((table[a] - table[b]) ** 2).sum(-1)
    return np.sqrt(squares)


@dataclass(frozen=True, eq=False)
class Similarity:
    """The similarity of the codes of each two positions, and how far it depends on the offset alone.

    matrix     float64 [length, length]
    by_offset  float64 [length]: the mean over all pairs with offset k
    residual   the largest deviation of a pair from the mean of its offset (0 for a Toeplitz matrix)
    worst      the pair with that residual
    """

    matrix: np.ndarray
    by_offset: np.ndarray
    residual: float
    worst: tuple[int, int]


def dot_products(table: np.ndarray) -> Similarity:
    """Return PE(a) . PE(b) for the rows of table [length, d_model]."""
    table = np.asarray(table, np.float64)
    return _by_offset(table @ table.T)


def distances(table: np.ndarray) -> Similarity:
    """Return |PE(a) - PE(b)| for the rows of table [length, d_model]."""
    return _by_offset(pairwise_distances(table))


def _by_offset(matrix: np.ndarray) -> Similarity:
    length = len(matrix)
    means = np.array([np.concatenate((matrix.diagonal(k), matrix.diagonal(-k))).mean() for k in range(length)])
    offset = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    departure = np.abs(matrix - means[offset])
    row, column = np.unravel_index(departure.argmax(), departure.shape)
    return Similarity(matrix, means, float(departure[row, column]), (int(row), int(column)))


def rotation_matrix(shift: int, of: Waves) -> np.ndarray:
    """Return R(k) with PE(pos + k) = R(k) PE(pos), float64 [d_model, d_model]: a rotation by k times its rate for each
    pair of dimensions."""
    angles, size = shift * of.rates, 2 * len(of.rates)
    matrix = np.zeros((size, size))
    # sin(x + a) = cos(a) sin(x) + sin(a) cos(x);  cos(x + a) = -sin(a) sin(x) + cos(a) cos(x)
    matrix[of.sines, of.sines] = matrix[of.cosines, of.cosines] = np.cos(angles)
    matrix[of.sines, of.cosines] = np.sin(angles)
    matrix[of.cosines, of.sines] = -np.sin(angles)
    return matrix


def rotation_residual(table: np.ndarray, shift: int, of: Waves) -> float:
    """Return max |PE(pos + k) - R(k) PE(pos)| over the rows of table [length, d_model]. Raises ValueError unless
    0 <= k < length."""
    table = np.asarray(table, np.float64)
    if not 0 <= shift < len(table):
        raise ValueError(f"the shift must be from 0 to {len(table) - 1} in a table of {len(table)} rows, found {shift}")
    rotated = table[: len(table) - shift] @ rotation_matrix(shift, of).T
    return float(np.abs(table[shift:] - rotated).max())

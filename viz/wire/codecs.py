"""How numbers travel to the page: base64(gzip(bytes)), or, of a few bytes, "=" and base64(bytes). gzip hardly shortens
real weights, and the page unpacks it in another thread, by which a sentence's first picture would miss a frame.
viz/web/explorer/trace.js reads what is written here.

    root16    numbers in [0, 1] as uint16 q, all high bytes first, then the low ones: value = (q / 65535)^4.
              The fourth root spends the 16 bits evenly over all orders of magnitude: the error of a value v is at most
              4 v^(3/4) / 131070, 3e-5 at v = 1 and 3e-8 at v = 1e-4, so that log scales are right too
    root8     the same in 8 bits, (q / 255)^4: within 1/64 at v = 1, in the middle of a scale of four decades within a
              hundredth of it. For pictures of the size of a thumbnail
    root2     the square root in 8 bits, (q / 255)^2: of large maps' tiles. Within 1/255 of the root: 0.002 at 0.06
    signed16  numbers of either sign, of any size, or none (NaN): before the codes stands the largest absolute value m
              as a little-endian float32. int16 q as above: value = sign(q) m (|q| / 32767)^4; q = -32768 is NaN. With
              r = |v / m|^(1/4) the error is at most m (4 r^3 + 4 / 32767) / 65534: 6.2e-5 m at v = m, 8e-9 m near 0
    float32   little-endian, exact

Zero stays zero in each. What a codec cannot hold it refuses.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

FEW = 32_768  # bytes: the weights of a kind, of sentences of up to some 20 tokens
UNCOMPRESSED = "="  # no base64 begins with it
_ROUNDING = 1e-5  # by which a softmax in float32 may miss [0, 1]
_LARGEST, _NAN = 32767, -32768


@dataclass(frozen=True)
class Codec:
    """A name, array -> bytes, and (bytes, shape) -> float32 array."""

    name: str
    to_bytes: Callable[[np.ndarray], bytes]
    from_bytes: Callable[[bytes, Sequence[int]], np.ndarray]

    def encode(self, values: np.ndarray) -> str:
        data = self.to_bytes(values)
        if len(data) <= FEW:
            return UNCOMPRESSED + base64.b64encode(data).decode("ascii")
        return base64.b64encode(gzip.compress(data, compresslevel=7, mtime=0)).decode("ascii")

    def decode(self, data: str, shape: Sequence[int]) -> np.ndarray:
        """What the page reads from encode(). ValueError if it is not of this shape."""
        if data.startswith(UNCOMPRESSED):
            return self.from_bytes(base64.b64decode(data[1:]), shape)
        return self.from_bytes(gzip.decompress(base64.b64decode(data)), shape)


def _roots(name: str, most: int, power: int) -> Codec:
    """A codec of numbers in [0, 1] as codes 0 .. most: value = (code / most) ** power, power 2 or 4."""

    def to_bytes(values: np.ndarray) -> bytes:
        codes = _quantised(values, most, power)
        return codes.astype(np.uint8).tobytes() if most == 255 else _halves(codes.astype(np.uint16))

    def from_bytes(data: bytes, shape: Sequence[int]) -> np.ndarray:
        codes = np.frombuffer(data, np.uint8) if most == 255 else _joined(data)
        return ((codes / float(most)) ** power).astype(np.float32).reshape(shape)

    return Codec(name, to_bytes, from_bytes)


def _quantised(values: np.ndarray, most: int, power: int) -> np.ndarray:
    """ValueError for numbers outside [0, 1]: they would come out as others."""
    if values.size and not (values.min() >= -_ROUNDING and values.max() <= 1 + _ROUNDING):
        raise ValueError(f"roots hold numbers from 0 to 1, found {values.min():g} to {values.max():g}")
    # Not in float32: where a root lies near the middle of two codes, its rounding would decide between them.
    roots = np.sqrt(np.clip(values, 0.0, 1.0), dtype=np.float64)
    return np.rint((roots if power == 2 else np.sqrt(roots)) * float(most))


def _signed_codes(values: np.ndarray) -> bytes:
    values = np.asarray(values, np.float64)
    limit = np.float32(np.abs(values[~np.isnan(values)]).max(initial=0.0))
    if not np.isfinite(limit):
        raise ValueError(f"signed16 holds finite float32 numbers, found {limit}")
    shares = np.minimum(1.0, np.abs(values) / (float(limit) or 1.0))
    found = np.where(np.isnan(values), _NAN, np.sign(values) * np.rint(np.sqrt(np.sqrt(shares)) * _LARGEST))
    return limit.astype("<f4").tobytes() + _halves(found.astype(np.int16).view(np.uint16))


def _signed(data: bytes, shape: Sequence[int]) -> np.ndarray:
    limit, found = np.frombuffer(data[:4], "<f4")[0], _joined(data[4:]).view(np.int16).astype(np.float64)
    values = np.sign(found) * limit * (np.abs(found) / _LARGEST) ** 4
    return np.where(found == _NAN, np.nan, values).astype(np.float32).reshape(shape)


def _halves(codes: np.ndarray) -> bytes:
    # All high bytes first: they repeat more than the low ones do, so gzip finds them.
    codes = codes.ravel()
    return (codes >> 8).astype(np.uint8).tobytes() + (codes & 255).astype(np.uint8).tobytes()


def _joined(data: bytes) -> np.ndarray:
    high, low = np.frombuffer(data, np.uint8).reshape(2, -1).astype(np.uint16)
    return (high << 8) | low


ROOT, SMALL, HALF = _roots("root16", 65535, 4), _roots("root8", 255, 4), _roots("root2", 255, 2)
SIGNED = Codec("signed16", _signed_codes, _signed)
EXACT = Codec(
    "float32",
    lambda values: np.ascontiguousarray(values, "<f4").tobytes(),
    lambda data, shape: np.frombuffer(data, "<f4").reshape(shape),
)
CODECS = {codec.name: codec for codec in (ROOT, SMALL, HALF, SIGNED, EXACT)}

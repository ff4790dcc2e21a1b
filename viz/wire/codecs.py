"""Codecs of the arrays that the server sends to the page; viz/web/explorer/trace.js decodes them.

An array is base64(gzip(bytes)), or "=" + base64(bytes) if it is small: gzip hardly shortens real weights, and browsers
decompress asynchronously, which would delay a sentence's first picture.

    root16    numbers in [0, 1] as uint16 q, value = (q / 65535)^4; all high bytes first, then all low bytes.
              The fourth root spends the bits evenly over all orders of magnitude, so that log scales are right, too:
              the error of a value v is at most 4 v^(3/4) / 131070, 3e-5 at v = 1 and 3e-8 at v = 1e-4
    root8     the same in 8 bits, (q / 255)^4, for thumbnails: within 1/64 at v = 1, and within a hundredth in the
              middle of a scale of four decades
    root2     the square root in 8 bits, (q / 255)^2, for the tiles of large maps: within 1/255 of the root, 0.002 at
              v = 0.06
    signed16  signed numbers of any size, or NaN. First the largest absolute value m as a little-endian float32, then
              int16 q as above: value = sign(q) m (|q| / 32767)^4, and q = -32768 is NaN. With r = |v / m|^(1/4) the
              error is at most m (4 r^3 + 4 / 32767) / 65534: 6.2e-5 m at v = m, 8e-9 m near 0
    float32   little-endian, exact

All of them keep zero exact, and raise ValueError for values out of their range.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

MAX_UNCOMPRESSED = 32_768  # bytes: a kind's weights for sentences of up to about 20 tokens
UNCOMPRESSED = "="  # base64 cannot begin with it
_ROUNDING = 1e-5  # by which a float32 softmax may exceed [0, 1]
_LARGEST, _NAN = 32767, -32768


@dataclass(frozen=True)
class Codec:
    """A name, array -> bytes, and (bytes, shape) -> float32 array."""

    name: str
    to_bytes: Callable[[np.ndarray], bytes]
    from_bytes: Callable[[bytes, Sequence[int]], np.ndarray]

    def encode(self, values: np.ndarray) -> str:
        """Encode an array as ASCII text."""
        data = self.to_bytes(values)
        if len(data) <= MAX_UNCOMPRESSED:
            return UNCOMPRESSED + base64.b64encode(data).decode("ascii")
        return base64.b64encode(gzip.compress(data, compresslevel=7, mtime=0)).decode("ascii")

    def decode(self, data: str, shape: Sequence[int]) -> np.ndarray:
        """Decode the result of encode(), as the page does. ValueError if it has another shape."""
        if data.startswith(UNCOMPRESSED):
            return self.from_bytes(base64.b64decode(data[1:]), shape)
        return self.from_bytes(gzip.decompress(base64.b64decode(data)), shape)


def _root_codec(name: str, most: int, power: int) -> Codec:
    """Make a codec of numbers in [0, 1] as codes 0 .. most: value = (code / most) ** power, power 2 or 4."""

    def to_bytes(values: np.ndarray) -> bytes:
        if values.size and not (values.min() >= -_ROUNDING and values.max() <= 1 + _ROUNDING):
            raise ValueError(f"root codecs hold numbers from 0 to 1, found {values.min():g} to {values.max():g}")
        # In float64: float32 rounding would change codes where a root lies halfway between two.
        roots = np.sqrt(np.clip(values, 0.0, 1.0), dtype=np.float64)
        codes = np.rint((roots if power == 2 else np.sqrt(roots)) * float(most))
        return codes.astype(np.uint8).tobytes() if most == 255 else _split_bytes(codes.astype(np.uint16))

    def from_bytes(data: bytes, shape: Sequence[int]) -> np.ndarray:
        codes = np.frombuffer(data, np.uint8) if most == 255 else _join_bytes(data)
        return ((codes / float(most)) ** power).astype(np.float32).reshape(shape)

    return Codec(name, to_bytes, from_bytes)


def _encode_signed(values: np.ndarray) -> bytes:
    values = np.asarray(values, np.float64)
    limit = np.float32(np.abs(values[~np.isnan(values)]).max(initial=0.0))
    if not np.isfinite(limit):
        raise ValueError(f"signed16 holds finite float32 numbers, found {limit}")
    shares = np.minimum(1.0, np.abs(values) / (float(limit) or 1.0))
    codes = np.where(np.isnan(values), _NAN, np.sign(values) * np.rint(np.sqrt(np.sqrt(shares)) * _LARGEST))
    return limit.astype("<f4").tobytes() + _split_bytes(codes.astype(np.int16).view(np.uint16))


def _decode_signed(data: bytes, shape: Sequence[int]) -> np.ndarray:
    limit, codes = np.frombuffer(data[:4], "<f4")[0], _join_bytes(data[4:]).view(np.int16).astype(np.float64)
    values = np.sign(codes) * limit * (np.abs(codes) / _LARGEST) ** 4
    return np.where(codes == _NAN, np.nan, values).astype(np.float32).reshape(shape)


def _split_bytes(codes: np.ndarray) -> bytes:
    # High bytes repeat more often than low bytes: together they compress better.
    codes = codes.ravel()
    return (codes >> 8).astype(np.uint8).tobytes() + (codes & 255).astype(np.uint8).tobytes()


def _join_bytes(data: bytes) -> np.ndarray:
    high, low = np.frombuffer(data, np.uint8).reshape(2, -1).astype(np.uint16)
    return (high << 8) | low


ROOT, SMALL, HALF = _root_codec("root16", 65535, 4), _root_codec("root8", 255, 4), _root_codec("root2", 255, 2)
SIGNED = Codec("signed16", _encode_signed, _decode_signed)
EXACT = Codec(
    "float32",
    lambda values: np.ascontiguousarray(values, "<f4").tobytes(),
    lambda data, shape: np.frombuffer(data, "<f4").reshape(shape),
)
CODECS = {codec.name: codec for codec in (ROOT, SMALL, HALF, SIGNED, EXACT)}

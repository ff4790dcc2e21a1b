"""Position codes: the sinusoidal one (Vaswani et al. 2017, section 3.5), the schemes it is compared with, and criteria.

judge() applies all CRITERIA to a scheme and names the positions that violate them; fewest_dimensions() finds the
smallest width with distinct codes, float32_error() what float32 makes of them, and weight_gradients() how the gradient
of a matrix that reads them grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.positions.geometry import pairwise_distances
from attention_atlas.model.nets.positions import (
    binary_encoding,
    count_encoding,
    normalised_count_encoding,
    sine_encoding,
    sinusoidal_encoding,
    tutorial_encoding,
)
from attention_atlas.model.trace.language import say


def paper_encoding(
    positions: Tensor, d_model: int, *, length: int, base: float, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return sinusoidal_encoding() with the signature of the other schemes: [length, d_model]."""
    return sinusoidal_encoding(positions, d_model, base=base, dtype=dtype).double()


@dataclass(frozen=True)
class Scheme:
    """A position code.

    encode  (positions [n], d_model, *, length, base, dtype) -> [n, width]; only one scheme uses `length`, that of
            the sentence. dtype: of the computation
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
    Scheme(say("sine only, exponent 2j/d"), "sin(pos / base^(2j/d))", partial(sine_encoding, factor=2)),
    Scheme(say("sine and cosine"), "sin, cos(pos / base^(2i/d))", paper_encoding, step=2),
)


def fit(scheme: Scheme, length: int) -> Scheme:
    """Return the binary index with as many bits as the positions of the longest text need, which is `length` tokens
    long. Other schemes are returned as they are."""
    if scheme.encode is not binary_encoding:
        return scheme
    bits = max(1, (length - 1).bit_length())

    def encode(positions: Tensor, d_model: int, **options: object) -> Tensor:
        return binary_encoding(positions, bits, **options)

    return replace(scheme, encode=encode, rows=2**bits)


def of_table(name: str, encode: Callable[[int], Tensor], *, rows: int | None) -> Scheme:
    """Return a model's own position table as a scheme. encode(length) -> [length, d_model], in float32, whose rounding
    is tolerated. rows: the number of rows; None for any number."""

    def encode_rows(positions: Tensor, d_model: int, *, length: int, base: float) -> Tensor:
        return encode(int(positions.max()) + 1)[positions].detach().double().cpu()

    return Scheme(name, "", encode_rows, same=1e-4, rows=rows)


SAME = Scheme.same  # codes closer than this are equal
LONGER = 4  # "any length" is tested at this multiple of the length


@dataclass(frozen=True)
class Verdict:
    """The verdict on one criterion: whether it is met, the measured value, and in words the positions that violate it
    or come closest to it."""

    passed: bool
    measured: float
    shown_by: str


def closest_pair(table: np.ndarray) -> tuple[float, int, int]:
    """Return the smallest Euclidean distance between two rows of table [length, width], and the two positions."""
    if len(table) < 2:
        return float("inf"), 0, 0
    gaps = pairwise_distances(table)
    gaps[np.diag_indices(len(gaps))] = np.inf
    first, second = np.unravel_index(gaps.argmin(), gaps.shape)
    return float(gaps[first, second]), int(min(first, second)), int(max(first, second))


def nearest_to(
    scheme: Scheme, position: int, length: int, d_model: int, *, base: float = 10_000.0
) -> tuple[float, int]:
    """Return the distance and the position, of 0 .. length - 1, whose code is nearest to that of `position`.

    `position` may be negative: an index of -1 arises from an off-by-one error in a mask or a shift.
    """
    gaps = np.linalg.norm(
        scheme.table(length, d_model, base=base) - scheme.at(position, length, d_model, base=base), axis=-1
    )
    return float(gaps.min()), int(gaps.argmin())


def unique(scheme: Scheme, length: int, d_model: int, base: float) -> Verdict:
    table, again = (scheme.table(length, d_model, base=base) for _ in range(2))
    gap, first, second = closest_pair(table)
    passed = gap > scheme.same and np.array_equal(table, again)
    return Verdict(
        passed,
        gap,
        say("closest codes: positions {first} and {second}, {gap} apart", first=first, second=second, gap=f"{gap:.3g}"),
    )


def length_independent(scheme: Scheme, length: int, d_model: int, base: float) -> Verdict:
    longer = scheme.table(_longer(scheme, length), d_model, base=base)
    here = scheme.table(length, d_model, base=base)
    change = np.abs(here - longer[:length]).max(-1)
    at = int(change.argmax())
    return Verdict(
        bool(change[at] <= scheme.same),
        float(change[at]),
        say(
            "position {at} of {n} and of {m} tokens: codes differ by {gap}",
            at=at,
            n=length,
            m=_longer(scheme, length),
            gap=f"{change[at]:.3g}",
        ),
    )


def extends(scheme: Scheme, length: int, d_model: int, base: float) -> Verdict:
    same = length_independent(scheme, length, d_model, base)
    if not same.passed:
        return same
    if scheme.rows is not None and scheme.rows < LONGER * length:
        evidence = say("there are {n} rows, and none for position {next}", n=scheme.rows, next=scheme.rows)
        return Verdict(False, 0.0, evidence)
    gap, first, second = closest_pair(scheme.table(LONGER * length, d_model, base=base))
    return Verdict(
        gap > scheme.same,
        gap,
        say(
            "closest codes of {n}: positions {first} and {second}, {gap} apart",
            n=LONGER * length,
            first=first,
            second=second,
            gap=f"{gap:.3g}",
        ),
    )


def equal_offsets(scheme: Scheme, length: int, d_model: int, base: float) -> Verdict:
    """The largest difference between the distances of two pairs with the same offset."""
    gaps = pairwise_distances(scheme.table(length, d_model, base=base))
    worst, evidence = 0.0, say("every offset has one distance")
    for offset in range(1, length):
        along = gaps.diagonal(offset)
        spread = float(along.max() - along.min())
        if spread > worst:
            low, high = int(along.argmin()), int(along.argmax())
            worst = spread
            evidence = say(
                "{k} apart: positions {a} and {b} are {gap} apart, {c} and {d} {other}",
                k=offset,
                a=low,
                b=low + offset,
                gap=f"{along[low]:.3g}",
                c=high,
                d=high + offset,
                other=f"{along[high]:.3g}",
            )
    return Verdict(worst <= scheme.same, worst, evidence)


def bounded(scheme: Scheme, length: int, d_model: int, base: float) -> Verdict:
    longer = _longer(scheme, length)
    sizes = np.abs(scheme.table(longer, d_model, base=base)).max(-1)
    at = int(sizes.argmax())
    return Verdict(
        bool(sizes[at] <= 1.0 + scheme.same),
        float(sizes[at]),
        say("position {at} of {n} holds {value}", at=at, n=longer, value=f"{sizes[at]:.4g}"),
    )


def _longer(scheme: Scheme, length: int) -> int:
    """Return the length at which "any length" is tested, at most the number of codes."""
    return LONGER * length if scheme.rows is None else min(LONGER * length, scheme.rows)


CRITERIA = {  # check -> its name and meaning
    unique: (say("unique"), say("no two positions share a code, and the same position always gets the same one")),
    length_independent: (
        say("length-independent"),
        say("a position's code does not depend on how long the sentence is"),
    ),
    extends: (
        say("extends"),
        say(
            "at {n} times the length, every position still has a code of its own, and the earlier codes are unchanged",
            n=LONGER,
        ),
    ),
    equal_offsets: (say("equal offsets"), say("positions k apart are equally far apart everywhere in the sentence")),
    bounded: (say("bounded"), say("no value exceeds 1, not even at {n} times the length", n=LONGER)),
}


def judge(scheme: Scheme, length: int, d_model: int, *, base: float = 10_000.0) -> tuple[Verdict, ...]:
    """Return a verdict for each of CRITERIA, on sentences of `length` tokens; a binary index has the bits that these
    need. Raises ValueError for a length below 2 or above the number of codes."""
    scheme = fit(scheme, length)
    if length < 2:
        raise ValueError(f"length must be at least 2 to compare positions, found {length}")
    if scheme.rows is not None and length > scheme.rows:
        raise ValueError(f"there are {scheme.rows} rows, found a length of {length}")
    return tuple(check(scheme, length, d_model, base) for check in CRITERIA)


def float32_error(scheme: Scheme, length: int, d_model: int, *, base: float = 10_000.0) -> float:
    """Return the largest difference between the codes computed in float32 and in float64."""
    table, exact = (
        scheme.encode(torch.arange(length), d_model, length=length, base=base, dtype=dtype).double()
        for dtype in (torch.float32, torch.float64)
    )
    return float((table - exact).abs().max())


def weight_gradients(table: np.ndarray) -> np.ndarray:
    """Return the Frobenius norm of dL/dW where W reads each row x of table [position, width]: float64 [position].

    The output is y = W x, and dL/dy is one fixed vector of norm 1, so that dL/dW = dL/dy x^T grows with x.
    """
    rows = torch.as_tensor(table, dtype=torch.float64)
    weight = torch.zeros(4, rows.shape[1], dtype=torch.float64, requires_grad=True)
    upstream = torch.full((4,), 0.5, dtype=torch.float64)
    gradients = (torch.autograd.grad(upstream @ (weight @ x), weight)[0] for x in rows)
    return np.array([float(gradient.norm()) for gradient in gradients])


def fewest_dimensions(
    scheme: Scheme, length: int, *, margin: float = SAME, limit: int = 64, base: float = 10_000.0
) -> tuple[int | None, float, tuple[int, int]]:
    """Return the smallest width whose two closest codes are more than `margin` apart, or None within the limit.

    Further their distance and their positions, for that width or else for the last one that was tried.
    """
    widths = (1,) if scheme.step == 0 else range(scheme.step, limit + 1, scheme.step)
    gap, pair = 0.0, (0, 0)
    for width in widths:
        gap, *pair = closest_pair(scheme.table(length, width, base=base))
        if gap > margin:
            return width, gap, tuple(pair)
    return None, gap, tuple(pair)

"""What a measure found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from viz.wire.blocks import compact


class Unit(str, Enum):
    """How a number is written."""

    SHARE = "share"  # of 1: in percent
    POINTS = "points"  # a difference of shares: its percentage points, without a sign for them
    COUNT = "count"
    ERROR = "error"  # a difference that should be none
    NATS = "nats"


@dataclass(frozen=True)
class Measured:
    """value: None where there is nothing to measure, such as a word that was not written: the claim is then not
    fulfilled. also: what a claim's text may name besides {value}. row: the decoder's row whose number it is, which the
    stop's view then pins; None: the one that is about to write the pair's translation."""

    value: float | None
    unit: Unit = Unit.SHARE
    also: Mapping[str, object] = field(default_factory=dict)
    row: int | None = None


NOTHING = Measured(None)


def written(value: float | None, unit: Unit) -> str:
    """A number as the page writes it, in every language alike."""
    return "–" if value is None else _WRITTEN[unit](value)


def share(value: float) -> str:
    """In percent, with the digits that still say something; nothing but the whole is 100 %, nothing but nothing 0 %."""
    if value <= 0:
        return "0%"
    if value < 0.001:
        return compact(value, 2)
    return f"{value:.1%}" if value < 0.1 or 0.99 < value < 0.9995 else f"{value:.0%}"


def tenths(value: float) -> str:
    """In percent, with one digit after the point: for numbers whose difference or ratio stands beside them."""
    return f"{value:.1%}" if value >= 0.001 else share(value)


def _points(value: float) -> str:
    return f"{100 * value:.1f}".removesuffix(".0")


def _error(value: float) -> str:
    return compact(value, 2)


_WRITTEN: Mapping[Unit, Callable[[float], str]] = {
    Unit.SHARE: share,
    Unit.POINTS: _points,
    Unit.COUNT: "{:.0f}".format,
    Unit.ERROR: _error,
    Unit.NATS: "{:.1f}".format,
}

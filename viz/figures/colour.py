"""From a weight to its place on a colour scale, and a legend that shows it truthfully."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from viz import theme

DECADES = 4  # a log scale ends this many powers of ten below its maximum


class Transform(str, Enum):
    """How weights are spread over the colours."""

    LINEAR = "linear"
    SQRT = "sqrt"
    LOG = "log"


@dataclass(frozen=True)
class ColourScale:
    """name: one of theme.SCALES. maximum: the weight of the last colour (1 makes all heads comparable)."""

    name: str = "viridis"
    transform: Transform = Transform.LINEAR
    maximum: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", Transform(self.transform))
        if self.name not in theme.SCALES:
            raise ValueError(f"a colour scale is one of {', '.join(theme.SCALES)}, found {self.name!r}")
        if not self.maximum > 0:
            raise ValueError(f"a colour scale's maximum must be positive, found {self.maximum}")

    @classmethod
    def meant(cls, scale: ColourScale | str | None) -> ColourScale:
        """The scale itself, or the one of this name; None: the usual one."""
        return scale if isinstance(scale, ColourScale) else cls() if scale is None else cls(scale)

    def place(self, values: np.ndarray) -> np.ndarray:
        """Values of any shape -> place on the scale, 0 to 1 (float64); NaN stays NaN."""
        share = np.clip(np.asarray(values, np.float64) / self.maximum, 0.0, 1.0)
        if self.transform == Transform.SQRT:
            return np.sqrt(share)
        if self.transform == Transform.LOG:
            return 1.0 + np.log10(np.maximum(share, 10.0**-DECADES)) / DECADES
        return share

    def ticks(self) -> tuple[list[float], list[str]]:
        """Places on the scale and the weights they stand for. A log scale's lowest colour means that or less."""
        if self.transform == Transform.LOG:
            values = [self.maximum * 10.0**-power for power in range(DECADES, -1, -1)]
        elif self.transform == Transform.SQRT:
            values = [self.maximum * share for share in (0.0, 0.05, 0.2, 0.5, 1.0)]
        else:
            values = [self.maximum * share for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        texts = [f"{value:.3g}" for value in values]
        if self.transform == Transform.LOG:
            texts[0] = "≤ " + texts[0]
        return [float(p) for p in self.place(np.array(values))], texts

    def plotly(self) -> list[list]:
        """The colours as Plotly's colorscale."""
        colours = theme.SCALES[self.name]
        return [[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)]

"""How much of a decision a circuit keeps, measured on pairs that it was not found with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attention_atlas.model.trace.language import Refusal

if TYPE_CHECKING:
    import pandas as pd

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the edges (Mueller et al. 2025, MIB)
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Curve:
    """At each share of the edges: faithfulness f = (m(circuit) - m(none)) / (m(all) - m(none)), with m the lead of the
    right token; its 95 % bootstrap interval over pairs, [share, 2]. edges: how many were left. cpr: the area under f
    (large is good); cmd: the area between f and 1 (small is good), both over the share of edges."""

    edges: tuple[int, ...]
    faithfulness: np.ndarray
    interval: np.ndarray
    cpr: float
    cmd: float


@dataclass(frozen=True, eq=False)
class Tested:
    """best: the edges with the largest scores, on paths to the logits; nodes: all edges between the best whole nodes;
    random: edges drawn by lot; each at most as many as the share says, over so many pairs."""

    shares: tuple[float, ...]
    best: Curve
    nodes: Curve
    random: Curve
    pairs: int

    def to_frame(self) -> pd.DataFrame:
        """A pandas table, one row a share and kind of circuit."""
        import pandas as pd  # nothing else here needs it

        return pd.concat(
            pd.DataFrame(
                {
                    "circuit": name,
                    "share": self.shares,
                    "edges": curve.edges,
                    "faithfulness": curve.faithfulness,
                    "low": curve.interval[:, 0],
                    "high": curve.interval[:, 1],
                }
            )
            for name, curve in (("best", self.best), ("nodes", self.nodes), ("random", self.random))
        ).reset_index(drop=True)


def tested(leads: np.ndarray, masks: np.ndarray, shares: Sequence[float] = SHARES, seed: int = 0) -> Tested:
    """leads float64 [2 + kind * share, pair]: of none, of all, and of masks bool [kind, share, edge]. A Refusal where
    none and all are the same."""
    low, high, *kept = leads
    if not abs((high - low).mean()) > 0:
        raise Refusal("The changed sentence leads to the same decision: there is nothing to explain.")
    rows = np.random.default_rng(seed).integers(len(low), size=(RESAMPLES, len(low)))

    def curve(leads: np.ndarray, chosen: np.ndarray) -> Curve:
        faithful = _share(leads, low, high)
        drawn = np.stack([_share(leads[:, row], low[row], high[row]) for row in rows])
        interval = np.nanpercentile(drawn, (2.5, 97.5), axis=0).T
        counts = tuple(int(mask.sum()) for mask in chosen)
        return Curve(counts, faithful, interval, _area(faithful, shares), _area(np.abs(1 - faithful), shares))

    curves = map(curve, np.stack(kept).reshape(*masks.shape[:2], -1), masks)
    return Tested(tuple(shares), *curves, pairs=len(low))


def _share(leads: np.ndarray, none: np.ndarray, whole: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):  # of a draw in which nothing differs
        return (leads.mean(-1) - none.mean()) / (whole.mean() - none.mean())


def _area(heights: np.ndarray, at: Sequence[float]) -> float:
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(at)).sum())

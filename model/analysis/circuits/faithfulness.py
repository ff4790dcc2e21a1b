"""How faithful circuits of different sizes are: how much of a decision they keep on pairs not used to find them."""

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
    """Faithfulness at each share of the edges.

    edges         number of edges kept at each share
    faithfulness  float64 [share], f = (m(circuit) - m(none)) / (m(all) - m(none)), m the right token's mean lead
    interval      float64 [share, 2], its 95 % bootstrap interval over pairs
    cpr           area under f over the share of edges; large is good
    cmd           area between f and 1; small is good
    """

    edges: tuple[int, ...]
    faithfulness: np.ndarray
    interval: np.ndarray
    cpr: float
    cmd: float


@dataclass(frozen=True, eq=False)
class FaithfulnessCurves:
    """The faithfulness of three kinds of circuit at the same shares of the edges, over `num_pairs` pairs.

    best    the edges with the largest scores that lie on paths to the logits
    nodes   all edges between the best whole nodes
    random  edges drawn at random
    """

    shares: tuple[float, ...]
    best: Curve
    nodes: Curve
    random: Curve
    num_pairs: int

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with a row for each share and kind of circuit."""
        import pandas as pd  # an optional dependency

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


def compute_curves(
    leads: np.ndarray, masks: np.ndarray, shares: Sequence[float] = SHARES, seed: int = 0
) -> FaithfulnessCurves:
    """Return the curves of the masks bool [3, share, edge] of the best, whole-node and random edges.

    leads: float64 [2 + 3 * share, pair], with no edge, with all edges, and with each mask. Raises a Refusal if no edge
    and all edges have the same mean lead.
    """
    none, full, *partial = leads
    if not abs((full - none).mean()) > 0:
        raise Refusal("The changed sentence leads to the same decision: there is nothing to explain.")
    rows = np.random.default_rng(seed).integers(len(none), size=(RESAMPLES, len(none)))

    def compute_curve(leads: np.ndarray, masks: np.ndarray) -> Curve:
        faithfulness = _faithfulness(leads, none, full)
        resampled = np.stack([_faithfulness(leads[:, row], none[row], full[row]) for row in rows])
        return Curve(
            tuple(int(mask.sum()) for mask in masks),
            faithfulness,
            np.nanpercentile(resampled, (2.5, 97.5), axis=0).T,
            _area(faithfulness, shares),
            _area(np.abs(1 - faithfulness), shares),
        )

    curves = map(compute_curve, np.stack(partial).reshape(*masks.shape[:2], -1), masks)
    return FaithfulnessCurves(tuple(shares), *curves, num_pairs=len(none))


def _faithfulness(leads: np.ndarray, none: np.ndarray, full: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may hold only pairs without a difference
        return (leads.mean(-1) - none.mean()) / (full.mean() - none.mean())


def _area(heights: np.ndarray, at: Sequence[float]) -> float:
    """Return the area under a curve by trapezoids."""
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(at)).sum())

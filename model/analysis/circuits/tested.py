"""How much of a decision a circuit keeps, measured on pairs that it was not found with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from model.analysis.circuits.pairs import Pair, batch
from model.analysis.circuits.scores import TOGETHER, Circuit, Contrast
from model.trace.language import Refusal
from model.translator import Translator

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the edges (Mueller et al. 2025, MIB)
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Tested:
    """At each share of the edges: faithfulness f = (m(circuit) - m(none)) / (m(all) - m(none)), with m the lead of the
    right token, its 95 % bootstrap interval over pairs, and as many edges drawn by lot. edges: how many were left, on
    paths to the logits. cpr: the area under f (large is good); cmd: the area between f and 1 (small is good), both over
    the share of edges."""

    shares: tuple[float, ...]
    edges: tuple[int, ...]
    faithfulness: np.ndarray
    interval: np.ndarray  # [share, 2]
    random: np.ndarray
    cpr: float
    cmd: float
    pairs: int

    def to_frame(self):
        """A pandas table, one row a share."""
        import pandas as pd  # nothing else here needs it

        low, high = self.interval.T
        columns = {"share": self.shares, "edges": self.edges, "faithfulness": self.faithfulness, "low": low}
        return pd.DataFrame({**columns, "high": high, "random": self.random})


def tested(
    translator: Translator,
    circuit: Circuit,
    pairs: Sequence[Pair],
    *,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    watch: Callable[[int, int], object] = lambda done, total: None,
) -> Tested:
    """The circuit's best edges at each share, run on pairs. watch hears how many of how many runs are done. ValueError
    for a circuit of other weights, for no pairs, and where the two sentences of the pairs are all the same to the
    model. Six parameters: three of them say how to measure."""
    if circuit.digest != translator.digest:
        raise ValueError(f"this circuit is of other weights ({circuit.digest}, here {translator.digest})")
    chance, size = np.random.default_rng(seed), len(circuit.scores)
    counts = [max(1, round(share * size)) for share in shares]
    chosen = [circuit.best(count) for count in counts]
    by_lot = [np.isin(np.arange(size), chance.permutation(size)[:count]) for count in counts]
    parts = [pairs[start : start + TOGETHER] for start in range(0, len(pairs), TOGETHER)] or [pairs]
    none, whole, kept, random = [], [], [], []
    for number, part in enumerate(parts):
        contrast = Contrast(translator, circuit.graph, batch(part, translator.config.pad_id, translator.device))
        none += contrast.changed_lead.tolist()
        whole += contrast.lead.tolist()
        for found, masks in ((kept, chosen), (random, by_lot)):
            found.append(np.stack([contrast.kept(mask).cpu().numpy() for mask in masks]))
            watch(2 * number + 1 + (found is random), 2 * len(parts))
    low, high = np.array(none), np.array(whole)
    if not abs((high - low).mean()) > 0:
        raise Refusal("The changed sentence leads to the same decision: there is nothing to explain.")
    leads, lots = (np.concatenate(found, axis=1) for found in (kept, random))  # [share, pair]
    faithful = _share(leads, low, high)
    rows = chance.integers(len(pairs), size=(RESAMPLES, len(pairs)))
    drawn = np.stack([_share(leads[:, row], low[row], high[row]) for row in rows])
    return Tested(
        tuple(shares),
        tuple(int(mask.sum()) for mask in chosen),
        faithful,
        np.nanpercentile(drawn, (2.5, 97.5), axis=0).T,
        _share(lots, low, high),
        _area(faithful, shares),
        _area(np.abs(1 - faithful), shares),
        len(pairs),
    )


def _share(leads: np.ndarray, none: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return (leads.mean(-1) - none.mean()) / (whole.mean() - none.mean())


def _area(heights: np.ndarray, at: Sequence[float]) -> float:
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(at)).sum())

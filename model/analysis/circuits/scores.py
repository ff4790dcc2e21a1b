"""What each edge is worth for a decision."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from torch import Tensor

from model.analysis.circuits.graph import Edge, Graph, graph
from model.analysis.circuits.pairs import Batch, Pair, batch
from model.analysis.circuits.passing import Passing, Written, logits_of
from model.nets.networks import check_transformer
from model.trace.kinds import Side
from model.translator import Translator

TOGETHER = 16  # pairs of one pass
STEPS = 5  # of EAP-IG


class Method(str, Enum):
    """EAP: one gradient at the sentence (Syed et al. 2023). EAP_IG: the mean of gradients on the way from the changed
    sentence's embeddings to the sentence's (Hanna et al. 2024). EXACT: each edge cut by itself, one pass an edge."""

    EAP = "eap"
    EAP_IG = "eap-ig"
    EXACT = "exact"


@dataclass(frozen=True, eq=False)
class Circuit:
    """scores float64 [edge], in nats: by how much the lead of the right token grows if the edge carries what the
    changed sentence puts into it; negative: the edge speaks for the token. metric, changed: that lead with the sentence
    and with the changed one, means over the pairs."""

    graph: Graph
    method: Method
    scores: np.ndarray
    metric: float
    changed: float
    pairs: int
    digest: str

    def best(self, count: int) -> np.ndarray:
        """Of so many edges with the largest scores, whatever their sign, those on a path to the logits: bool [edge]."""
        chosen = np.zeros(len(self.scores), bool)
        chosen[np.argsort(-np.abs(self.scores), kind="stable")[:count]] = True
        return self.graph.on_paths(chosen)

    def tried(self, count: int) -> int:
        """How many of the best edges one has to take for `count` of them to lie on paths."""
        return bisect_left(range(len(self.scores)), count, key=lambda n: int(self.best(n).sum()))

    def edges(self, count: int) -> list[tuple[Edge, float]]:
        """best(tried(count)) with their scores, the largest first."""
        kept = np.flatnonzero(self.best(self.tried(count)))
        return [(self.graph.edges[i], float(self.scores[i])) for i in kept[np.argsort(-np.abs(self.scores[kept]))]]

    def to_frame(self):
        """A pandas table of all edges, the largest scores first."""
        import pandas as pd  # nothing else here needs it

        table = pd.DataFrame(
            [(edge.sender, edge.receiver, score) for edge, score in zip(self.graph.edges, self.scores)],
            columns=["sender", "receiver", "score"],
        )
        return table.sort_values("score", key=np.abs, ascending=False, ignore_index=True)


def find(
    translator: Translator, pairs: Sequence[Pair], method: Method | str = Method.EAP_IG, *, steps: int = STEPS
) -> Circuit:
    """Every edge's score over pairs. steps: of EAP-IG. ValueError for no pairs; a Refusal, in words, for a model whose
    stream is no sum (graph)."""
    check_transformer(translator.model)
    edges, method = graph(translator.config), Method(method)
    total, leads, changed = np.zeros(len(edges)), [], []
    for start in range(0, max(len(pairs), 1), TOGETHER):
        part = batch(pairs[start : start + TOGETHER], translator.config.pad_id, translator.device)
        contrast = Contrast(translator, edges, part)
        total += contrast.scores(method, steps)
        leads += contrast.lead.tolist()
        changed += contrast.changed_lead.tolist()
    return Circuit(
        edges,
        method,
        total / len(pairs),
        float(np.mean(leads)),
        float(np.mean(changed)),
        len(pairs),
        translator.digest,
    )


class Contrast:
    """A batch of pairs with both of their passes: what every sender wrote for the sentences, and for the changed ones;
    lead, changed_lead float64 [batch]."""

    def __init__(self, translator: Translator, edges: Graph, pairs: Batch) -> None:
        self.model, self.edges, self.batch = translator.model, edges, pairs
        with torch.inference_mode(False), torch.no_grad():
            self.lead, self.own = self._plain(pairs.source)
            self.changed_lead, self.other = self._plain(pairs.other)

    def _plain(self, source: Tensor) -> tuple[Tensor, Written]:
        passing = Passing(self.model, self.edges)
        return self.leads(passing.run(source, self.batch.target)), passing.written

    def leads(self, hidden: Tensor) -> Tensor:
        """The right token's logit less the other's, at each pair's row: float64 [batch]."""
        logits = logits_of(self.model, self.batch.at_last(hidden), self.batch.tokens).double()
        return logits[:, 0] - logits[:, 1]

    def scores(self, method: Method, steps: int) -> np.ndarray:
        """Of every edge, float64 [edge], summed over the batch."""
        if method is Method.EXACT:
            return np.array([self.cut(index) for index in range(len(self.edges))])
        change = {side: torch.cat(self.own.parts[side]) - torch.cat(self.other.parts[side]) for side in Side}
        if method is Method.EAP:
            return self._slopes(self.batch.source, None, change)
        with torch.inference_mode(False), torch.no_grad():
            rows, other = (self.model.token_rows(ids) for ids in (self.batch.source, self.batch.other))
            target = self.model.token_rows(self.batch.target, decoder=True)
        found = [
            self._slopes(self.batch.source, (other + step / steps * (rows - other), target), change)
            for step in range(1, steps + 1)
        ]
        return np.mean(found, axis=0)

    def _slopes(self, source: Tensor, rows: tuple[Tensor, Tensor] | None, change: dict[Side, Tensor]) -> np.ndarray:
        """The lead's slope by every gate where all are open, with the sign of closing it: (what the changed sentence
        puts into the edge, less what the sentence does) times the lead's slope by the receiver's input."""
        with torch.inference_mode(False), torch.enable_grad():
            gates = torch.ones(len(self.edges), device=source.device, requires_grad=True)
            hidden = Passing(self.model, self.edges, gates, change=change).run(source, self.batch.target, rows)
            (slopes,) = torch.autograd.grad(self.leads(hidden).sum(), gates)
        return -slopes.double().cpu().numpy()

    def cut(self, index: int) -> float:
        """What the leads gain together when one edge carries the changed sentence's part."""
        gates = np.ones(len(self.edges))
        gates[index] = 0
        return float((self.kept(gates) - self.lead).sum())

    @torch.no_grad()
    def kept(self, gates: np.ndarray) -> Tensor:
        """The leads, float64 [batch], where the edges of open gates carry this pass's values and the others the changed
        sentence's."""
        open_gates = torch.as_tensor(gates, dtype=torch.float32, device=self.batch.source.device)
        passing = Passing(self.model, self.edges, open_gates, other=self.other)
        return self.leads(passing.run(self.batch.source, self.batch.target))

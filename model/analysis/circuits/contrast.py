"""Both passes of a batch of pairs, and every run between them."""

from __future__ import annotations

from enum import Enum

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.circuits.graph import Graph
from attention_atlas.model.analysis.circuits.pairs import Batch
from attention_atlas.model.analysis.circuits.passing import Passing, Written, logits_of
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator


class Method(str, Enum):
    """EAP: one gradient at the sentence (Syed et al. 2023). EAP_IG: the mean of gradients on the way from the changed
    sentence's embeddings to the sentence's (Hanna et al. 2024); where the sentences have different numbers of tokens,
    on the way of opening all gates together. EXACT: each edge cut by itself, one pass an edge."""

    EAP = "eap"
    EAP_IG = "eap-ig"
    EXACT = "exact"


class Contrast:
    """A batch of pairs with both of their passes: what every sender wrote for the sentences, and for the changed ones;
    lead, changed_lead float64 [batch]."""

    def __init__(self, translator: Translator, edges: Graph, pairs: Batch) -> None:
        self.model, self.edges, self.batch = translator.model, edges, pairs
        with torch.inference_mode(False), torch.no_grad():
            self.lead, self.own = self._plain(pairs.source)
            self.changed_lead, self.other = self._plain(pairs.other)
        if not pairs.aligned:
            self.other.parts[Side.ENCODER].clear()

    def _plain(self, source: Tensor) -> tuple[Tensor, Written]:
        passing = Passing(self.model, self.edges)
        return self.leads(passing.run(source, self.batch.target)), passing.written

    def leads(self, hidden: Tensor) -> Tensor:
        """The right token's logit less the other's, at each pair's row: float64 [batch]."""
        logits = exact(logits_of(self.model, self.batch.at_last(hidden), self.batch.tokens))
        return logits[:, 0] - logits[:, 1]

    def scores(self, method: Method, steps: int) -> np.ndarray:
        """Of every edge, float64 [edge], summed over the batch."""
        if method is Method.EXACT:
            return np.array([self.cut(index) for index in range(len(self.edges))])
        change = {
            side: torch.cat(self.own.parts[side]) - torch.cat(parts)
            for side, parts in self.other.parts.items()
            if parts
        }
        if method is Method.EAP:
            return self._slopes(change)
        if not self.batch.aligned:
            return np.mean([self._slopes(None, level=step / steps) for step in range(1, steps + 1)], axis=0)
        with torch.inference_mode(False), torch.no_grad():
            rows, other = (self.model.token_rows(ids) for ids in (self.batch.source, self.batch.other))
            target = self.model.token_rows(self.batch.target, decoder=True)
        found = [self._slopes(change, (other + step / steps * (rows - other), target)) for step in range(1, steps + 1)]
        return np.mean(found, axis=0)

    def _slopes(
        self, change: dict[Side, Tensor] | None, rows: tuple[Tensor, Tensor] | None = None, level: float = 1.0
    ) -> np.ndarray:
        """The lead's slope by every gate where all are as open as level says, with the sign of closing it: (what the
        changed sentence puts into the edge, less what the sentence does) times the lead's slope by the receiver's
        input. change, rows: as Passing has them."""
        with torch.inference_mode(False), torch.enable_grad():
            gates = torch.full((len(self.edges),), level, device=self.batch.source.device, requires_grad=True)
            passing = Passing(self.model, self.edges, gates, self.other, change)
            hidden = passing.run(self.batch.source, self.batch.target, rows)
            (slopes,) = torch.autograd.grad(self.leads(hidden).sum(), gates)
        return -slopes.cpu().double().numpy()

    def found(self, method: Method, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """scores(), and both leads [2, batch]."""
        ends = torch.stack([self.lead, self.changed_lead]).cpu().numpy()
        return self.scores(method, steps), ends

    def runs(self, masks: np.ndarray) -> np.ndarray:
        """The leads, float64 [2 + mask, batch]: with no edge, with all, and with each mask's of masks bool [mask,
        edge]."""
        kept = [self.lead if mask.all() else self.kept(mask) for mask in masks]
        return torch.stack([self.changed_lead, self.lead, *kept]).cpu().numpy()

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

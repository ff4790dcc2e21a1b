"""The fewest heads that keep a translation: taken away in an order, by halves, until none can go any more.

For greedy decoding, the same most probable token at every row of the given translation means the same translation, so
that a set of heads costs one pass, and many sets one batch. The result is 1-minimal for this sentence, not the smallest
of all; another order may end elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from model.analysis.why.case import Case
from model.analysis.why.experiments.heads import Instead, all_heads, closed
from model.decode.greedy import greedy
from model.nets.masks import causal_mask
from model.nets.sweep import Sweep
from model.trace.kinds import AttentionKind
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.trace.why.heads import Head, SmallestSet
from model.translator import Translator

SHARES = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05)  # of an order, tried in one batch


@dataclass(frozen=True, eq=False)
class Whole:
    """A case over all rows of a translation, and the ids [target] that each row wrote; forced: how many of the first
    were given to the decoder, and are not asked about; end_id: what ends a translation."""

    case: Case
    target_ids: torch.Tensor
    forced: int
    end_id: int

    @torch.inference_mode()
    def margins(self, sets: Sequence[Sequence[Head]], instead: Instead) -> tuple[np.ndarray, np.ndarray]:
        """Row i without the heads of sets[i]: by how much each token that was written leads over every other one,
        float64 [batch, target], and the sum of their log-probabilities [batch]."""
        leads, sums = [], []
        for part in self.case.chunks(len(sets)):
            logits = self._logits(sets[part], instead)
            written = self.target_ids[None, :, None].expand(len(logits), -1, -1)
            chosen = logits.gather(-1, written)
            sums.append((chosen[..., 0] - logits.logsumexp(-1)).sum(-1).double().cpu().numpy())
            banned = list(self.case.model.config.banned_ids)
            logits[..., banned] = float("-inf")
            lead = chosen[..., 0] - logits.scatter(-1, written, float("-inf")).amax(-1)
            leads.append(lead[:, self.forced:].double().cpu().numpy())
        return np.concatenate(leads), np.concatenate(sums)

    def _logits(self, sets: Sequence[Sequence[Head]], instead: Instead) -> torch.Tensor:
        case = self.case
        gates = closed(case, sets)
        sweep = Sweep(case.interventions, gates, {kind: instead[kind] for kind in gates if kind in instead})
        if any(kind is AttentionKind.ENCODER_SELF for heads in sets for kind, _, _ in heads):
            memory = case.encode(case.source_rows.expand(len(sets), -1, -1), changes=sweep)
        else:
            memory = case.shared_memory(len(sets))
        rows = case.model.place(case.target_rows.expand(len(sets), -1, -1), sweep.target_positions, decoder=True)
        mask = causal_mask(rows.shape[1], device=rows.device)
        hidden, _ = case.model.decoder(rows, mask, memory, interventions=sweep)
        return case.model.project(hidden)


def whole(case: Case, translator: Translator, trace: TranslationTrace) -> Whole:
    """The same case over every row of its trace."""
    device = case.source_ids.device
    question = replace(case.question, step=len(trace.target_ids) - 1)
    case = replace(case, question=question, decoder_ids=torch.tensor([trace.decoder_ids], device=device))
    return Whole(case, torch.tensor(trace.target_ids, device=device), len(translator.forced_prefix(trace.direction)),
                 translator.tokenizer.end_id)


def smallest_set(found: Whole, instead: Instead, *, seed: int | None = None) -> SmallestSet:
    """Take heads away for as long as every row still writes its token. Order: those first whose loss alone costs the
    translation the least log-probability; with a seed, shuffled a little, so that several orders can be compared.

    ValueError if the plain model does not write this translation (one that a person forced, or a tie).
    """
    heads = all_heads(found.case)
    if found.margins([[]], instead)[0].min() <= 0:
        raise Refusal("the model by itself writes another translation: there is nothing to keep")
    costs = found.margins([[]], instead)[1][0] - found.margins([[head] for head in heads], instead)[1]
    if seed is not None:
        costs = costs * np.random.default_rng(seed).uniform(0.5, 2.0, len(costs))
    search = _Search(found, instead, [heads[i] for i in np.argsort(np.abs(costs), kind="stable")])
    while search.drop(search.left):
        pass
    while search.drop(search.that_can_go()):
        pass
    verified = _decodes_again(found, search.gone, instead)
    return SmallestSet(frozenset(search.left), len(heads), search.passes + len(heads) + 2, verified)


class _Search:
    def __init__(self, found: Whole, instead: Instead, left: list[Head]) -> None:
        self.found, self.instead, self.left = found, instead, left
        self.gone: list[Head] = []
        self.passes = 0

    def _leads(self, sets: Sequence[Sequence[Head]]) -> np.ndarray:
        self.passes += len(sets)
        return self.found.margins([[*self.gone, *heads] for heads in sets], self.instead)[0].min(-1)

    def drop(self, order: Sequence[Head]) -> bool:
        """Take away as many of the first ones of an order as can go together, by trials of falling size in one batch;
        False where not even one can."""
        sizes = sorted({round(len(order) * share) for share in SHARES} | {1}) if order else []
        if not sizes:
            return False
        fitting = [size for size, lead in zip(sizes, self._leads([order[:size] for size in sizes])) if lead > 0]
        if not fitting:
            return False
        dropped = list(order[:max(fitting)])
        self.gone += dropped
        self.left = [head for head in self.left if head not in dropped]
        return True

    def that_can_go(self) -> list[Head]:
        """Every head that could go alone, the one first without which the closest row keeps the largest lead."""
        leads = self._leads([[head] for head in self.left]) if self.left else np.zeros(0)
        return [self.left[i] for i in np.argsort(-leads, kind="stable") if leads[i] > 0]


@torch.inference_mode()
def _decodes_again(found: Whole, gone: Sequence[Head], instead: Instead) -> bool:
    case, model = found.case, found.case.model
    gates = closed(case, [gone])
    sweep = Sweep(case.interventions, gates, {kind: instead[kind] for kind in gates if kind in instead})
    memory = model.encode(case.source_ids, interventions=sweep)
    target = found.target_ids.tolist()
    prefix, free = target[:found.forced], target[found.forced:]
    ids, = greedy(model, memory, [len(free)], begin_id=int(case.decoder_ids[0, 0]),
                  end_id=found.end_id, prefix=prefix, interventions=sweep)
    return ids == free

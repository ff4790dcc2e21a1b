"""The fewest heads that keep a translation: taken away in an order, by halves, until none can go any more.

For greedy decoding, the same most probable token at every row of the given translation means the same translation, so
that a set of heads costs one pass, and many sets one batch. The result is 1-minimal for this sentence, not the smallest
of all; another order may end elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.passes.ablations import Ablations, Instead, all_heads, closed
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.nets.blocks import blocks, log_probabilities
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.effects import Head, SmallestSet
from attention_atlas.model.translator import Translator

SIZES = (1, 2, 3, 5, 8, 12, 18, 26, 36, 48, 64, 90, 130, 190, 280, 400)  # of sets of heads, tried in one batch
RIVALS = 16  # tokens a row that are looked at before the whole vocabulary
SURELY = -1e-3  # nats behind one of them, and no rounding of the whole product makes the written token the first
PATIENCE = 3  # heads that could not go, before the leads of all are measured again


@dataclass(frozen=True, eq=False)
class Whole:
    """A case over all rows of a translation, and the ids [target] that each row wrote; forced: how many of the first
    were given to the decoder, and are not asked about; end_id: what ends a translation."""

    case: Case
    target_ids: Tensor
    forced: int
    end_id: int

    @torch.inference_mode()
    def margins(self, sets: Sequence[Sequence[Head]], instead: Instead) -> np.ndarray:
        """Row i without the heads of sets[i]: by how much each token that was written leads over every other one, in
        nats, float64 [batch, target]."""
        return self._of_each(sets, instead, self._leads)

    def least_leads(self, sets: Sequence[Sequence[Head]], instead: Instead) -> np.ndarray:
        """The least of margins() over the rows, float64 [batch]; of a set without which a row writes something else it
        may be any number that is not positive: there what the whole vocabulary says is not asked for."""
        return self._of_each(sets, instead, self._least)

    def _of_each(
        self, sets: Sequence[Sequence[Head]], instead: Instead, said: Callable[[Tensor], np.ndarray]
    ) -> np.ndarray:
        """What is said of the decoder's output without each set, [batch, target, d_model] at rows that were not forced:
        float64 [batch, ..]."""
        if (ablations := self._ablations.get(id(instead))) is None:
            ablations = self._ablations[id(instead)] = Ablations(self.case, instead)

        def some(rows: list[int]) -> np.ndarray:
            with torch.inference_mode():
                return said(ablations.without([sets[row] for row in rows])[:, self.forced :])

        parts = ablations.dealt(sets)
        return np.concatenate(map_on_spare_core(some, parts))[np.argsort(np.concatenate(parts))]

    @cached_property
    def _ablations(self) -> dict[int, Ablations]:
        """By the identity of what is heard instead, which they keep: orders of one search begin alike."""
        return {}

    def _least(self, hidden: Tensor) -> np.ndarray:
        if not hidden.shape[1]:
            return np.full(len(hidden), np.inf)
        matrix, offsets = self._rivals
        # Batched by target, where all rows of a batch meet the same matrix: by batch, each would need a copy of all.
        logits = (hidden * self.case.model.output_scale).transpose(0, 1) @ matrix.mT  # [target, batch, 1 + RIVALS]
        logits = logits if offsets is None else logits + offsets[:, None]
        found = (logits[..., :1] - logits[..., 1:]).amin((0, 2)).cpu().double().numpy()
        open_yet = np.flatnonzero(found > SURELY)
        if len(open_yet):
            found[open_yet] = self._leads(hidden[torch.from_numpy(open_yet).to(hidden.device)]).min(-1)
        return found

    @cached_property
    def _rivals(self) -> tuple[Tensor, Tensor | None]:
        """Rows of the output matrix [target, 1 + RIVALS, d_model], and their biases: of the token that each row wrote,
        and of the most probable others."""
        model, config = self.case.model, self.case.model.config
        with torch.inference_mode():
            hidden = Ablations(self.case, {}).without([[]])[0, self.forced :]
            written, ids = self.target_ids[self.forced :, None], []
            for some in blocks(len(hidden), config.num_target_tokens):
                logits = model.project(hidden[some]).scatter_(-1, written[some], float("-inf"))
                logits[:, list(config.banned_ids)] = float("-inf")
                ids.append(logits.topk(min(RIVALS, logits.shape[-1] - 1 - len(config.banned_ids)), dim=-1).indices)
            ids = torch.cat([written, torch.cat(ids)], dim=1)
            return model.output_matrix[ids], None if model.output_bias is None else model.output_bias[ids]

    def _leads(self, hidden: Tensor) -> np.ndarray:
        """margins() of the decoder's output [batch, target, d_model] at rows that were not forced."""
        config = self.case.model.config
        rows, written = hidden.flatten(0, 1), self.target_ids[self.forced :].repeat(len(hidden))[:, None]
        leads = [rows.new_zeros(0)]
        for some in blocks(len(rows), config.num_target_tokens):
            logits = self.case.model.project(rows[some])
            chosen = logits.gather(-1, written[some])
            logits.scatter_(-1, written[some], float("-inf"))
            logits[:, list(config.banned_ids)] = float("-inf")
            leads.append(chosen[:, 0] - logits.amax(-1))
        return torch.cat(leads).view(hidden.shape[:2]).cpu().double().numpy()

    def slopes(self, instead: Instead) -> np.ndarray:
        """By how much the translation's log-probability would fall without each head, if it were linear in their
        gates: float64 [heads], in the order of all_heads(); one gradient (Michel et al. 2019, section 4.1), which all
        orders of a search share."""
        if id(instead) not in self._slopes:
            self._slopes[id(instead)] = instead, self._slopes_of(instead)
        return self._slopes[id(instead)][1]

    @cached_property
    def _slopes(self) -> dict[int, tuple[Instead, np.ndarray]]:
        return {}

    def _slopes_of(self, instead: Instead) -> np.ndarray:
        case, model = self.case, self.case.model
        with torch.inference_mode(False), torch.enable_grad():
            gates = {
                kind: case.source_rows.new_ones(1, layers, model.num_heads[kind]).requires_grad_()
                for kind, layers in model.num_layers.items()
            }
            sweep = Sweep(case.interventions, gates, {kind: value.clone() for kind, value in instead.items()})
            memory = case.encode(case.source_rows, changes=sweep)
            length = case.target_rows.shape[1]
            rows = model.place(case.target_rows, sweep, decoder=True, lengths=memory.lengths)
            mask = causal_mask(length, device=rows.device)
            hidden, _ = model.decoder(rows, mask, memory, interventions=sweep, last=length)
            chosen = log_probabilities(model.project, hidden[0], self.target_ids, model.config.num_target_tokens)
            found = torch.autograd.grad(chosen.sum(), list(gates.values()))
        return torch.cat([gradient.flatten() for gradient in found]).cpu().double().numpy()


def whole(case: Case, translator: Translator, trace: TranslationTrace) -> Whole:
    """The same case over every row of its trace."""
    device = case.source_ids.device
    question = replace(case.question, step=len(trace.target_ids) - 1)
    case = replace(case, question=question, decoder_ids=torch.tensor([trace.decoder_ids], device=device))
    return Whole(
        case,
        torch.tensor(trace.target_ids, device=device),
        len(translator.forced_prefix(trace.direction)),
        translator.tokenizer.end_id,
    )


def smallest_set(found: Whole, instead: Instead, *, seed: int | None = None) -> SmallestSet:
    """The end of shrinking()."""
    *_, last = shrinking(found, instead, seed=seed)
    return last


def shrinking(found: Whole, instead: Instead, *, seed: int | None = None) -> Iterator[SmallestSet]:
    """Take heads away for as long as every row still writes its token, and tell what is left each time. Order: those
    first whose loss should cost the translation the least log-probability, by the slopes of their gates; with a seed,
    shuffled a little, so that several orders can be compared. The last one alone is verified and cannot be made
    smaller by any single head.

    ValueError if the plain model does not write this translation (one that a person forced, or a tie).
    """
    heads = all_heads(found.case)
    if found.margins([[]], instead).min(initial=np.inf) <= 0:
        raise Refusal("The model by itself writes another translation: there is nothing to keep.")
    search = _Search(found, instead, heads, seed)

    def reached(*, verified: bool = False) -> SmallestSet:
        return SmallestSet(frozenset(search.left), len(heads), search.passes, verified)

    for _ in search.drops():
        yield reached()
    yield reached(verified=_decodes_again(found, search.gone, instead))


class _Search:
    """Delta debugging (Zeller and Hildebrandt 2002) along an order: as many heads at once as can go, many trials a
    batch."""

    def __init__(self, found: Whole, instead: Instead, heads: list[Head], seed: int | None) -> None:
        self.found, self.instead, self.left = found, instead, heads
        self.random = None if seed is None else np.random.default_rng(seed)
        self.gone: list[Head] = []
        self.passes = 2  # the plain one and its gradient's

    def drops(self) -> Iterator[None]:
        """Take heads away until none of those left can go; a sign of life after each batch."""
        yield from self._along(self._ordered(self.left, -np.abs(self.found.slopes(self.instead))), patience=1)
        # What could not go alone can hardly go with even fewer heads around it: it is asked again only at the end.
        asked = self.left
        while asked:
            leads = self._leads([[head] for head in asked])
            able = self._ordered([head for head, lead in zip(asked, leads) if lead > 0], leads[leads > 0])
            yield
            if able:
                self._take(able[:1])
                yield from self._along(able[1:], patience=PATIENCE)
                asked = [head for head in able if head in self.left] or self.left
            elif len(asked) < len(self.left):
                asked = self.left
            else:
                return

    def _ordered(self, heads: list[Head], scores: np.ndarray) -> list[Head]:
        """By falling score; with a seed, shuffled a little."""
        if self.random is not None:
            scores = scores * self.random.uniform(0.5, 2.0, len(scores))
        return [heads[i] for i in np.argsort(-scores, kind="stable")]

    def _along(self, order: list[Head], *, patience: int) -> Iterator[None]:
        """Take away as many of the first ones as can go together, and so on with the rest; one that cannot go alone is
        left out, until so many were. At first all are tried at once, then twice as many as went the last time."""
        cap = len(order)
        while order and patience:
            sizes = sorted({min(size, len(order)) for size in (*SIZES, cap) if size <= cap})
            fitting = [size for size, lead in zip(sizes, self._leads([order[:size] for size in sizes])) if lead > 0]
            went = max(fitting, default=0)
            self._take(order[:went])
            order = order[max(went, 1) :]
            patience -= not went
            cap = max(2, 2 * went)
            yield

    def _leads(self, sets: Sequence[Sequence[Head]]) -> np.ndarray:
        self.passes += len(sets)
        return self.found.least_leads([[*self.gone, *heads] for heads in sets], self.instead)

    def _take(self, heads: Sequence[Head]) -> None:
        self.gone += heads
        self.left = [head for head in self.left if head not in heads]


@torch.inference_mode()
def _decodes_again(found: Whole, gone: Sequence[Head], instead: Instead) -> bool:
    case, model = found.case, found.case.model
    gates = closed(case, [gone])
    sweep = Sweep(case.interventions, gates, {kind: instead[kind] for kind in gates if kind in instead})
    memory = model.encode(case.source_ids, interventions=sweep)
    target = found.target_ids.tolist()
    prefix, free = target[: found.forced], target[found.forced :]
    (ids,) = greedy(
        model,
        memory,
        [len(free)],
        begin_id=int(case.decoder_ids[0, 0]),
        end_id=found.end_id,
        prefix=prefix,
        interventions=sweep,
    )
    return ids == free

"""The smallest set of heads that keeps a translation: heads are removed in an order, by halves, until none can go.

With greedy decoding, a translation stays the same if every row's most probable token does. So one pass tests a set of
heads, and one batch many sets. The result is 1-minimal for this sentence, not the smallest set of all: another order
may end with another set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case, open_case_at
from attention_atlas.model.analysis.why.experiments.heads import (
    AblationPasses,
    HeadOutputs,
    close_gates,
    gate_slopes,
    list_heads,
    make_ablation_values,
    make_sweep,
)
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.nets.blocks import blocks, log_probabilities
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.trace.why.effects import Head, Replacement, SmallestSet
from attention_atlas.model.translator import Translator

SIZES = (1, 2, 3, 5, 8, 12, 18, 26, 36, 48, 64, 90, 130, 190, 280, 400)  # of sets of heads, tried in one batch
NUM_RIVALS = 16  # tokens per row that are compared before the whole vocabulary is
SAFE_LEAD = -1e-3  # nats: a token further behind a rival cannot be the most probable one after rounding
PATIENCE = 3  # failed removals before all leads are measured again


def find_smallest_set(
    translator: Translator,
    trace: TranslationTrace,
    *,
    replacement: Replacement | str = Replacement.ZERO,
    seed: int | None = None,
) -> SmallestSet:
    """Find a set of heads with which alone every token of the translation is still written.

    seed: of another order of removal. Raises ValueError if the plain model does not write this translation.
    """
    replacement = Replacement(replacement)
    translation = open_translation(open_case_at(translator, trace, 0, Against.NOTHING), translator, trace)
    if replacement is Replacement.RESAMPLE:
        raise Refusal("In the smallest set, heads can be replaced only by zero or by their average.")
    values = make_ablation_values(translation.case, translator, trace, replacement)
    return shrink_to_end(translation, values.draws[0], seed=seed)


@dataclass(frozen=True, eq=False)
class Translation:
    """A case over all rows of a translation.

    target_ids  int64 [target], the token that each row wrote
    forced      the number of first tokens that were given to the decoder, and are not tested
    end_id      the token that ends a translation
    """

    case: Case
    target_ids: Tensor
    forced: int
    end_id: int

    def measure_leads(self, sets: Sequence[Sequence[Head]], values: HeadOutputs) -> np.ndarray:
        """Return each written token's lead over the best other token without each set of heads.

        float64 [batch, target], in nats; forced rows are left out.
        """
        return np.concatenate(AblationPasses(self.case, values).map(sets, self._leads))

    def smallest_leads(self, sets: Sequence[Sequence[Head]], passes: AblationPasses) -> np.ndarray:
        """Return the smallest lead over the rows, float64 [batch].

        If a row writes another token, any number that is not positive may be returned: the whole vocabulary is then not
        looked at.
        """
        return np.concatenate(passes.map(sets, self._smallest_lead))

    def _smallest_lead(self, output: Tensor) -> np.ndarray:
        hidden = output[:, self.forced :]
        if not hidden.shape[1]:
            return np.full(len(hidden), np.inf)
        matrix, offsets = self._rivals
        # Batched by target, so that all rows share a matrix; batched by row, each would need a copy.
        logits = (hidden * self.case.model.output_scale).transpose(0, 1) @ matrix.mT  # [target, batch, 1 + NUM_RIVALS]
        logits = logits if offsets is None else logits + offsets[:, None]
        leads = (logits[..., :1] - logits[..., 1:]).amin((0, 2)).cpu().double().numpy()
        undecided = np.flatnonzero(leads > SAFE_LEAD)
        if len(undecided):
            leads[undecided] = self._leads(output[torch.from_numpy(undecided).to(hidden.device)]).min(-1)
        return leads

    @cached_property
    def _rivals(self) -> tuple[Tensor, Tensor | None]:
        """Rows of the output matrix [target, 1 + NUM_RIVALS, d_model], and their biases, of each row's written token
        and its most probable others."""
        model, config = self.case.model, self.case.model.config
        with torch.inference_mode():
            hidden = self.case.output.hidden[0, self.forced :]
            written, rivals = self.target_ids[self.forced :, None], []
            for block in blocks(len(hidden), config.num_target_tokens):
                logits = model.project(hidden[block]).scatter_(-1, written[block], float("-inf"))
                logits[:, list(config.banned_ids)] = float("-inf")
                count = min(NUM_RIVALS, logits.shape[-1] - 1 - len(config.banned_ids))
                rivals.append(logits.topk(count, dim=-1).indices)
            ids = torch.cat([written, torch.cat(rivals)], dim=1)
            return model.output_matrix[ids], None if model.output_bias is None else model.output_bias[ids]

    def _leads(self, output: Tensor) -> np.ndarray:
        """Return the leads [batch, target] of the rows not forced of the decoder's output [batch, target, d_model]."""
        config, hidden = self.case.model.config, output[:, self.forced :]
        rows, written = hidden.flatten(0, 1), self.target_ids[self.forced :].repeat(len(hidden))[:, None]
        leads = [rows.new_zeros(0)]
        for block in blocks(len(rows), config.num_target_tokens):
            logits = self.case.model.project(rows[block])
            of_written = logits.gather(-1, written[block])
            logits.scatter_(-1, written[block], float("-inf"))
            logits[:, list(config.banned_ids)] = float("-inf")
            leads.append(of_written[:, 0] - logits.amax(-1))
        return torch.cat(leads).view(hidden.shape[:2]).cpu().double().numpy()

    def slopes(self, values: HeadOutputs) -> np.ndarray:
        """Return the gradient of the translation's log-probability by each head's gate: float64 [head].

        In the order of list_heads() (Michel et al. 2019, section 4.1).
        """
        case, model = self.case, self.case.model

        def measure(sweep: Sweep) -> Tensor:
            memory = case.encode(case.source_rows, changes=sweep)
            length = case.target_rows.shape[1]
            rows = model.place(case.target_rows, sweep, decoder=True, lengths=memory.lengths)
            mask = causal_mask(length, device=rows.device)
            hidden, _ = model.decoder(rows, mask, memory, interventions=sweep, last=length)
            return log_probabilities(model.project, hidden[0], self.target_ids, model.config.num_target_tokens)

        return gate_slopes(case, values, measure)

    @torch.inference_mode()
    def decodes_without(self, heads: Sequence[Head], values: HeadOutputs) -> bool:
        """Whether greedy decoding without these heads writes the same translation."""
        case, model = self.case, self.case.model
        sweep = make_sweep(case, close_gates(case, [heads]), values)
        memory = model.encode(case.source_ids, interventions=sweep)
        target = self.target_ids.tolist()
        prefix, free = target[: self.forced], target[self.forced :]
        (ids,) = greedy(
            model,
            memory,
            [len(free)],
            begin_id=int(case.decoder_ids[0, 0]),
            end_id=self.end_id,
            prefix=prefix,
            interventions=sweep,
        )
        return ids == free


def open_translation(case: Case, translator: Translator, trace: TranslationTrace) -> Translation:
    """Return the case over every row of its trace."""
    device = case.source_ids.device
    question = replace(case.question, step=len(trace.target_ids) - 1)
    case = replace(case, question=question, decoder_ids=torch.tensor([trace.decoder_ids], device=device))
    return Translation(
        case,
        torch.tensor(trace.target_ids, device=device),
        len(translator.forced_prefix(trace.direction)),
        translator.tokenizer.end_id,
    )


def shrink_to_end(translation: Translation, values: HeadOutputs, *, seed: int | None = None) -> SmallestSet:
    """Return the last set of shrink()."""
    *_, smallest = shrink(translation, values, seed=seed)
    return smallest


def shrink(translation: Translation, values: HeadOutputs, *, seed: int | None = None) -> Iterator[SmallestSet]:
    """Remove heads while every row still writes its token; yield the set that is left after each batch of tries.

    Heads whose gates have the smallest slopes are removed first; a seed shuffles this order a little. Only the last set
    is verified, and cannot be made smaller by any single head. Raises ValueError if the plain model does not write this
    translation, because a person forced it or because of a tie.
    """
    heads = list_heads(translation.case)
    if translation.measure_leads([[]], values).min(initial=np.inf) <= 0:
        raise Refusal("The unchanged model writes a different translation, so there is nothing to preserve.")
    search = _Search(translation, values, heads, seed)
    for _ in search.run():
        yield SmallestSet(frozenset(search.left), len(heads), search.passes, False)
    verified = translation.decodes_without(search.removed, values)
    yield SmallestSet(frozenset(search.left), len(heads), search.passes, verified)


class _Search:
    """Delta debugging (Zeller and Hildebrandt 2002) along an order: as many heads at once as can go, many trials per
    batch."""

    def __init__(self, translation: Translation, values: HeadOutputs, heads: list[Head], seed: int | None) -> None:
        self.translation, self.values, self.left = translation, values, heads
        self.ablations = AblationPasses(translation.case, values)
        self.random = None if seed is None else np.random.default_rng(seed)
        self.removed: list[Head] = []
        self.passes = 2  # the plain pass and its gradient's

    def run(self) -> Iterator[None]:
        """Remove heads until none of those left can go; yield after each batch."""
        yield from self._remove_along(self._order(self.left, -np.abs(self.translation.slopes(self.values))), patience=1)
        # A head that could not go alone can hardly go with fewer heads left: it is tried again only at the end.
        candidates = self.left
        while candidates:
            leads = self._measure([[head] for head in candidates])
            removable = self._order([head for head, lead in zip(candidates, leads) if lead > 0], leads[leads > 0])
            yield
            if removable:
                self._remove(removable[:1])
                yield from self._remove_along(removable[1:], patience=PATIENCE)
                candidates = [head for head in removable if head in self.left] or self.left
            elif len(candidates) < len(self.left):
                candidates = self.left
            else:
                return

    def _order(self, heads: list[Head], scores: np.ndarray) -> list[Head]:
        """Sort heads by falling score; a seed shuffles them a little."""
        if self.random is not None:
            scores = scores * self.random.uniform(0.5, 2.0, len(scores))
        return [heads[i] for i in np.argsort(-scores, kind="stable")]

    def _remove_along(self, order: list[Head], *, patience: int) -> Iterator[None]:
        """Remove as many of the first heads as can go together, and so on with the rest.

        A head that cannot go alone is skipped, until `patience` of them were. The first batch tries up to all heads,
        later ones up to twice as many as were removed before.
        """
        limit = len(order)
        while order and patience:
            sizes = sorted({min(size, len(order)) for size in (*SIZES, limit) if size <= limit})
            leads = self._measure([order[:size] for size in sizes])
            count = max((size for size, lead in zip(sizes, leads) if lead > 0), default=0)
            self._remove(order[:count])
            order = order[max(count, 1) :]
            patience -= not count
            limit = max(2, 2 * count)
            yield

    def _measure(self, sets: Sequence[Sequence[Head]]) -> np.ndarray:
        self.passes += len(sets)
        return self.translation.smallest_leads([[*self.removed, *heads] for heads in sets], self.ablations)

    def _remove(self, heads: Sequence[Head]) -> None:
        self.removed += heads
        self.left = [head for head in self.left if head not in heads]

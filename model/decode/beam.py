"""Beam search over StepDecoder, batched over sentences, with the tree that it searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import torch
from torch import Tensor

from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS


class Fate(str, Enum):
    """The state of a node of the search tree after the step that made it."""

    KEPT = "kept"  # among the best: the search continued from it
    PRUNED = "pruned"  # compared, but not among the best
    FINISHED = "finished"  # ends in the end symbol
    STOPPED = "stopped"  # reached the limit of steps


@dataclass(frozen=True)
class BeamNode:
    """One token of one hypothesis.

    parent           index of the node before it; None after `<s>`
    depth            position of the token, from 1
    log_probability  natural logarithm, of this token after its prefix
    total            log-probability of the prefix with this token
    score            total / length penalty
    """

    parent: int | None
    token_id: int
    depth: int
    log_probability: float
    total: float
    score: float
    fate: Fate


@dataclass(frozen=True)
class Hypothesis:
    """A translation. ids: y1 .. yT, with the end symbol if finished. node: index of its last token in the tree."""

    ids: tuple[int, ...]
    log_probability: float
    score: float
    finished: bool
    node: int


@dataclass(frozen=True)
class BeamResult:
    """The result of one search.

    hypotheses  finished ones first, then by score, best first
    nodes       the tree; a node comes after its parent
    """

    hypotheses: tuple[Hypothesis, ...]
    nodes: tuple[BeamNode, ...]

    def prefix(self, node: int) -> tuple[int, ...]:
        """Return the ids from the first token to this node. Raises ValueError if there is no such node."""
        return prefix_of(self.nodes, node)


def prefix_of(nodes: Sequence[BeamNode], node: int) -> tuple[int, ...]:
    """Return the ids from the first token to nodes[node]. Raises ValueError if there is no such node."""
    if not 0 <= node < len(nodes):
        raise ValueError(f"the tree has nodes 0 to {len(nodes) - 1}, found {node}")
    ids, at = [], node
    while at is not None:
        ids.append(nodes[at].token_id)
        at = nodes[at].parent
    return tuple(reversed(ids))


def length_penalty(length: int, alpha: float) -> float:
    """Return lp(Y) = ((5 + |Y|) / (5 + 1))^alpha, which divides log P(Y) (Wu et al. 2016, equation 14).

    length: of the hypothesis, the end symbol included.

    >>> length_penalty(7, 1.0)
    2.0
    """
    return ((5.0 + length) / 6.0) ** alpha


class _Sentence:
    """The search for one sentence.

    A finished hypothesis leaves the beam and narrows it by one (Sutskever et al. 2014, section 3.2), so that width 1 is
    greedy decoding with any penalty.
    """

    def __init__(
        self, index: int, limit: int, width: int, *, alpha: float, n_best: int, end_id: int, keep_pruned: bool
    ) -> None:
        self.index, self.limit, self.left, self.alpha = index, limit, width, alpha
        self.n_best, self.end_id, self.keep_pruned = n_best, end_id, keep_pruned
        self.nodes: list[BeamNode] = []
        self.live: list[int | None] = [None]  # last node of each hypothesis; None after `<s>`
        self.ended: list[int] = []
        self.depth = 0

    def begin_with(self, ids: Sequence[int]) -> None:
        """Make forced tokens the trunk of the tree, with probability 1 each."""
        for token_id in ids:
            self.depth += 1
            self.nodes.append(BeamNode(self.live[0], token_id, self.depth, 0.0, 0.0, 0.0, Fate.KEPT))
            self.live = [len(self.nodes) - 1]
        self.limit += len(ids)

    def advance(self, log_p: list[list[float]], ids: list[list[int]]) -> list[tuple[int, int]]:
        """Take one step. log_p, ids [live, k]: the best tokens after each live hypothesis, best first.

        Returns (row among the live, token) of each hypothesis that continues; [] ends the search.
        """
        self.depth += 1
        penalty = length_penalty(self.depth, self.alpha)
        totals = [0.0 if node is None else self.nodes[node].total for node in self.live]
        compared = [
            (totals[row] + p, row, rank) for row, best in enumerate(log_p) for rank, p in enumerate(best[: self.left])
        ]
        compared.sort(key=lambda c: -c[0])  # stable: ties go to the earlier hypothesis, then to the better rank
        live, rows = [], []
        for place, (total, row, rank) in enumerate(compared):
            if place >= self.left and not self.keep_pruned:
                break
            fate = Fate.PRUNED
            if place < self.left:
                ends, stops = ids[row][rank] == self.end_id, self.depth == self.limit
                fate = Fate.FINISHED if ends else Fate.STOPPED if stops else Fate.KEPT
            self.nodes.append(
                BeamNode(self.live[row], ids[row][rank], self.depth, log_p[row][rank], total, total / penalty, fate)
            )
            if fate == Fate.KEPT:
                live.append(len(self.nodes) - 1)
                rows.append((row, ids[row][rank]))
            elif fate != Fate.PRUNED:
                self.ended.append(len(self.nodes) - 1)
        self.left = len(live)
        self.live = live
        if live and self._is_decided():
            for node in live:
                self.nodes[node] = replace(self.nodes[node], fate=Fate.PRUNED)
            return []
        return rows

    def _is_decided(self) -> bool:
        # Totals only fall, and no later penalty exceeds the one at the limit.
        if len(self.ended) < self.n_best:
            return False
        best_possible = self.nodes[self.live[0]].total / length_penalty(self.limit, self.alpha)
        return sorted((self.nodes[n].score for n in self.ended), reverse=True)[self.n_best - 1] >= best_possible

    def result(self) -> BeamResult:
        hypotheses = []
        for n in self.ended:
            node = self.nodes[n]
            finished = node.fate == Fate.FINISHED
            hypotheses.append(Hypothesis(prefix_of(self.nodes, n), node.total, node.score, finished, n))
        hypotheses.sort(key=lambda h: (not h.finished, -h.score))
        return BeamResult(tuple(hypotheses[: self.n_best]), tuple(self.nodes))


def beam_search(
    model: Transformer,
    source: SourceMemory,
    limits: list[int],
    *,
    begin_id: int,
    end_id: int,
    width: int = 5,
    length_penalty: float = 0.0,
    n_best: int = 1,
    interventions: Changes = NO_INTERVENTIONS,
    keep_pruned: bool = False,
    prefix: Sequence[int] = (),
) -> list[BeamResult]:
    """Return one BeamResult a sentence: the most probable translations found with `width` hypotheses a step.

    source          an encoded batch
    limits          the number of steps that each sentence may take
    width           1 to 8; 1 is greedy decoding
    length_penalty  alpha of Wu et al. 2016, equation 14; 0 ranks by log-probability alone
    n_best          hypotheses to return, at most `width`; a search ends when no other can be among them
    prefix          y1 .. yk that every sentence starts with: the trunk of every tree, which costs no steps
    keep_pruned     keep the candidates in the tree that were compared and dropped

    Raises ValueError for a width, penalty, n_best or limit out of range.
    """
    Decoding(width, length_penalty)  # raises
    if not 1 <= n_best <= width:
        raise ValueError(f"n_best must be from 1 to the beam width, {width}, found {n_best}")
    if min(limits, default=1) < 1:
        raise ValueError(f"a search takes at least one step, found a limit of {min(limits)}")
    sentences = [
        _Sentence(i, limit, width, alpha=length_penalty, n_best=n_best, end_id=end_id, keep_pruned=keep_pruned)
        for i, limit in enumerate(limits)
    ]
    for sentence in sentences:
        sentence.begin_with(prefix)
    start = torch.tensor([[begin_id, *prefix]] * len(limits), device=source.memory.device)
    decoder = StepDecoder(model, source, start, interventions=interventions)
    alive = sentences
    while alive:
        log_p, ids = _best_tokens(decoder.choices, max(s.left for s in alive))
        owners = [s.index for s in alive for _ in s.live]
        rows, tokens, next_owners, first = [], [], [], 0
        for sentence in alive:
            last = first + len(sentence.live)
            for row, token in sentence.advance(log_p[first:last], ids[first:last]):
                rows.append(first + row)
                tokens.append(token)
                next_owners.append(sentence.index)
            first = last
        continuing = set(next_owners)
        alive = [s for s in alive if s.index in continuing]
        if alive:
            if owners != next_owners:
                decoder.select(torch.tensor(rows, device=start.device))
            elif rows != list(range(len(rows))):  # the cache is copied only where the rows changed
                decoder.reorder(torch.tensor(rows, device=start.device))
            decoder.append(torch.tensor(tokens, device=start.device))
    return [s.result() for s in sentences]


def _best_tokens(logits: Tensor, count: int) -> tuple[list[list[float]], list[list[int]]]:
    """Return log-probabilities and ids [rows, count] of the best tokens, best first."""
    logits = logits.float()
    # Ranked by logits: the softmax rounds, and could tie tokens that greedy decoding distinguishes.
    top, ids = logits.topk(min(count, logits.shape[-1]), dim=-1)
    return (exact(top) - exact(logits.logsumexp(-1, keepdim=True))).tolist(), ids.tolist()

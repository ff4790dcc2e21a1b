"""The tree of paths that a person took through one sentence's decoding, and how two of them differ. Numpy only."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import SequenceMatcher
from enum import Enum
from math import isfinite

import numpy as np

from attention_atlas.model.trace import decoding, is_integer, is_number
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import jensen_shannon_bits
from attention_atlas.model.trace.translation import TranslationTrace

MAX_BRANCHES = 24
SENTENCE = ("source_ids", "digest", "direction", "interventions")  # what all branches of a tree share


class Origin(str, Enum):
    """Where a branch comes from."""

    OWN = "own"  # the translation that the tree began with
    FORCED = "forced"  # a token chosen by a person, and how greedy decoding goes on
    BEAM = "beam"  # a node of a beam search, and how greedy decoding goes on
    TARGET = "target"  # a translation that a person typed


@dataclass(frozen=True)
class Branch:
    """One target y1 .. yT. log_probabilities: natural, of each token; decoding: how it came about, None: not known;
    parent: number of the branch it leaves after `fork` equal tokens, None for the first."""

    number: int
    origin: Origin
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    log_probabilities: tuple[float, ...]
    decoding: Decoding | None
    text: str
    finished: bool
    parent: int | None
    fork: int

    @property
    def given(self) -> int:
        """How many of its first tokens were given rather than decoded."""
        return 0 if self.decoding is None else self.decoding.given

    @property
    def total(self) -> float:
        return float(sum(self.log_probabilities))

    def to_plain(self) -> dict:
        """JSON-ready."""
        lists = {name: list(getattr(self, name)) for name in ("ids", "tokens", "log_probabilities")}
        return {**vars(self), **lists, "origin": self.origin.value, "decoding": decoding.to_plain(self.decoding)}

    @staticmethod
    def from_plain(data: object) -> Branch:
        """Read the result of to_plain(), which the page sends back. ValueError for anything else."""
        if not isinstance(data, dict) or set(data) != {one.name for one in fields(Branch)}:
            raise ValueError("A branch cannot be read.")
        lists = [data[name] for name in ("ids", "tokens", "log_probabilities")]
        if not all(isinstance(one, list) and len(one) == len(lists[0]) for one in lists):
            raise ValueError("A branch cannot be read.")
        ids, tokens, log_probabilities = map(tuple, lists)
        is_read = (
            all(is_integer(one, 0) for one in ids)
            and all(isinstance(one, str) for one in (*tokens, data["text"]))
            and all(is_number(one) and isfinite(one) for one in log_probabilities)
            and all(is_integer(data[name], 0) for name in ("number", "fork"))
            and (data["parent"] is None or is_integer(data["parent"], 0))
            and isinstance(data["finished"], bool)
        )
        if not is_read:
            raise ValueError("A branch cannot be read.")
        how = decoding.from_plain(data["decoding"])
        read = {"ids": ids, "tokens": tokens, "log_probabilities": log_probabilities}
        return Branch(**{**data, **read, "origin": Origin(data["origin"]), "decoding": how})


@dataclass(frozen=True)
class Tree:
    """All branches of one source sentence under the same interventions, oldest first. address: of the sentence, as the
    model translates it by itself. Bounded: `dropped` counts the leaves that had to go. key tells apart trees that
    number their branches alike."""

    address: Address
    branches: tuple[Branch, ...] = ()
    next_number: int = 1
    dropped: int = 0
    key: str = field(default_factory=lambda: secrets.token_hex(4))

    def to_plain(self) -> dict:
        """JSON-ready."""
        return {
            "address": self.address.to_plain(),
            "branches": [branch.to_plain() for branch in self.branches],
            "next_number": self.next_number,
            "dropped": self.dropped,
            "key": self.key,
        }

    @staticmethod
    def from_plain(data: object) -> Tree:
        """Read the result of to_plain(), which the page sends back. ValueError for anything else."""
        if not isinstance(data, dict) or not isinstance(data.get("branches"), list):
            raise ValueError("The tree of branches cannot be read.")
        address, branches = Address.from_plain(data.get("address")), data["branches"]
        numbers = (data.get("next_number"), data.get("dropped"))
        known = isinstance(data.get("key"), str) and address.source_ids is not None
        if not known or not 0 < len(branches) <= MAX_BRANCHES or not all(is_integer(number, 0) for number in numbers):
            raise ValueError("The tree of branches cannot be read.")
        address = replace(address, target_ids=None, decoding=GREEDY)
        return Tree(address, tuple(map(Branch.from_plain, branches)), *numbers, data["key"])

    @staticmethod
    def of(trace: TranslationTrace) -> Tree:
        """Return a tree whose only branch is this translation."""
        named = {name: getattr(trace, name) for name in (*SENTENCE, "checkpoint", "recipe")}
        return Tree(Address(trace.source_text, **named)).add(trace, Origin.OWN)[0]

    def holds(self, trace: TranslationTrace) -> bool:
        """Whether the trace is of this sentence, and is a branch or the beginning of one."""
        same = all(getattr(trace, name) == getattr(self.address, name) for name in SENTENCE)
        return same and any(b.ids[: len(trace.target_ids)] == trace.target_ids for b in self.branches)

    def find(self, number: int) -> Branch:
        """ValueError if the branch is not, or no longer, here."""
        for branch in self.branches:
            if branch.number == number:
                return branch
        raise Refusal("Branch {n} is no longer here.", n=number)

    def add(self, trace: TranslationTrace, origin: Origin) -> tuple[Tree, Branch]:
        """The tree with this trace as a branch, and the branch. One that is there already is found again."""
        for branch in self.branches:
            if branch.ids == trace.target_ids:
                return self, branch
        forks = {branch.number: common_prefix(branch.ids, trace.target_ids) for branch in self.branches}
        parent = max(forks, key=forks.get, default=None)
        branch = Branch(
            self.next_number,
            origin,
            trace.target_ids,
            trace.target_tokens,
            tuple(float(p) for p in trace.log_probability),
            trace.decoding,
            trace.translation,
            trace.finished,
            parent,
            forks.get(parent, 0),
        )
        branches, dropped = (*self.branches, branch), self.dropped
        if len(branches) > MAX_BRANCHES:
            parents = {one.parent for one in branches}
            leaf = next(one for one in branches[1:-1] if one.number not in parents)
            branches, dropped = tuple(one for one in branches if one is not leaf), dropped + 1
        return replace(self, branches=branches, next_number=self.next_number + 1, dropped=dropped), branch


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two targets share from the start."""
    count = 0
    for x, y in zip(a, b):
        if x != y:
            break
        count += 1
    return count


def aligned(a: Sequence[int], b: Sequence[int]) -> list[tuple[int | None, int | None]]:
    """Positions of two targets side by side: those that they share from the start, then equal tokens as far as their
    order allows; what stands between them is set in rows of its own, the two sides beside each other."""
    shared = common_prefix(a, b)
    rows: list[tuple[int | None, int | None]] = [(i, i) for i in range(shared)]
    for _, *ends in SequenceMatcher(None, a[shared:], b[shared:], autojunk=False).get_opcodes():
        a0, a1, b0, b1 = (shared + end for end in ends)
        for i in range(max(a1 - a0, b1 - b0)):
            rows.append((a0 + i if a0 + i < a1 else None, b0 + i if b0 + i < b1 else None))
    return rows


@dataclass(frozen=True, eq=False)
class Comparison:
    """How two targets of one source differ inside.

    shared        tokens they have in common from the start
    steps         the steps compared, of the first and of the second, as aligned() sets their tokens side by side: those
                  of which one reads what only it has; all where the two are the same. Empty: there are none
    cross         float64 [layers, heads], mean over the steps of the Jensen-Shannon divergence in bits between the two
                  rows; NaN without steps
    decoder_self  the same, over the keys that both have (`<s>` and the shared tokens), renormalised over them
    """

    shared: int
    steps: tuple[tuple[int, int], ...]
    cross: np.ndarray
    decoder_self: np.ndarray


def compare(a: TranslationTrace, b: TranslationTrace) -> Comparison:
    """ValueError if the two are not of one source and one model."""
    if (a.source_ids, a.digest) != (b.source_ids, b.digest):
        raise Refusal("Only translations of the same sentence by the same model can be compared.")
    shared = common_prefix(a.target_ids, b.target_ids)
    same = a.target_ids == b.target_ids
    # Row t reads the t-th token written: a row beyond `shared` reads what its own target has.
    steps = tuple(
        (i, j)
        for i, j in aligned(a.target_ids, b.target_ids)
        if i is not None and j is not None and (same or max(i, j) > shared)
    )
    keys = len(a.target_ids) if same else shared + 1
    sides = [(a, [i for i, _ in steps]), (b, [j for _, j in steps])]
    cross = _mean_divergence(*(trace.cross.weights[:, :, rows] for trace, rows in sides))
    selves = [_renormalised(trace.decoder_self.weights[:, :, rows, :keys]) for trace, rows in sides]
    return Comparison(shared, steps, cross, _mean_divergence(*selves))


def _mean_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p, q [layers, heads, step, key] -> [layers, heads]"""
    if p.shape[2] == 0:
        return np.full(p.shape[:2], np.nan)
    return jensen_shannon_bits(p, q).mean(-1)


def _renormalised(weights: np.ndarray) -> np.ndarray:
    weights = weights.astype(np.float64)
    return weights / np.maximum(weights.sum(-1, keepdims=True), np.finfo(np.float64).tiny)

"""The tree of branches that a visitor explored in one sentence's decoding, and how two branches differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from enum import Enum
from math import isfinite

import numpy as np

from attention_atlas.model.trace import decoding as decoding_file
from attention_atlas.model.trace import is_integer, is_number
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import jensen_shannon_bits, normalize_rows
from attention_atlas.model.trace.translation import TranslationTrace

MAX_BRANCHES = 24
SENTENCE = ("source_ids", "digest", "direction", "interventions")  # what all branches of a tree share


class Origin(str, Enum):
    """How a branch was made."""

    OWN = "own"  # the model's translation, which the tree began with
    FORCED = "forced"  # a token that a visitor chose, continued by greedy decoding
    BEAM = "beam"  # a node of a beam search, continued by greedy decoding
    TARGET = "target"  # a translation that a visitor typed


@dataclass(frozen=True)
class Branch:
    """One target y1 .. yT of the sentence.

    log_probabilities  natural, of each token
    decoding           None: unknown
    parent             the number of the branch that it leaves after `fork` equal tokens; None for the first
    """

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
        """The number of its first tokens that were given rather than decoded."""
        return 0 if self.decoding is None else self.decoding.given

    @property
    def total(self) -> float:
        """The log-probability of the whole target."""
        return float(sum(self.log_probabilities))

    def to_plain(self) -> dict:
        """Convert to JSON-ready data."""
        lists = {name: list(getattr(self, name)) for name in ("ids", "tokens", "log_probabilities")}
        decoding = decoding_file.to_plain(self.decoding)
        return {**vars(self), **lists, "origin": self.origin.value, "decoding": decoding}

    @staticmethod
    def from_plain(data: object) -> Branch:
        """Read the result of to_plain(), which the page sends back. ValueError for anything else."""
        if not isinstance(data, dict) or set(data) != {field.name for field in fields(Branch)}:
            raise ValueError("A branch cannot be read.")
        lists = {name: data[name] for name in ("ids", "tokens", "log_probabilities")}
        is_valid = (
            all(isinstance(values, list) and len(values) == len(lists["ids"]) for values in lists.values())
            and all(is_integer(i, 0) for i in lists["ids"])
            and all(isinstance(text, str) for text in (*lists["tokens"], data["text"]))
            and all(is_number(value) and isfinite(value) for value in lists["log_probabilities"])
            and all(is_integer(data[name], 0) for name in ("number", "fork"))
            and (data["parent"] is None or is_integer(data["parent"], 0))
            and isinstance(data["finished"], bool)
        )
        if not is_valid:
            raise ValueError("A branch cannot be read.")
        tuples = {name: tuple(values) for name, values in lists.items()}
        decoding = decoding_file.from_plain(data["decoding"])
        return Branch(**{**data, **tuples, "origin": Origin(data["origin"]), "decoding": decoding})


@dataclass(frozen=True)
class Tree:
    """All branches of one source sentence under the same interventions, oldest first, at most MAX_BRANCHES.

    address  the sentence, without a target: the model's own translation
    dropped  the number of leaves that were removed to make room
    """

    address: Address
    branches: tuple[Branch, ...] = ()
    next_number: int = 1
    dropped: int = 0

    def to_plain(self) -> dict:
        """Convert to JSON-ready data."""
        branches = [branch.to_plain() for branch in self.branches]
        return {**vars(self), "address": self.address.to_plain(), "branches": branches}

    @staticmethod
    def from_plain(data: object) -> Tree:
        """Read the result of to_plain(), which the page sends back. ValueError for anything else."""
        if not isinstance(data, dict) or not isinstance(data.get("branches"), list):
            raise ValueError("The tree of branches cannot be read.")
        address, branches = Address.from_plain(data.get("address")), data["branches"]
        numbers = (data.get("next_number"), data.get("dropped"))
        has_ids = address.source_ids is not None
        if not has_ids or not 0 < len(branches) <= MAX_BRANCHES or not all(is_integer(n, 0) for n in numbers):
            raise ValueError("The tree of branches cannot be read.")
        address = replace(address, target_ids=None, decoding=GREEDY)
        return Tree(address, tuple(map(Branch.from_plain, branches)), *numbers)

    @staticmethod
    def of(trace: TranslationTrace) -> Tree:
        """Return a tree whose only branch is this translation."""
        values = {name: getattr(trace, name) for name in (*SENTENCE, "checkpoint", "recipe")}
        return Tree(Address(trace.source_text, **values)).add(trace, Origin.OWN)[0]

    def holds(self, trace: TranslationTrace) -> bool:
        """Whether the trace is of this sentence and is a branch or the beginning of one."""
        is_same_sentence = all(getattr(trace, name) == getattr(self.address, name) for name in SENTENCE)
        return is_same_sentence and any(b.ids[: len(trace.target_ids)] == trace.target_ids for b in self.branches)

    def find(self, number: int) -> Branch:
        """Return a branch by its number. A Refusal if the tree does not have it any more."""
        for branch in self.branches:
            if branch.number == number:
                return branch
        raise Refusal("Branch {n} is no longer here.", n=number)

    def add(self, trace: TranslationTrace, origin: Origin) -> tuple[Tree, Branch]:
        """Return the tree with this trace as a branch, and the branch, which may exist already."""
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
            parents = {other.parent for other in branches}
            leaf = next(other for other in branches[1:-1] if other.number not in parents)
            branches, dropped = tuple(other for other in branches if other is not leaf), dropped + 1
        return replace(self, branches=branches, next_number=self.next_number + 1, dropped=dropped), branch


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the number of tokens that two targets share from the start."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def align_targets(a: Sequence[int], b: Sequence[int]) -> list[tuple[int | None, int | None]]:
    """Align the positions of two targets: the shared prefix, then equal tokens as far as their order allows.

    Positions between equal tokens are paired in order; None fills the shorter side.
    """
    shared = common_prefix(a, b)
    rows: list[tuple[int | None, int | None]] = [(i, i) for i in range(shared)]
    for _, *ends in SequenceMatcher(None, a[shared:], b[shared:], autojunk=False).get_opcodes():
        a0, a1, b0, b1 = (shared + end for end in ends)
        for i in range(max(a1 - a0, b1 - b0)):
            rows.append((a0 + i if a0 + i < a1 else None, b0 + i if b0 + i < b1 else None))
    return rows


@dataclass(frozen=True, eq=False)
class Comparison:
    """How the attention of two targets of one source differs.

    shared       the number of tokens that they share from the start
    steps        the compared steps of the first and of the second, aligned by align_targets(): those that read a token
                 beyond the shared prefix, or all if the targets are equal
    divergences  of each kind of the decoder's attention, float64 [layers, heads]: the mean over the steps of the
                 Jensen-Shannon divergence between both rows, in bits; NaN without steps. Self-attention is compared
                 over the keys that both have (`<s>` and the shared tokens), renormalised over them
    """

    shared: int
    steps: tuple[tuple[int, int], ...]
    divergences: dict[AttentionKind, np.ndarray]


def compare(a: TranslationTrace, b: TranslationTrace) -> Comparison:
    """Compare two translations. A Refusal if they are not of one source and one model."""
    if (a.source_ids, a.digest) != (b.source_ids, b.digest):
        raise Refusal("Only translations of the same sentence by the same model can be compared.")
    shared = common_prefix(a.target_ids, b.target_ids)
    is_same = a.target_ids == b.target_ids
    # Row t reads token t - 1, so that rows after `shared` read a token that only this target has.
    steps = tuple(
        (i, j)
        for i, j in align_targets(a.target_ids, b.target_ids)
        if i is not None and j is not None and (is_same or max(i, j) > shared)
    )
    keys = len(a.target_ids) if is_same else shared + 1
    sides = [(a, [i for i, _ in steps]), (b, [j for _, j in steps])]

    def rows_of(kind: AttentionKind, trace: TranslationTrace, rows: list[int]) -> np.ndarray:
        weights = trace.maps(kind).weights[:, :, rows]
        if kind is AttentionKind.DECODER_SELF:
            return normalize_rows(weights[..., :keys].astype(np.float64))
        return weights

    kinds = [kind for kind in a.kinds if kind.side is Side.DECODER]
    divergences = {kind: _mean_divergence(*(rows_of(kind, *side) for side in sides)) for kind in kinds}
    return Comparison(shared, steps, divergences)


def _mean_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p, q [layers, heads, step, key] -> [layers, heads]"""
    if p.shape[2] == 0:
        return np.full(p.shape[:2], np.nan)
    return jensen_shannon_bits(p, q).mean(-1)

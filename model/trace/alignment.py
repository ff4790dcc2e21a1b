"""Word alignments: links between the words of two sentences, their symmetrisation, scores and text formats.

A set of links is a frozenset of (source word, target word), counted from 0. `RowToken` and `Voter` say which attention
heads links are read from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from functools import partial
from operator import and_, or_

import numpy as np

from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.words import word_groups

Links = frozenset[tuple[int, int]]  # (source word, target word), from 0
_LINK = re.compile(r"(\d{1,6})([-p])(\d{1,6})")


class RowToken(str, Enum):
    """The decoder row that stands for a target token: the row that reads it, or the row before, which predicts it.

    Layers near the input align tokens that are read, layers near the output tokens that are predicted. Confusing the
    two shifts all links by one word.
    """

    READ = "read"
    PREDICTED = "predicted"


@dataclass(frozen=True)
class Voter:
    """A cross-attention head that links are read from.

    row        the decoder row that stands for a target token
    by_length  whether links follow the norm of weight times value (Kobayashi et al. 2020) instead of the weight
    """

    layer: int
    head: int
    row: RowToken
    by_length: bool


def content_words(tokens: Sequence[str]) -> Groups:
    """Return the token positions of each word, without special symbols."""
    return tuple(group for group in word_groups(tokens) if not is_symbol(tokens[group[0]]))


def to_word_maps(maps: np.ndarray, source: Sequence[str], target: Sequence[str], row: RowToken) -> np.ndarray:
    """Merge cross-attention maps as pool_words() does; special symbols are dropped. target: y1 .. yT."""
    return pool_words(maps, content_words(source), content_words(target), row)


def pool_words(maps: np.ndarray, sources: Groups, targets: Groups, row: RowToken) -> np.ndarray:
    """Merge cross-attention maps [.., query, key] into float64 [.., target word, source word].

    sources, targets: the positions of each word's tokens, of targets among y1 .. yT. Weights are summed over a source
    word's tokens and averaged over a target word's (Kobayashi et al. 2020). No row reads the last token, so the row
    that predicts it stands for it.
    """
    queries, keys = maps.shape[-2:]
    sums, means = np.zeros((keys, len(sources))), np.zeros((len(targets), queries))
    for word, group in enumerate(sources):
        sums[list(group), word] = 1.0
    for word, group in enumerate(targets):
        for i in group:
            means[word, min(i + (row is RowToken.READ), queries - 1)] += 1 / len(group)
    return means @ (maps.astype(np.float64) @ sums)


def transpose_links(links: Links) -> Links:
    """Swap source and target of each link."""
    return frozenset((target, source) for source, target in links)


def grow_diagonal(forward: Links, backward: Links) -> Links:
    """Grow the intersection towards the union (Koehn et al. 2003, section 4.5; "grow-diag" of Moses' symal).

    Repeatedly add links of the union that touch an accepted link at a side or a corner and whose source or target word
    has no link yet.
    """
    accepted, candidates = set(forward & backward), forward | backward
    sources, targets = ({link[side] for link in accepted} for side in (0, 1))
    has_grown = True
    while has_grown:
        has_grown = False
        for source, target in sorted(accepted):
            neighbours = {(source + i, target + j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j}
            for link in sorted(neighbours & candidates - accepted):
                if link[0] not in sources or link[1] not in targets:
                    accepted.add(link)
                    sources.add(link[0])
                    targets.add(link[1])
                    has_grown = True
    return frozenset(accepted)


def grow_diagonal_final(forward: Links, backward: Links, is_enough: Callable[[Iterable[bool]], bool] = any) -> Links:
    """Return grow_diagonal() plus links of words that have none yet, the forward direction first.

    is_enough: any adds links whose source or target word has none ("grow-diag-final" of Moses' symal), all only those
    whose source and target words both have none ("grow-diag-final-and").
    """
    accepted = set(grow_diagonal(forward, backward))
    sources, targets = ({link[side] for link in accepted} for side in (0, 1))
    for candidates in (forward, backward):
        for source, target in sorted(candidates):
            if is_enough((source not in sources, target not in targets)):
                accepted.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(accepted)


SYMMETRISATIONS: Mapping[str, Callable[[Links, Links], Links]] = {
    "intersection": and_,  # the links that both directions have: few, mostly right
    "union": or_,  # the links that either direction has: many
    "grow-diag": grow_diagonal,
    "grow-diag-final": grow_diagonal_final,
    "grow-diag-final-and": partial(grow_diagonal_final, is_enough=all),
}


@dataclass(frozen=True)
class Gold:
    """Links made by hand: the sure ones, and the possible ones, which include the sure ones."""

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.possible | self.sure)


@dataclass(frozen=True)
class AlignmentScore:
    """Precision, recall and error rate of links, from counts that can be added over sentences.

    With links A, sure links S and possible links P (Och and Ney 2003, section 6): precision |A and P| / |A|, recall
    |A and S| / |S|, AER 1 - (|A and S| + |A and P|) / (|A| + |S|).
    """

    links: int
    sure: int
    right_sure: int
    right_possible: int

    @property
    def precision(self) -> float:
        """From 0 to 1; 1 if there are no links."""
        return self.right_possible / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """From 0 to 1; 1 if there are no sure links."""
        return self.right_sure / self.sure if self.sure else 1.0

    @property
    def error_rate(self) -> float:
        """AER, from 0 to 1; 0 if there are neither links nor sure links."""
        total = self.links + self.sure
        return 1.0 - (self.right_sure + self.right_possible) / total if total else 0.0

    def __add__(self, other: AlignmentScore) -> AlignmentScore:
        return AlignmentScore(*map(sum, zip(astuple(self), astuple(other))))


def score_links(links: Links, gold: Gold) -> AlignmentScore:
    """Score the links of one sentence."""
    return AlignmentScore(len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible))


def pool_scores(scores: Iterable[AlignmentScore]) -> AlignmentScore:
    """Add the counts of all sentences."""
    return sum(scores, AlignmentScore(0, 0, 0, 0))


def parse_links(line: str, *, first: int = 0) -> Gold:
    """Parse a line of links: Pharaoh's "0-0 1-2", or talp's "1-1 2p3", in which p marks a possible link.

    first: the number of a sentence's first word (by custom 0 in Pharaoh files, 1 in talp files). Raises ValueError for
    anything that is no link.
    """
    sure, possible = set(), set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise ValueError(f"{item!r} is no link: expected 3-4, or 3p4 for a possible one")
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise ValueError(f"{item!r}: words are counted from {first}")
        (sure if match[2] == "-" else possible).add(link)
    return Gold(frozenset(sure), frozenset(possible))


def to_pharaoh(links: Links) -> str:
    """Format links as one sorted line of a Pharaoh file, such as "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))

"""How good links are, beside links that people made. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from attention_atlas.model.trace.alignment.links import Links


@dataclass(frozen=True)
class Gold:
    """Links by hand: sure ones, and possible ones, among which the sure ones are."""

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        if not self.sure <= self.possible:
            object.__setattr__(self, "possible", self.possible | self.sure)


@dataclass(frozen=True)
class Score:
    """Of counts pooled over sentences (Och and Ney 2003, section 6), A the links, S the sure and P the possible ones:
    precision |A and P| / |A|, recall |A and S| / |S|, AER 1 - (|A and S| + |A and P|) / (|A| + |S|). Without links
    precision is 1; without sure ones recall is."""

    links: int
    sure: int
    right_sure: int
    right_possible: int

    @property
    def precision(self) -> float:
        return self.right_possible / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        return self.right_sure / self.sure if self.sure else 1.0

    @property
    def error_rate(self) -> float:
        """AER, from 0 to 1; 0 where there is nothing to link and nothing was."""
        total = self.links + self.sure
        return 1.0 - (self.right_sure + self.right_possible) / total if total else 0.0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.links + other.links,
            self.sure + other.sure,
            self.right_sure + other.right_sure,
            self.right_possible + other.right_possible,
        )


def score(found: Links, gold: Gold) -> Score:
    """One sentence's counts."""
    return Score(len(found), len(gold.sure), len(found & gold.sure), len(found & gold.possible))


def pooled(scores: Iterable[Score]) -> Score:
    """The counts of all sentences together."""
    return sum(scores, Score(0, 0, 0, 0))

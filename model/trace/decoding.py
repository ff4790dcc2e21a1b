"""How a trace's target was decoded: by which search, and how much of it was given. Importable without torch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from attention_atlas.model.trace import is_integer, is_number
from attention_atlas.model.trace.language import Refusal, Words, say

MAX_WIDTH = 8  # of a beam


@dataclass(frozen=True)
class Decoding:
    """width: hypotheses kept at each step, 1 is greedy decoding; length_penalty: alpha of Wu et al. 2016, equation 14;
    given: how many of the first target tokens somebody chose, so that no search found them. What a model's family
    forces, such as a language symbol, does not count. ValueError for impossible values."""

    width: int = 1
    length_penalty: float = 0.0
    given: int = 0

    def __post_init__(self) -> None:
        if not is_integer(self.width, 1, MAX_WIDTH):
            raise Refusal(
                "the beam width must be a whole number from 1 to {limit}, found {found}",
                limit=MAX_WIDTH,
                found=repr(self.width),
            )
        if not is_number(self.length_penalty) or not (
            math.isfinite(self.length_penalty) and 0.0 <= self.length_penalty <= 5.0
        ):
            raise Refusal("the length penalty must be from 0 to 5, found {found}", found=repr(self.length_penalty))
        object.__setattr__(self, "length_penalty", float(self.length_penalty) + 0.0)  # 0.0 for -0.0
        if not is_integer(self.given, 0):
            raise ValueError(f"how many tokens were given must be a whole number, found {self.given!r}")

    @property
    def beam(self) -> int:
        """The width alone, where that and the sentence give the target again; 0 where tokens or a penalty were set."""
        return 0 if self.given or self.length_penalty else self.width

    def describe(self, steps: int) -> Words:
        """In words. steps: how many tokens the target has."""
        if self.given >= steps:
            return say("given, not decoded")
        search = say("greedy") if self.width == 1 else say("beam {width}", width=self.width)
        if self.width > 1 and self.length_penalty:
            search = say("beam {width}, length penalty {alpha}", width=self.width, alpha=f"{self.length_penalty:g}")
        if self.given == 1:
            return say("1 token given, then {search}", search=search)
        return say("{n} tokens given, then {search}", n=self.given, search=search) if self.given else search


GREEDY = Decoding()


def decoding_words(decoding: Decoding | None, steps: int) -> Words:
    """How a target of so many tokens was decoded. None: not known."""
    return say("decoding not recorded") if decoding is None else decoding.describe(steps)


def to_plain(decoding: Decoding | None) -> dict | None:
    """JSON-ready; None: not known."""
    return None if decoding is None else asdict(decoding)


def from_plain(found: object) -> Decoding | None:
    """What to_plain() made. ValueError for anything else."""
    if found is None:
        return None
    if not isinstance(found, dict) or not set(found) <= {"width", "length_penalty", "given"}:
        raise ValueError(f"a decoding is an object of width, length_penalty and given, found {found!r:.200}")
    return Decoding(**found)

"""How a trace's target was decoded: by which search, and how many of its tokens were given."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from attention_atlas.model.trace import is_integer, is_number
from attention_atlas.model.trace.language import Refusal, Words, say, say_plural

MAX_WIDTH = 8  # of a beam


@dataclass(frozen=True)
class Decoding:
    """A search, and the number of target tokens that it did not choose.

    width           hypotheses at each step; 1 is greedy decoding
    length_penalty  alpha of Wu et al. 2016, equation 14
    given           how many of the first target tokens the user chose. Tokens that the model's family forces, such as
                    a language symbol, do not count

    ValueError for values outside their ranges.
    """

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
            raise ValueError(f"the number of given tokens must be a whole number, found {self.given!r}")

    @property
    def beam(self) -> int:
        """The width if text and width alone give the target again; 0 if there are given tokens or a penalty."""
        return 0 if self.given or self.length_penalty else self.width

    def describe(self, steps: int) -> Words:
        """Describe the decoding of a target of `steps` tokens."""
        if self.given >= steps:
            return say("chosen by you, not by the model")
        search = say("greedy") if self.width == 1 else say("beam {width}", width=self.width)
        if self.width > 1 and self.length_penalty:
            search = say("beam {width}, length penalty {alpha}", width=self.width, alpha=f"{self.length_penalty:g}")
        if self.given == 1:
            return say("1 token given, then {search}", search=search)
        if not self.given:
            return search
        return say_plural(
            "{n} token given, then {search}", "{n} tokens given, then {search}", n=self.given, search=search
        )


GREEDY = Decoding()


def describe_decoding(decoding: Decoding | None, steps: int) -> Words:
    """Describe how a target of `steps` tokens was decoded; None: unknown."""
    return say("decoding not recorded") if decoding is None else decoding.describe(steps)


def to_plain(decoding: Decoding | None) -> dict | None:
    """Convert to a JSON-ready object; None (unknown) stays None."""
    return None if decoding is None else asdict(decoding)


def from_plain(data: object) -> Decoding | None:
    """Read the result of to_plain(). ValueError for anything else."""
    if data is None:
        return None
    if not isinstance(data, dict) or not set(data) <= {"width", "length_penalty", "given"}:
        raise ValueError(f"a decoding is an object of width, length_penalty and given, found {data!r:.200}")
    return Decoding(**data)

"""Lines of links in files. Pharaoh: "0-0 1-2", from 0, source first. talp: "1-1 2p3", from 1 by custom, p for possible.
Imports no torch."""

from __future__ import annotations

import re

from attention_atlas.model.trace.alignment.links import Links
from attention_atlas.model.trace.alignment.score import Gold

_POINT = re.compile(r"(\d{1,6})([-p])(\d{1,6})")


def read_line(line: str, *, first: int = 0) -> Gold:
    """The links of one line. first: the number of a sentence's first word, 0 or 1. ValueError for anything else."""
    sure, possible = set(), set()
    for point in line.split():
        match = _POINT.fullmatch(point)
        if match is None:
            raise ValueError(f"{point!r} is no link: expected 3-4, or 3p4 for a possible one")
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise ValueError(f"{point!r}: words are counted from {first}")
        (sure if match[2] == "-" else possible).add(link)
    return Gold(frozenset(sure), frozenset(sure | possible))


def pharaoh(links: Links) -> str:
    """One line, from 0, in order."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))

"""The tables of the composed sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def rows(name: str) -> Iterator[list[str]]:
    """Return the lines of a table, split at tabs; # begins a comment. Raises ValueError for a line without a tab."""
    for number, line in enumerate((Path(__file__).parent / name).read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            row = [cell.strip() for cell in line.split("\t")]
            if len(row) < 2:
                raise ValueError(f"{name}, line {number}: no tab in {line!r}")
            yield row

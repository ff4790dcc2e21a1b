"""Corpora that come as one table: English TAB other language, gzipped; and our own, in three languages."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from model.training.sources.readers import Corpus, clean, read_lines

FILES = {"de": "deu-eng.tsv.gz", "fr": "fra-eng.tsv.gz"}

SAYINGS, SAYINGS_FILE = "sayings", Path(__file__).with_name("sayings.tsv")


def read_sayings(path: Path = SAYINGS_FILE) -> list[Corpus]:
    """Everyday sentences of our own: German TAB English TAB French, a corpus for each pair of these languages. A line
    may lack the last one; # begins a comment."""
    rows = [line.split("\t") for line in read_lines(path) if line and not line.startswith("#")]
    return [
        Corpus(
            SAYINGS,
            (first[1], second[1]),
            clean((row[first[0]], row[second[0]]) for row in rows if second[0] < len(row)),
        )
        for first, second in combinations(enumerate(("de", "en", "fr")), 2)
    ]


def read_table(path: str | Path, language: str, *, name: str) -> Corpus:
    """(language, English) pairs of a table. ValueError for a row that does not have two columns."""
    rows = [line.split("\t") for line in read_lines(Path(path))]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise ValueError(f"{path}, line {number}: expected English TAB translation, found {len(row)} columns")
    return Corpus(name, (language, "en"), clean((other, english) for english, other in rows))

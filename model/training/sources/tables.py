"""Corpora that come as one table: English TAB other language, gzipped."""

from __future__ import annotations

from pathlib import Path

from attention_atlas.model.training.sources.readers import Corpus, clean, read_lines

FILES = {"de": "deu-eng.tsv.gz", "fr": "fra-eng.tsv.gz"}


def read_table(path: str | Path, language: str, *, name: str) -> Corpus:
    """(language, English) pairs of a table. ValueError for a row that does not have two columns."""
    rows = read_rows(Path(path), "English TAB translation")
    return Corpus(name, (language, "en"), clean((other, english) for english, other in rows))


def read_rows(path: Path, wanted: str) -> list[list[str]]:
    """The lines of a table, split. ValueError for one that has not as many columns as `wanted` names."""
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != wanted.count(" TAB ") + 1:
            raise ValueError(f"{path}, line {number}: expected {wanted}, found {len(row)} columns")
    return rows

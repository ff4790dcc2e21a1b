"""Corpora that come as one gzipped table: English TAB other language."""

from __future__ import annotations

from pathlib import Path

from model.training.sources.readers import Corpus, clean, read_lines

FILES = {"de": "deu-eng.tsv.gz", "fr": "fra-eng.tsv.gz"}


def read_table(path: str | Path, language: str, *, name: str) -> Corpus:
    """(language, English) pairs of a table. ValueError for a row that does not have two columns."""
    rows = [line.split("\t") for line in read_lines(Path(path))]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise ValueError(f"{path}, line {number}: expected English TAB translation, found {len(row)} columns")
    return Corpus(name, (language, "en"), clean((other, english) for english, other in rows))

"""Corpora that come as one gzipped table: English TAB other language."""

from __future__ import annotations

from pathlib import Path

from model.training.sources.readers import Corpus, clean, read_lines

FILES = {"de": "deu-eng.tsv.gz", "fr": "fra-eng.tsv.gz"}
ENTRY = "\x1c"  # before a dictionary's entry that is no sentence: FILE SEPARATOR, which nobody types
_SENTENCE_ENDS = (".", "!", "?")


def read_table(path: str | Path, language: str, *, name: str) -> Corpus:
    """(language, English) pairs of a table. ValueError for a row that does not have two columns."""
    rows = [line.split("\t") for line in read_lines(Path(path))]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise ValueError(f"{path}, line {number}: expected English TAB translation, found {len(row)} columns")
    return Corpus(name, (language, "en"), clean((other, english) for english, other in rows))


def dictionary_parts(entries: Corpus) -> tuple[Corpus, Corpus]:
    """The sentences of a dictionary, which look like any other, and its words and phrases, whose first side is marked
    by ENTRY: their form differs, and a model should not answer a sentence in it."""
    sentences = tuple(pair for pair in entries.pairs if all(side.endswith(_SENTENCE_ENDS) for side in pair))
    chosen = set(sentences)
    words = tuple((f"{ENTRY} {a}", b) for a, b in entries.pairs if (a, b) not in chosen)
    return (
        Corpus("dictionary-sentences", entries.languages, sentences),
        Corpus("dictionary", entries.languages, words, one_way=True),
    )

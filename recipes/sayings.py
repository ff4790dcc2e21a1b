"""Everyday sentences of this project as a training corpus."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from attention_atlas.model.training.sources.readers import Corpus, clean_pairs, read_table

NAME, FILE = "sayings", Path(__file__).with_name("sayings.tsv")


def read_sayings() -> list[Corpus]:
    """Return a corpus for each pair of the languages of the file: German TAB English TAB French."""
    columns = zip(("de", "en", "fr"), zip(*read_table(FILE, "German TAB English TAB French")))
    return [
        Corpus(NAME, (first, second), clean_pairs(zip(texts, others)))
        for (first, texts), (second, others) in combinations(columns, 2)
    ]

"""Corpora of three columns, more/NAME.tsv.gz: English TAB German TAB French, empty where a language is missing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from attention_atlas.model.training.sources.plausible import plausible
from attention_atlas.model.training.sources.readers import Corpus, Splits, normalised, read_lines, tidied
from attention_atlas.model.training.sources.words import WORDS

LANGUAGES = ("en", "de", "fr")
Row = tuple[str, str, str]  # a line, tidied, "" where a language is missing
# Files that are one corpus: by its name recipes weigh it and scores are given. Any other file is a corpus of its own.
CORPORA = {
    "tatoeba-more": ("tatoeba-new", "tatoeba-pivot", "tatoeba-de-fr"),
    "subtitles": ("opensubtitles-de", "opensubtitles-fr"),
    "chats": ("chat-bcontrast", "chat-wmt", "chat-diabla", "restaurant-woz"),
    "assistant": ("assistant-massive",),
    "general": ("xnli",),
    "news-2024": ("news-2019-2024",),
    "dialogues": ("dailydialog",),
    "personal": ("formality-cocoa", "persona-fr"),
    "interface": ("games", "game-andors-trail", "app-texts"),
    "encyclopedic": ("wiki-and-mixed", "gender-wiki", "paraphrase-pawsx", "questions"),
    "formal": ("idioms", "word-senses"),
}
# Percent of a corpus that is its test part, where 1 would be fewer than 300 sentences in a direction.
TEST_SHARE = {"subtitles": 2, "chats": 4, "assistant": 3, "general": 4, "news-2024": 16, "dialogues": 2, "ted": 4}
DEV_SHARE = 3  # percent at most
NEVER_TRAINED = frozenset({"ted"})  # its licence allows no derivatives


def read_rows(path: Path) -> list[Row]:
    """The lines with a sentence in two languages at least. ValueError for a line that does not have three columns."""
    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        row = tuple(map(tidied, line.split("\t")))
        if len(row) != len(LANGUAGES):
            raise ValueError(f"{path}, line {number}: expected English, German and French, found {len(row)} columns")
        if len(list(filter(None, row))) > 1:
            rows.append(row)
    return rows


def read_more(folder: Path, known: Iterable[Splits], wanted: Iterable[tuple[str, str]]) -> list[list[Splits]]:
    """All corpora of a folder for each pair of languages.

    A row belongs to a part by SHA-1 of its normalised English sentence (without one, of the German) modulo 100: below
    TEST_SHARE it is test, then for as much, at most DEV_SHARE, dev. Of those the rows that share a side with the
    training part of a corpus of `known` are left out, so that who was trained on that has not read them. The rest
    trains if it shares no side, in any language, with a held-out sentence of any corpus, these or the known ones.
    """
    known = list(known)
    read = {normalised(side) for splits in known for pair in splits.train.pairs for side in pair}
    taken = {normalised(side) for s in known for part in (s.dev, s.test) for pair in part.pairs for side in pair}
    parts: dict[str, dict[str, list[Row]]] = {}
    for path in sorted(folder.glob("*.tsv.gz")):
        stem = path.name.removesuffix(".tsv.gz")
        name = next((name for name, files in CORPORA.items() if stem in files), stem)
        corpus = parts.setdefault(name, {"train": [], "dev": [], "test": []})
        for row in read_rows(path):
            part = _part(row, name)
            if part == "train":
                corpus[part].append(row)
            elif not (compared := _compared(row)) & read:
                corpus[part].append(row)
                taken |= compared
    for name, corpus in parts.items():
        rows = () if name in NEVER_TRAINED else corpus["train"]
        corpus["train"] = [row for row in rows if not _compared(row) & taken]
    return [[splits for name, corpus in parts.items() if (splits := _splits(name, corpus, pair))] for pair in wanted]


def _compared(row: Row) -> set[str]:
    return {normalised(side) for side in row if side}


def _part(row: Row, name: str) -> str:
    if name in WORDS:
        return "train"
    bucket = int(hashlib.sha1(normalised(row[0] or row[1]).encode()).hexdigest(), 16) % 100
    share = TEST_SHARE.get(name, 1)
    return "test" if bucket < share else "dev" if bucket < share + min(share, DEV_SHARE) else "train"


def _splits(name: str, corpus: dict[str, list[Row]], pair: tuple[str, str]) -> Splits | None:
    if not set(pair) <= set(LANGUAGES):
        return None
    first, second = map(LANGUAGES.index, pair)
    parts = {}
    for part, rows in corpus.items():
        pairs = [(row[first], row[second]) for row in rows if row[first] and row[second]]
        if part == "train" and name not in WORDS:
            pairs = [sides for sides in pairs if plausible(sides, pair)]
        parts[part] = Corpus(name, pair, tuple(dict.fromkeys(pairs)))
    return Splits(**parts) if any(part.pairs for part in parts.values()) else None

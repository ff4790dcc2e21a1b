"""Corpora with three columns, more/NAME.tsv.gz: English TAB German TAB French, empty if a language is missing.

read_more() splits them so that no held-out sentence occurs in any training part; is_plausible() filters training pairs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from attention_atlas.model.training.sources.readers import Corpus, Splits, comparison_key, normalize_text, read_table
from attention_atlas.model.training.sources.words import WORDS

LANGUAGES = ("en", "de", "fr")
Row = tuple[str, str, str]  # a sentence in LANGUAGES, "" if one is missing
# Corpora that consist of several files. Any other file is a corpus of its own.
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
# The percentage of test sentences, for corpora in which 1 % would be fewer than 300 sentences in a direction.
TEST_SHARE = {"subtitles": 2, "chats": 4, "assistant": 3, "general": 4, "news-2024": 16, "dialogues": 2, "ted": 4}
MAX_DEV_SHARE = 3  # percent
NEVER_TRAINED = frozenset({"ted"})  # its licence allows no derivatives
# Words that occur in most sentences of a language and not in the others.
_FUNCTION_WORDS = {
    "en": "the and of to is that it you for was with have this be are not what from they would there your",
    "de": "der und das ist nicht ein ich sie zu den mit wir eine auf für es dass auch sich dem bei wie wird oder",
    "fr": "le les des est pas une vous que qui dans pour je il elle nous avec sur ce cette sont mais au du et",
}
FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
MARKUP = re.compile(r"[<>{}\[\]|\\_@#%$=~^*]|https?:|www\.|\.(?:com|org|png|exe)\b|&\w+;|\w+\.\w+\.\w+\.")
MAX_LENGTH_RATIO, FREE = 2.2, 8  # of the two sides in characters, after adding FREE to both
_WORD = re.compile(r"[^\W\d_]+")


def read_rows(path: Path) -> list[Row]:
    """Return the lines with sentences in at least two languages. Raises ValueError for a line without three columns."""
    rows = [tuple(map(normalize_text, row)) for row in read_table(path, "English TAB German TAB French")]
    return [row for row in rows if len(list(filter(None, row))) > 1]


def read_more(folder: Path, known: Iterable[Splits], language_pairs: Iterable[tuple[str, str]]) -> list[list[Splits]]:
    """Read all corpora of a folder for each pair of languages, avoiding overlap with the known corpora.

    A row is assigned by SHA-1 of its English sentence (or else the German one) modulo 100: the first TEST_SHARE
    percent are test, the next ones, as many but at most MAX_DEV_SHARE, dev. Held-out rows that share a side with the
    training part of a known corpus are left out, because a model trained on that has read them. Training rows that
    share a side, in any language, with any held-out sentence are left out as well.
    """
    known = list(known)
    trained = {comparison_key(side) for splits in known for pair in splits.train.pairs for side in pair}
    held_out = {comparison_key(side) for s in known for part in (s.dev, s.test) for pair in part.pairs for side in pair}
    parts: dict[str, dict[str, list[Row]]] = {}
    for path in sorted(folder.glob("*.tsv.gz")):
        stem = path.name.removesuffix(".tsv.gz")
        name = next((name for name, files in CORPORA.items() if stem in files), stem)
        corpus = parts.setdefault(name, {"train": [], "dev": [], "test": []})
        for row in read_rows(path):
            part = _part(row, name)
            if part == "train":
                corpus[part].append(row)
            elif not (keys := _keys(row)) & trained:
                corpus[part].append(row)
                held_out |= keys
    for name, corpus in parts.items():
        rows = () if name in NEVER_TRAINED else corpus["train"]
        corpus["train"] = [row for row in rows if not _keys(row) & held_out]
    return [
        [splits for name, corpus in parts.items() if (splits := _splits(name, corpus, pair))] for pair in language_pairs
    ]


def _keys(row: Row) -> set[str]:
    return {comparison_key(side) for side in row if side}


def _part(row: Row, name: str) -> str:
    if name in WORDS:
        return "train"
    bucket = int(hashlib.sha1(comparison_key(row[0] or row[1]).encode()).hexdigest(), 16) % 100
    share = TEST_SHARE.get(name, 1)
    return "test" if bucket < share else "dev" if bucket < share + min(share, MAX_DEV_SHARE) else "train"


def _splits(name: str, corpus: dict[str, list[Row]], pair: tuple[str, str]) -> Splits | None:
    if not set(pair) <= set(LANGUAGES):
        return None
    first, second = map(LANGUAGES.index, pair)
    parts = {}
    for part, rows in corpus.items():
        pairs = [(row[first], row[second]) for row in rows if row[first] and row[second]]
        if part == "train" and name not in WORDS:
            pairs = [sides for sides in pairs if is_plausible(sides, pair)]
        parts[part] = Corpus(name, pair, tuple(dict.fromkeys(pairs)))
    return Splits(**parts) if any(part.pairs for part in parts.values()) else None


def is_plausible(pair: tuple[str, str], languages: tuple[str, str]) -> bool:
    """Return whether a pair may be a translation: similar length, no markup, different texts, in its languages."""
    first, second = (len(side) + FREE for side in pair)
    if max(first, second) > MAX_LENGTH_RATIO * min(first, second) or any(map(MARKUP.search, pair)):
        return False
    words = [_WORD.findall(side.lower()) for side in pair]
    if not all(words) or (len(words[0]) > 3 and words[0] == words[1]):
        return False
    for side, language in zip(words, languages):
        counts = {code: sum(word in known for word in side) for code, known in FUNCTION_WORDS.items()}
        own = counts.pop(language, len(side))
        if max(counts.values()) > max(own, 1):  # a single function word of another language proves nothing
            return False
    return True

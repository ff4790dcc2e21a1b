"""Dictionaries as training corpora, restricted to entries with familiar English words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from attention_atlas.model.training.sources.readers import Corpus, Splits, clean_pairs, read_table

WORDS = frozenset({"lexicon", "dictionary"})  # corpora that hold words instead of sentences
DING = Path("dictionary/deu-eng.tsv.gz")  # English TAB German
FAMILIAR = 10  # occurrences of each English word in the other corpora
MAX_CHARACTERS = 120  # of a side
ALTERNATIVES = re.compile(r"[/…;<>{}\[\]()|\\]|\.\.|\betc\b")
ABBREVIATIONS = {
    r"\bsb\.['’]s": "somebody's",
    r"\bsb\.": "somebody",
    r"\bsth\.": "something",
    r"\bjdm\.": "jemandem",
    r"\bjdn\.": "jemanden",
    r"\bjds\.": "jemandes",
    r"\bjd\.": "jemand",
    r"\betw\.": "etwas",
}
_ABBREVIATIONS = [(re.compile(pattern), word) for pattern, word in ABBREVIATIONS.items()]
_WORD = re.compile(r"[^\W\d_]+")


def read_dictionary(root: Path, languages: tuple[str, str]) -> Splits | None:
    """Read the dictionary Ding of a data folder, with abbreviations written out.

    Returns None for other languages or without the file. Raises ValueError for a line without two columns.
    """
    path = root / DING
    if languages != ("de", "en") or not path.is_file():
        return None
    rows = [row for row in read_table(path, "English TAB German") if max(map(len, row)) <= MAX_CHARACTERS]
    pairs = [(_expand(german), _expand(english)) for english, german in rows]
    return Splits(Corpus("dictionary", languages, clean_pairs(pairs)))


def keep_familiar(corpora: list[Splits]) -> list[Splits]:
    """Return the corpora; of dictionaries (WORDS), only entries without alternatives whose English words each occur
    FAMILIAR times in the other corpora."""
    if not any(splits.train.name in WORDS for splits in corpora):
        return corpora
    counts = Counter(word for s in corpora if s.train.name not in WORDS for word in _words(_english(s.train)))
    return [
        splits if splits.train.name not in WORDS else replace(splits, train=_keep_entries(splits.train, counts))
        for splits in corpora
    ]


def _keep_entries(corpus: Corpus, counts: Counter[str]) -> Corpus:
    pairs = [
        pair
        for pair, text in zip(corpus.pairs, _english(corpus))
        if not any(map(ALTERNATIVES.search, pair)) and all(counts[word] >= FAMILIAR for word in _words([text]))
    ]
    return replace(corpus, pairs=tuple(pairs))


def _english(corpus: Corpus) -> list[str]:
    """Return the English sides, or the first ones if no side is English."""
    side = corpus.languages.index("en") if "en" in corpus.languages else 0
    return [pair[side] for pair in corpus.pairs]


def _words(texts: Iterable[str]) -> Iterable[str]:
    return (word for text in texts for word in _WORD.findall(text.lower()))


def _expand(text: str) -> str:
    for pattern, word in _ABBREVIATIONS:
        text = pattern.sub(word, text)
    return text

"""Dictionaries, to train on alone: of their lines, those whose English somebody meets every day."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from attention_atlas.model.training.sources.readers import Corpus, Splits, clean, read_lines

WORDS = frozenset({"lexicon", "dictionary"})  # no sentences to score, nor to judge by rules for sentences
DING = Path("dictionary/deu-eng.tsv.gz")  # English TAB German
FAMILIAR = 10  # times that each English word of a line stands in the other corpora
LONGEST = 120  # characters of a side
ALTERNATIVES = re.compile(r"[/…;<>{}\[\]()|\\]|\.\.|\betc\b")
SHORT = {
    r"\bsb\.['’]s": "somebody's",
    r"\bsb\.": "somebody",
    r"\bsth\.": "something",
    r"\bjdm\.": "jemandem",
    r"\bjdn\.": "jemanden",
    r"\bjds\.": "jemandes",
    r"\bjd\.": "jemand",
    r"\betw\.": "etwas",
}
_SHORT = [(re.compile(pattern), word) for pattern, word in SHORT.items()]
_WORD = re.compile(r"[^\W\d_]+")


def read_dictionary(root: Path, languages: tuple[str, str]) -> Splits | None:
    """The dictionary Ding of a data folder, abbreviations written out; None where it is not there or has other
    languages. ValueError for a line that does not have two columns."""
    path = root / DING
    if languages != ("de", "en") or not path.is_file():
        return None
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        sides = line.split("\t")
        if len(sides) != 2:
            raise ValueError(f"{path}, line {number}: expected English and German, found {len(sides)} columns")
        if max(map(len, sides)) <= LONGEST:
            pairs.append((_whole(sides[1]), _whole(sides[0])))
    nothing = Corpus("dictionary", languages, ())
    return Splits(Corpus("dictionary", languages, clean(pairs)), nothing, nothing)


def familiar(found: list[Splits]) -> list[Splits]:
    """The corpora, of WORDS those lines alone that give no alternatives and whose English words each stand
    FAMILIAR times in the others."""
    if not any(splits.train.name in WORDS for splits in found):
        return found
    met = Counter(word for s in found if s.train.name not in WORDS for word in _words(_english(s.train)))
    return [
        splits if splits.train.name not in WORDS else Splits(_met(splits.train, met), splits.dev, splits.test)
        for splits in found
    ]


def _met(corpus: Corpus, counts: Counter[str]) -> Corpus:
    kept = [
        pair
        for pair, text in zip(corpus.pairs, _english(corpus))
        if not any(map(ALTERNATIVES.search, pair)) and all(counts[word] >= FAMILIAR for word in _words([text]))
    ]
    return Corpus(corpus.name, corpus.languages, tuple(kept), corpus.one_way)


def _english(corpus: Corpus) -> list[str]:
    """The English sides; where there is none, the first."""
    side = corpus.languages.index("en") if "en" in corpus.languages else 0
    return [pair[side] for pair in corpus.pairs]


def _words(texts: Iterable[str]) -> Iterable[str]:
    return (word for text in texts for word in _WORD.findall(text.lower()))


def _whole(text: str) -> str:
    for pattern, word in _SHORT:
        text = pattern.sub(word, text)
    return text

"""Check the words of the page: make lint.

Each English word of the page's sentences is a common word (tests/vocabulary/common.txt), a term of the glossary, or an
exception with its reason (tests/vocabulary/exceptions.toml). Other words are listed, each with a sentence that has it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attention_atlas.model.program import run_program
from tests import ROOT
from tests.words import from_javascript, glossary_sentences, page_sentences, tour_sentences

LISTS = Path(__file__).with_suffix("")
GLOSSARY = (ROOT / "viz/web/lab/glossary.js", ROOT / "viz/web/core/wording.js")
FIELD = re.compile(r"\{\w+\}")
SPLIT = re.compile(r"[^A-Za-z0-9'’_+-]+")
WORD = re.compile(r"[A-Za-z]{2,}(?:['’][a-z]+)?")
CODE = re.compile(r"`[^`]*`|\S*[\\/_=#@^]\S*|<[^>]*>|[A-Za-z]+\([^)]*\)|\b[a-z]+\.[a-z]+\b")  # symbols, marks and code
# The ending of a word -> those of words in the lists that it may come from.
ENDINGS = {
    "'s": [""],
    "s": [""],
    "es": ["", "e"],
    "ies": ["y"],
    "ed": ["", "e"],
    "ied": ["y"],
    "ing": ["", "e"],
    "er": ["", "e"],
    "est": ["", "e"],
    "ier": ["y"],
    "iest": ["y"],
    "ly": ["", "le"],
    "ily": ["y"],
    "n't": ["", "n"],
}


def unknown_words() -> dict[str, str]:
    """Return each word of the page that is in none of the lists, with the first sentence that has it."""
    sentence_of: dict[str, str] = {}
    for sentence in sentences():
        for word in words_of(sentence):
            if not is_known(word):
                sentence_of.setdefault(word, sentence)
    return sentence_of


def sentences() -> Iterator[str]:
    """Yield the English sentences of the page, the tours and the glossary, and the forms of plurals."""
    for sentence in (*page_sentences(), *tour_sentences(), *glossary_sentences()):
        yield from [sentence] if isinstance(sentence, str) else sentence


def words_of(sentence: str) -> Iterator[str]:
    """Yield the words of a sentence, in small letters. A word with hyphens that the lists do not have is its parts."""
    for text in SPLIT.split(CODE.sub(" ", FIELD.sub(" ", sentence))):
        word = text.strip("'’-").replace("’", "'").lower()
        yield from [word] if is_known(word) else [part.lower() for part in WORD.findall(word)]


def is_known(word: str) -> bool:
    """Return whether a word or one that it is a form of is in one of the lists."""
    return word in vocabulary() or any(map(is_known, bases(word)))


def bases(word: str) -> Iterator[str]:
    """Yield the words that a word may be a regular form of: "running" of "run", "studies" of "study"."""
    for ending, others in ENDINGS.items():
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1:
            yield from (stem + other for other in others)
            if len(stem) > 2 and stem[-1] == stem[-2]:
                yield stem[:-1]


@cache
def vocabulary() -> frozenset[str]:
    """Return the words of all lists and of the glossary's terms, in small letters."""
    common = (LISTS / "common.txt").read_text(encoding="utf-8").split()
    reasons = tomllib.loads((LISTS / "exceptions.toml").read_text(encoding="utf-8"))
    exceptions = [word for words in reasons.values() for word in words.split()]
    terms = {part for path in GLOSSARY for term in from_javascript(path) for part in re.split(r"[|\s]+", term)}
    return frozenset(word.lower() for word in (*common, *exceptions, *terms))


def main() -> None:
    """List unknown words; fail if there are any."""
    unknown = unknown_words()
    for word, sentence in sorted(unknown.items()):
        print(f"{word}: {sentence}")
    if unknown:
        raise ValueError(
            f"{len(unknown)} words of the page are in no list: use a common word, explain the word in the glossary"
            " (viz/web/lab/glossary.js), or add it to a file of tests/vocabulary/, where exceptions have a reason"
        )


if __name__ == "__main__":
    run_program(main)

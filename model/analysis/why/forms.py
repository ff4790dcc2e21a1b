"""Which grammatical forms a word can be: for words that may stand in another one's place.

The tables beside this file are of the lexicon in recipes/composed; `python -m recipes.forms` writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

Form = tuple[str, ...]  # such as ("noun", "n", "nom") or ("verb", "past participle")
TABLES = {language: Path(__file__).with_name(f"forms.{language}.tsv") for language in ("de", "en")}


@lru_cache(maxsize=2)
def forms(language: str) -> Mapping[str, frozenset[Form]]:
    """Return every known word in lower case -> the forms that it can be; empty for a language without a table.

    A line of a table: forms apart by ";", the words of a form by ",", then TAB, and the words that can be all of these.
    """
    if language not in TABLES:
        return {}
    found = {}
    for line in TABLES[language].read_text(encoding="utf-8").splitlines():
        names, words = line.split("\t")
        found.update(dict.fromkeys(words.split(), frozenset(tuple(name.split(",")) for name in names.split(";"))))
    return found

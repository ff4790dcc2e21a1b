"""The page's own words in its languages. A language is a file of viz/web/words/, for the page and for Python alike.

English is the key and the fallback. Python never knows a visitor's language: it sends the English with the values that
belong into it, and viz/web/core/language.js puts the values into the words of that language.
"""

from __future__ import annotations

import json
from pathlib import Path

from attention_atlas.model.trace.language import Words, join, say
from attention_atlas.viz import assets

__all__ = ["FOLDER", "Words", "files", "for_page", "join", "read", "say"]
FOLDER = assets.WEB / "words"


def for_page(value: object) -> object:
    """The same JSON-ready value, its Words as {say, with} for viz/web/core/language.js."""
    if isinstance(value, Words):
        return {"say": value.english, "with": for_page(dict(value.values))}
    if isinstance(value, dict):
        return {key: for_page(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        plain = set(map(type, value)) <= {int, float}  # the long lists
        return value if plain else [for_page(part) for part in value]
    return value


def files() -> dict[str, Path]:
    """The page's languages besides English, by their codes ("de"), and the file of each."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.json"))}


def read(path: Path) -> dict[str, str]:
    """A language's words: English -> text. What it lacks, or has an empty text for, is shown in English."""
    return json.loads(path.read_text(encoding="utf-8"))

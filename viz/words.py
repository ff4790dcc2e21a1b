"""The page's sentences in its languages. A language is a file of viz/web/words/, which `make words` writes.

English is the key and the fallback. Python does not know a visitor's language: it sends the English template and the
values for it, and viz/web/core/language.js translates the template and fills in the values.
"""

from __future__ import annotations

import json
from pathlib import Path

from attention_atlas.model.trace.language import Words, join, say, say_plural
from attention_atlas.viz import assets

__all__ = ["FOLDER", "GLOSSARY", "Words", "files", "for_page", "join", "read", "say", "say_plural"]
FOLDER = assets.WEB / "words"
GLOSSARY = FOLDER / "glossary"  # of the glossary's entries, loaded with them


def for_page(value: object) -> object:
    """Return a JSON-ready value in which Words are {say, with}, and with a plural {say, one, with}."""
    if isinstance(value, Words):
        singular = {} if value.one is None else {"one": value.one}
        return {"say": value.english, **singular, "with": for_page(dict(value.values))}
    if isinstance(value, dict):
        return {key: for_page(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        is_numeric = set(map(type, value)) <= {int, float}  # long lists are numeric
        return value if is_numeric else [for_page(part) for part in value]
    return value


def files() -> dict[str, Path]:
    """Return the file of each language besides English, by its code ("de")."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.json"))}


def read(path: Path) -> dict[str, str | dict[str, str]]:
    """Return a language's translations by the English template. One with a plural is a dict by the CLDR category of the
    number, such as "one" and "other". A template that is missing is shown in English."""
    return json.loads(path.read_text(encoding="utf-8"))

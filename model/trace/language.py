"""Translatable sentences: an English template with {names}, and the values for them.

As a string, `Words` is English, for the library, the programs and the API. The page shows the same sentence in the
visitor's language: it looks the template up in that language and fills in the values (viz/words.py). Code never parses
a sentence.

>>> say("{text} has {n} tokens", text="It", n=1200)
'It has 1,200 tokens'
>>> say_plural("{n} token", "{n} tokens", n=1)
'1 token'
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Self


class Words(str):
    """An English sentence, with the template and the values that it was made from.

    Attributes:
        english: the template with its {names}; of a sentence with a plural that of the plural
        values: JSON-ready values or Words, by name
        one: the template for n = 1; None without a plural
    """

    english: str
    values: Mapping[str, object]
    one: str | None

    def __new__(cls, english: str, values: Mapping[str, object], one: str | None = None) -> Self:
        template = english if one is None or values["n"] != 1 else one
        words = super().__new__(cls, template.format(**{name: _format(value) for name, value in values.items()}))
        words.english, words.values, words.one = english, values, one
        return words

    def __getnewargs__(self) -> tuple[str, Mapping[str, object], str | None]:  # for pickle and copy
        return self.english, self.values, self.one


def _format(value: object) -> object:
    # Integers are grouped in thousands. They travel to the page as numbers, since other languages group them otherwise.
    return f"{value:,}" if type(value) is int else value


def say(english: str, /, **values: object) -> Words:
    """Return a sentence with values for its {names}."""
    return Words(english, values)


def say_plural(one: str, other: str, /, *, n: int, **values: object) -> Words:
    """Return a sentence that depends on the number n: `one` for n = 1, else `other`."""
    return Words(other, {"n": n, **values}, one)


def join(parts: Iterable[str | int], separator: str = "") -> Words:
    """Join sentences, other strings and numbers. Each part is translated by itself."""
    values = {f"part{index}": part for index, part in enumerate(parts)}
    escaped = separator.replace("{", "{{").replace("}", "}}")
    return Words(escaped.join(f"{{{name}}}" for name in values), values)


class Refusal(ValueError):
    """An error that a user or visitor can cause, with a translatable message: `Refusal("The text has {n} tokens.",
    n=99)`."""

    def __init__(self, english: str, /, **values: object) -> None:
        self.words: Words = Words(english, values)
        super().__init__(self.words)

    @classmethod
    def of(cls, words: Words) -> Self:
        """Return an error with this message."""
        error = cls(words.english, **words.values)
        error.words, error.args = words, (words,)
        return error

    def __reduce__(self) -> tuple[Any, ...]:  # on a ZeroGPU Space errors cross from one process to another
        return functools.partial(type(self).of, self.words), ()


def error_message(error: Exception) -> str:
    """Return an error's message: the Words of a Refusal, or else its English text."""
    return error.words if isinstance(error, Refusal) else str(error)

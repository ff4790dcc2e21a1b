"""Messages for people: an English sentence with {names}, and the values for them.

As a string a message is English, for the library, the programs and the API. The page translates the sentence and
inserts the values (viz/words.py).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any


class Words(str):
    """An English string that keeps its sentence and its values, which are JSON-ready or Words themselves."""

    english: str
    values: Mapping[str, object]

    def __new__(cls, english: str, values: Mapping[str, object]) -> Words:
        # English groups the digits of an integer; the page groups them in its own language.
        texts = {name: f"{value:,}" if type(value) is int else value for name, value in values.items()}
        words = super().__new__(cls, english.format(**texts))
        words.english, words.values = english, values
        return words

    def __getnewargs__(self) -> tuple[str, Mapping[str, object]]:  # for pickle and copy
        return self.english, self.values


def say(english: str, /, **values: object) -> Words:
    """Make a message of a sentence and the values for its {names}."""
    return Words(english, values)


def join(parts: Iterable[str | int], separator: str = "") -> Words:
    """Concatenate messages, other strings and numbers; the page translates each part by itself."""
    values = {f"part{index}": part for index, part in enumerate(parts)}
    between = separator.replace("{", "{{").replace("}", "}}")
    return Words(between.join(f"{{{name}}}" for name in values), values)


class Refusal(ValueError):
    """An error that a visitor can cause, with a translatable message: `Refusal("The text has {n} tokens.", n=99)`."""

    def __init__(self, english: str, /, **values: object) -> None:
        self.words: Words = Words(english, values)
        super().__init__(self.words)

    @classmethod
    def of(cls, words: Words) -> Refusal:
        """Make a refusal of an existing message."""
        return cls(words.english, **words.values)

    def __reduce__(self) -> tuple[Any, ...]:  # for pickle: on a ZeroGPU Space errors come from another process
        return functools.partial(type(self), self.words.english, **self.words.values), ()


def error_message(error: Exception) -> str:
    """Return the message of an error: translatable Words for a Refusal, English for any other."""
    return error.words if isinstance(error, Refusal) else str(error)

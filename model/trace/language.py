"""What this project says to people, as a sentence of English and the values in it.

As a string it is English, for the library, the programs and the API. The page says the same in the visitor's language:
it looks the sentence up and puts the values in (viz/words.py), and nothing ever reads a sentence back.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any


class Words(str):
    """The English string; beside it the sentence with its {names}, and the values, JSON-ready or Words themselves."""

    english: str
    values: Mapping[str, object]

    def __new__(cls, english: str, values: Mapping[str, object]) -> Words:
        words = super().__new__(cls, english.format(**{name: _written(value) for name, value in values.items()}))
        words.english, words.values = english, values
        return words

    def __getnewargs__(self) -> tuple[str, Mapping[str, object]]:  # for pickle and copy
        return self.english, self.values


def _written(value: object) -> object:
    # A whole number is grouped as English does; the page groups it in its own way, so that it travels as a number.
    return f"{value:,}" if type(value) is int else value


def say(english: str, /, **values: object) -> Words:
    """Words of the page, with values in place of their {names}."""
    return Words(english, values)


def join(parts: Iterable[str | int], separator: str = "") -> Words:
    """Words, other strings and numbers one after another: each part is put into the page's language by itself."""
    values = {f"part{index}": part for index, part in enumerate(parts)}
    between = separator.replace("{", "{{").replace("}", "}}")
    return Words(between.join(f"{{{name}}}" for name in values), values)


class Refusal(ValueError):
    """A user's mistake or misfortune, said in words: `Refusal("The text has {n} tokens.", n=99)`."""

    def __init__(self, english: str, /, **values: object) -> None:
        self.words: Words = Words(english, values)
        super().__init__(self.words)

    @classmethod
    def of(cls, words: Words) -> Refusal:
        """A refusal in words that stand elsewhere."""
        return cls(words.english, **words.values)

    def __reduce__(self) -> tuple[Any, ...]:  # on a ZeroGPU Space errors cross from one process to another
        return functools.partial(type(self), self.words.english, **self.words.values), ()


def words_of(error: Exception) -> str:
    """What to tell a person of an error: a Refusal's words; of any other its English."""
    return error.words if isinstance(error, Refusal) else str(error)

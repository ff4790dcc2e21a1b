"""A text in each language, put into words when a language asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Texts:
    """One function a language; only those of a direction's languages are called.

    They return sentences, or the forms of a phrase."""

    de: Callable[[], Any]
    en: Callable[[], Any]
    fr: Callable[[], Any]

    def __getitem__(self, language: str) -> Any:
        return getattr(self, language)()


def joined(words: list[str]) -> str:
    """Return the words that are not empty, with blanks between them."""
    return " ".join(word for word in words if word)

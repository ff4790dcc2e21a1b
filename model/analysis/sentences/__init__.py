"""Sentences of our own, 300 a language, line-aligned: what averages over heads and embeddings are taken of.

>>> len(sentences("de")) == len(sentences("en"))
True
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["languages", "sentences"]

FOLDER = Path(__file__).parent


def languages() -> tuple[str, ...]:
    """The languages that have a list."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))


def sentences(language: str) -> tuple[str, ...]:
    """The list of a language; line i of each says the same. ValueError if there is none."""
    if language not in languages():
        raise ValueError(f"there are no sentences in {language!r}: there are {', '.join(languages())}")
    return tuple((FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines())

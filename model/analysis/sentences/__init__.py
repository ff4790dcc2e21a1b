"""The project's own sentences, 300 in each language, line-aligned. Means over heads and embeddings are taken of them.

>>> len(sentences("de")) == len(sentences("en"))
True
"""

from __future__ import annotations

from pathlib import Path

from attention_atlas.model.trace.directions import parse_direction

__all__ = ["has_sentences", "languages", "sentences", "source_sentences"]

FOLDER = Path(__file__).parent


def languages() -> tuple[str, ...]:
    """Return the languages that have a list."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))


def has_sentences(direction: str) -> bool:
    """Return whether the source language of a direction has a list."""
    return parse_direction(direction)[0] in languages()


def sentences(language: str) -> tuple[str, ...]:
    """Return the sentences of a language; line i of each language has the same meaning. Raises ValueError for a
    language without a list."""
    if language not in languages():
        raise ValueError(f"there are no sentences in {language!r}: there are {', '.join(languages())}")
    return tuple((FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines())


def source_sentences(direction: str) -> tuple[str, ...]:
    """Return the sentences of the source language of a direction. Raises ValueError if has_sentences() is false."""
    return sentences(parse_direction(direction)[0])

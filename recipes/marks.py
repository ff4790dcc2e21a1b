"""Marks of training pairs to leave out; a mark depends on the two sentences, not on their position."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from attention_atlas.model.training.sources.readers import Corpus, comparison_key, read_lines


def mark(pair: Iterable[str]) -> str:
    """Return the mark of a pair, 16 hexadecimal digits; the same for both directions."""
    return hashlib.sha1("\n".join(sorted(map(comparison_key, pair))).encode()).hexdigest()[:16]


def without(corpus: Corpus, marks: frozenset[str]) -> Corpus:
    """Return the corpus without the pairs that have these marks."""
    return replace(corpus, pairs=tuple(pair for pair in corpus.pairs if mark(pair) not in marks)) if marks else corpus


def read_marks(paths: Iterable[Path]) -> frozenset[str]:
    return frozenset(line for path in paths for line in read_lines(path))

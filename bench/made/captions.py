"""Caption-like sentence pairs from a small grammar of our own, as text to measure speed on.

captions.tsv has a line for each phrase: its column, German and English. A caption takes one phrase from each column;
some phrases are empty.
"""

from __future__ import annotations

import random
from math import prod
from pathlib import Path

from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.batches import Examples
from attention_atlas.model.translator import Translator

LANGUAGES = ("de", "en")


def read_columns() -> list[list[tuple[str, str]]]:
    columns: dict[str, list[tuple[str, str]]] = {}
    for line in Path(__file__).with_name("captions.tsv").read_text(encoding="utf-8").splitlines():
        column, german, english = line.split("\t")
        columns.setdefault(column, []).append((german, english))
    return list(columns.values())


COLUMNS = read_columns()
LARGEST = prod(len(set(column)) for column in COLUMNS) // 2


def texts(count: int, language: str) -> list[str]:
    """Return one side of `count` different (German, English) pairs; English for a language that the grammar lacks.

    A larger count continues the list of a smaller one. Raises ValueError for more than half of the captions that the
    grammar has.
    """
    if count > LARGEST:
        raise ValueError(f"the grammar gives at most {LARGEST:,} captions, not {count:,}")
    generator = random.Random(0)
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < count:
        phrases = [generator.choice(column) for column in COLUMNS]
        pairs["".join(german for german, _ in phrases) + ".", "".join(english for _, english in phrases) + "."] = None
    side = LANGUAGES.index(language) if language in LANGUAGES else 1
    return [pair[side] for pair in pairs]


def source_texts(translator: Translator, count: int) -> list[str]:
    """Return captions in the source language of a translator's first direction."""
    return texts(count, parse_direction(translator.directions[0])[0])


def encode_examples(translator: Translator, count: int, *, repeats: int = 1, max_length: int | None = None) -> Examples:
    """Return captions and their translations to train on, in a translator's first direction.

    max_length: of a side in tokens; None: the model's
    """
    source, target = parse_direction(translator.directions[0])
    pairs = [*zip(texts(count, source), texts(count, target))] * repeats
    return Examples.encode(pairs, translator.tokenizer, target, max_length=max_length or translator.config.max_length)

"""Provoke bad translations with difficult sources, and judge them by the benchmark's rules.

The sources are held-out sentences of unfamiliar domains, and everyday sentences with a word inserted before them (Lee
et al. 2018) or with swapped letters (Belinkov and Bisk 2018), whose references stay right. The rules were written
before any translation was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from attention_atlas.model.trace.trust import HALLUCINATION, REPETITION
from attention_atlas.model.truth.benchmark import Bench, Benchmark

Random = np.random.Generator


def provoke(benchmark: Benchmark, bench: Bench) -> list[tuple[str, str, frozenset[str]]]:
    """Return difficult sources, this model's translations, and labels of what is wrong with them."""
    options, random = benchmark.options, np.random.default_rng(0)
    pairs = choose_pairs(benchmark, bench, random)
    translations = bench.translator.translate_batch([source for source, _ in pairs], bench.direction)
    return [
        (source, translation, judge(translation, reference, options["rules"]))
        for (source, reference), translation in zip(pairs, translations)
        if bench.fits(source, translation)
    ]


def choose_pairs(benchmark: Benchmark, bench: Bench, random: Random) -> list[tuple[str, str]]:
    """Return sources with their references, equally many of each unfamiliar domain and of each change."""
    options, held_out = benchmark.options, bench.held_out("dev")
    each = options["sentences"]
    pairs = []
    for name in options["strange"]:
        pairs += held_out.get(name, ())[:each]
    table, columns = options.get("table"), options.get("columns", {})
    if table and bench.direction in columns and (bench.data / table).is_file():
        header, *rows = bench.rows(bench.data / table)
        indices = [header.index(name) for name in columns[bench.direction]]
        pairs += [tuple(row[i] for i in indices) for row in rows[: 3 * each]]
    everyday = [pair for name in options["everyday"] for pair in held_out.get(name, ()) if len(pair[1].split()) >= 5]
    words = sorted({word for source, _ in everyday for word in source.split() if len(word) > 5 and word.isalpha()})
    for number, name in enumerate(options["changes"]):
        part = everyday[number * each : (number + 1) * each]
        pairs += [(CHANGES[name](source, words, random), reference) for source, reference in part]
    least = options["rules"]["least_words"]
    return [pair for pair in pairs if len(pair[1].split()) >= least and bench.fits(*pair)]


def insert_word(source: str, words: list[str], random: Random) -> str:
    """Insert another sentence's word before a source."""
    return f"{words[random.integers(len(words))]} {source}"


def swap_letters(source: str, words: list[str], random: Random) -> str:
    """Swap two neighbouring letters inside each word of four or more."""

    def swap(word: str) -> str:
        if len(word) < 4:
            return word
        i = int(random.integers(1, len(word) - 2))
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]

    return " ".join(map(swap, source.split()))


CHANGES: Mapping[str, Callable[[str, list[str], Random], str]] = {
    "inserted": insert_word,
    "swapped": swap_letters,
}


def judge(translation: str, reference: str, rules: Mapping[str, float]) -> frozenset[str]:
    """Return the labels of a translation by the rules.

    Repetition: a pair of words occurs at least rules["pairs"] times; this is a hallucination, too. Hallucination: chrF
    is below rules["chrf"] and no long word begins as one of the reference does.
    """
    from sacrebleu.metrics import CHRF  # of the extra "train"

    labels = set()
    words = translation.casefold().split()
    pairs = [*pairwise(words)]
    if any(pairs.count(pair) >= rules["pairs"] for pair in set(pairs)):
        labels |= {REPETITION, HALLUCINATION}
    begin = int(rules["beginning"])
    mine, theirs = (
        {word.strip(".,;:!?\"'“”„()")[:begin] for word in text.casefold().split() if len(word) >= begin}
        for text in (translation, reference)
    )
    if not mine & theirs and CHRF().sentence_score(translation, [reference]).score < rules["chrf"]:
        labels.add(HALLUCINATION)
    return frozenset(labels)

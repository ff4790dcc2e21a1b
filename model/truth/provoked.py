"""A model's own translations of sources that lead it astray, and the rules by which those are judged.

The rules stand in the benchmark's file and were written before any translation was looked at. Sources: held-out
sentences of domains that the model knows little of, and everyday ones with a word put before them (Lee et al. 2018) or
with letters changed places (Belinkov and Bisk 2018). A reference stays right whatever was done to its source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from attention_atlas.model.trace.trust import HALLUCINATION, REPETITION
from attention_atlas.model.truth.benchmark import Bench, Benchmark

Random = np.random.Generator


def provoked(benchmark: Benchmark, bench: Bench) -> list[tuple[str, str, frozenset[str]]]:
    """Source, this model's translation, and what is wrong with that."""
    options, random = benchmark.options, np.random.default_rng(0)
    pairs = chosen(benchmark, bench, random)
    translations = bench.translator.translate_batch([source for source, _ in pairs], bench.direction)
    return [
        (source, translation, judged(translation, reference, options["rules"]))
        for (source, reference), translation in zip(pairs, translations)
        if bench.fits(source, translation)
    ]


def chosen(benchmark: Benchmark, bench: Bench, random: Random) -> list[tuple[str, str]]:
    """Sources with their references: as many of each strange domain, and of everyday ones as many of each change."""
    options, held_out = benchmark.options, bench.held_out("dev")
    each = options["sentences"]
    found = []
    for name in options["strange"]:
        found += held_out.get(name, ())[:each]
    table, columns = options.get("table"), options.get("columns", {})
    if table and bench.direction in columns and (bench.data / table).is_file():
        header, *rows = bench.rows(bench.data / table)
        places = [header.index(name) for name in columns[bench.direction]]
        found += [tuple(row[at] for at in places) for row in rows[: 3 * each]]
    everyday = [pair for name in options["everyday"] for pair in held_out.get(name, ()) if len(pair[1].split()) >= 5]
    words = sorted({word for source, _ in everyday for word in source.split() if len(word) > 5 and word.isalpha()})
    for number, name in enumerate(options["changes"]):
        part = everyday[number * each : (number + 1) * each]
        found += [(CHANGES[name](source, words, random), reference) for source, reference in part]
    least = options["rules"]["least_words"]
    return [pair for pair in found if len(pair[1].split()) >= least and bench.fits(*pair)]


def inserted(source: str, words: list[str], random: Random) -> str:
    """Another sentence's word before it."""
    return f"{words[random.integers(len(words))]} {source}"


def swapped(source: str, words: list[str], random: Random) -> str:
    """Two neighbouring letters inside each word of four or more change places."""

    def one(word: str) -> str:
        if len(word) < 4:
            return word
        at = int(random.integers(1, len(word) - 2))
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    return " ".join(map(one, source.split()))


CHANGES: Mapping[str, Callable[[str, list[str], Random], str]] = {"inserted": inserted, "swapped": swapped}


def judged(translation: str, reference: str, rules: Mapping[str, float]) -> frozenset[str]:
    """What is wrong by the rules: repetition, where one pair of words comes more often than the rule has it; and
    hallucination, of that or where chrF is small and no long word begins as one of the reference does."""
    from sacrebleu.metrics import CHRF  # of the extra "train"

    found = set()
    words = translation.casefold().split()
    pairs = [*pairwise(words)]
    if any(pairs.count(pair) >= rules["pairs"] for pair in set(pairs)):
        found |= {REPETITION, HALLUCINATION}
    begin = int(rules["beginning"])
    mine, theirs = (
        {word.strip(".,;:!?\"'“”„()")[:begin] for word in text.casefold().split() if len(word) >= begin}
        for text in (translation, reference)
    )
    if not mine & theirs and CHRF().sentence_score(translation, [reference]).score < rules["chrf"]:
        found.add(HALLUCINATION)
    return frozenset(found)

"""Measure how well the signals of model.trace.trust, each higher the worse a translation, detect bad translations.

They are measured on another system's translations, labelled by people, on this model's own translations of difficult
sources, and on good translations, where each alarm is a false one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from attention_atlas.model.analysis.trust import read_translation
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.trace.trust import (
    HALLUCINATION,
    OMISSION,
    REPETITION,
    SIGNALS,
    Reading,
    SignalScore,
    auroc,
    baselines,
)
from attention_atlas.model.truth.benchmark import Bench, Benchmark
from attention_atlas.model.truth.contrastive import spread_rows

Random = np.random.Generator
RESAMPLES = 1000
MIN_CHRF = 60.0  # of a good translation
QUIET_SHARE = 0.996  # a signal's threshold is this quantile of its values on good translations of dev sentences


@dataclass(frozen=True)
class Row:
    """A source, a translation, and labels of what is wrong with it."""

    source: str
    translation: str
    labels: frozenset[str]


def measure_labelled(benchmark: Benchmark, bench: Bench) -> dict:
    """Measure the signals on another system's labelled translations, which this model is forced to write."""
    header, *rows = bench.rows(bench.data / benchmark.data)
    columns: dict[str, list[str]] = benchmark.options["labels"]
    labelled = []
    for values in rows:
        row = dict(zip(header, values, strict=True))
        labels = frozenset(label for column, names in columns.items() if row[column] == "1" for label in names)
        if bench.fits(row["source"], row["translation"]):
            labelled.append(Row(row["source"], row["translation"], labels))
    return measure_signals(benchmark, bench, labelled)


def measure_provoked(benchmark: Benchmark, bench: Bench) -> dict:
    """Measure the signals on this model's translations of difficult sources, which are judged by the benchmark's rules.

    The sources are held-out sentences of unfamiliar domains, and everyday sentences with a word inserted before them
    (Lee et al. 2018) or with swapped letters (Belinkov and Bisk 2018), whose references stay right. The rules were
    written before any translation was read.
    """
    pairs = choose_pairs(benchmark, bench)
    translations = bench.translator.translate_batch([source for source, _ in pairs], bench.direction)
    rows = [
        Row(source, translation, judge(translation, reference, benchmark.options["rules"]))
        for (source, reference), translation in zip(pairs, translations)
        if bench.fits(source, translation)
    ]
    return measure_signals(benchmark, bench, rows)


def choose_pairs(benchmark: Benchmark, bench: Bench) -> list[tuple[str, str]]:
    """Return difficult sources with their references, equally many of each unfamiliar domain and of each change."""
    options, held_out, random = benchmark.options, bench.held_out("dev"), np.random.default_rng(0)
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

    Repetition: two neighbouring words occur together at least rules["pairs"] times; this is a hallucination, too.
    Hallucination: chrF is below rules["chrf"], and no word has the same first rules["beginning"] letters as one of the
    reference (shorter words do not count).
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


def measure_thresholds(benchmark: Benchmark, bench: Bench) -> dict:
    """Return each signal's threshold, which few good translations of dev sentences exceed, and the false alarms.

    A signal above its threshold is an alarm. "loud" lists the alarms of each good translation of a test sentence that
    has any.
    """
    count = bench.limit or benchmark.options["sentences"]
    dev, test = (good_translations(bench, benchmark.options["corpora"], part, count) for part in ("dev", "test"))
    readings = read_signals(bench, dev)
    thresholds = {
        name: round(float(np.quantile([signal.measure(reading) for reading in readings], QUIET_SHARE)), 4)
        for name, signal in SIGNALS.items()
    }
    loud = [sorted(alarms(reading, thresholds)) for reading in read_signals(bench, test)]
    return {"thresholds": thresholds, "dev": len(dev), "test": len(test), "loud": [names for names in loud if names]}


def alarms(reading: Reading, thresholds: dict[str, float]) -> set[str]:
    """Return the signals above their thresholds."""
    return {name for name, threshold in thresholds.items() if SIGNALS[name].measure(reading) > threshold}


def good_translations(bench: Bench, corpora: Sequence[str], part: str, count: int) -> list[Row]:
    """Return up to `count` of this model's translations of held-out sentences that reach MIN_CHRF."""
    from sacrebleu.metrics import CHRF  # of the extra "train"

    held_out = bench.held_out(part)
    pairs = [pair for name in corpora for pair in held_out.get(name, ()) if bench.fits(*pair)]
    good: list[Row] = []
    for texts in batched(pairs, 256):
        translations = bench.translator.translate_batch([source for source, _ in texts], bench.direction)
        for (source, reference), translation in zip(texts, translations):
            if bench.fits(source, translation) and CHRF().sentence_score(translation, [reference]).score >= MIN_CHRF:
                good.append(Row(source, translation, frozenset()))
        if len(good) >= count:
            break
    if not good:
        raise ValueError(f"none of the held-out {part} sentences is translated well enough to set thresholds by")
    return good[:count]


def read_signals(bench: Bench, rows: Sequence[Row]) -> list[Reading]:
    """Return the reading of each row, from which signals are computed."""
    translator, direction, readings = bench.translator, bench.direction, []
    for row in bench.progress(rows, "signals"):
        source, target = translator.encode(row.source, direction), translator.encode_target(row.translation, direction)
        tokens = translator.tokenizer.source_tokens(source, row.source), translator.tokenizer.tokens(target)
        readings.append(read_translation(translator, direction, (source, target), tokens))
    return readings


def measure_signals(benchmark: Benchmark, bench: Bench, rows: Sequence[Row]) -> dict:
    """Compare every signal with the best baseline for the fault that it detects."""
    rows = spread_rows(rows, bench.limit or len(rows))
    readings = read_signals(bench, rows)
    row_baselines = [baselines(row.source, row.translation) for row in rows]
    values = {name: np.array([signal.measure(reading) for reading in readings]) for name, signal in SIGNALS.items()}
    baseline_values = {name: np.array([row[name] for row in row_baselines]) for name in row_baselines[0]}
    thresholds = next((result["thresholds"] for result in bench.earlier.values() if "thresholds" in result), {})
    wrong = {kind: np.array([kind in row.labels for row in rows]) for kind in (HALLUCINATION, OMISSION, REPETITION)}
    kinds = {kind: int(labels.sum()) for kind, labels in wrong.items()}
    scores = []
    for name, signal in SIGNALS.items():
        labels = wrong[signal.of]
        if 0 < labels.sum() < len(labels):
            loud = values[name] > thresholds.get(name, np.inf)
            score = compare_with_baselines(name, benchmark.name, signal.of, values[name], baseline_values, labels)
            scores.append({**asdict(score), "alarms": int(loud.sum()), "right": int((loud & labels).sum())})
    by_kind = {
        kind: {name: round(auroc(v, wrong[kind]), 4) for name, v in (values | baseline_values).items()}
        for kind, count in kinds.items()
        if 0 < count < len(rows)
    }
    return {"rows": len(rows), "labels": kinds, "auroc": by_kind, "found": scores}


def compare_with_baselines(
    signal: str, on: str, of: str, values: np.ndarray, baseline_values: dict[str, np.ndarray], labels: np.ndarray
) -> SignalScore:
    """Compare a signal with the best baseline, with a paired bootstrap over the rows.

    signal, on, of: the names of the signal, of the benchmark and of the fault. values [rows], by name for baselines;
    labels: bool [rows], whether the translation has the fault.
    """
    baseline = max(baseline_values, key=lambda name: auroc(baseline_values[name], labels))
    random = np.random.default_rng(0)
    gains = []
    for _ in range(RESAMPLES):
        sample = random.integers(len(labels), size=len(labels))
        best = auroc(baseline_values[baseline][sample], labels[sample])
        gains.append(auroc(values[sample], labels[sample]) - best)
    low, high = np.nanquantile(gains, (0.025, 0.975))
    mine, theirs = auroc(values, labels), auroc(baseline_values[baseline], labels)
    mine, theirs, gain, low, high = (round(float(v), 4) for v in (mine, theirs, mine - theirs, low, high))
    return SignalScore(signal, on, of, len(labels), int(labels.sum()), mine, baseline, theirs, gain, low, high)


def markdown(values: dict) -> str:
    """Return a table of the values of measure_signals() or measure_thresholds()."""
    if "thresholds" in values:
        count = {name: sum(name in names for names in values["loud"]) for name in values["thresholds"]}
        rows = [f"| {name} | {threshold:.3f} | {count[name]} |" for name, threshold in values["thresholds"].items()]
        return "\n".join(
            [
                f"Thresholds by {values['dev']} good translations of dev sentences; tried on {values['test']} of test "
                "sentences.\n",
                "| signal | speaks above | false alarms |",
                "|---|---|---|",
                *rows,
            ]
        )
    lines = [
        f"{values['rows']} rows: "
        + ", ".join(f"{count} with {name}" for name, count in values["labels"].items())
        + ".\n",
        "| signal | finds | AUROC | best without a model | gain, 95 % interval | alarms, of them right |",
        "|---|---|---|---|---|---|",
    ]
    for score in (SignalScore(**fields) for fields in values["found"]):
        lines.append(
            f"| {score.signal}{' (passed)' if score.passed else ''} | {score.of} | {score.auroc:.3f} "
            f"| {score.baseline} {score.baseline_auroc:.3f} "
            f"| {score.gain:+.3f} ({score.low:+.3f} to {score.high:+.3f}) | {score.alarms}, {score.right} |"
        )
    return "\n".join(lines)

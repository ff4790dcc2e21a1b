"""Do signals find translations that are not of their source? On another system's, labelled by people; on this model's
own, provoked by sources that it was not made for; and how often they speak up about good ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from attention_atlas.model.analysis.trust import read
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
from attention_atlas.model.truth.contrastive import spread
from attention_atlas.model.truth.provoked import provoked

RESAMPLES = 1000
GOOD = 60.0  # chrF of a good translation
QUIET = 0.996  # of good translations of dev sentences, a signal is below its threshold on this share


@dataclass(frozen=True)
class Row:
    """labels: what is wrong with the translation."""

    source: str
    translation: str
    labels: frozenset[str]


def labelled(benchmark: Benchmark, bench: Bench) -> dict:
    """Of a table of another system's translations, which this model is made to write."""
    header, *rows = bench.rows(bench.data / benchmark.data)
    names: dict[str, list[str]] = benchmark.options["labels"]
    found = []
    for values in rows:
        row = dict(zip(header, values, strict=True))
        labels = frozenset(label for column, every in names.items() if row[column] == "1" for label in every)
        if bench.fits(row["source"], row["translation"]):
            found.append(Row(row["source"], row["translation"], labels))
    return detected(benchmark, bench, found)


def own(benchmark: Benchmark, bench: Bench) -> dict:
    """Of this model's own translations."""
    return detected(benchmark, bench, [Row(*row) for row in provoked(benchmark, bench)])


def quiet(benchmark: Benchmark, bench: Bench) -> dict:
    """Above which value each signal speaks: it does so on few good translations of everyday dev sentences. And on which
    good translations of test sentences it does."""
    wanted = bench.limit or benchmark.options["sentences"]
    dev, test = (good(bench, benchmark.options["corpora"], part, wanted) for part in ("dev", "test"))
    read = readings(bench, dev)
    thresholds = {
        name: round(float(np.quantile([signal.measure(one) for one in read], QUIET)), 4)
        for name, signal in SIGNALS.items()
    }
    loud = [sorted(alarms(one, thresholds)) for one in readings(bench, test)]
    return {"thresholds": thresholds, "dev": len(dev), "test": len(test), "loud": [names for names in loud if names]}


def alarms(reading: Reading, thresholds: dict[str, float]) -> set[str]:
    return {name for name, threshold in thresholds.items() if SIGNALS[name].measure(reading) > threshold}


def good(bench: Bench, corpora: Sequence[str], part: str, wanted: int) -> list[Row]:
    """This model's translations of held-out sentences that reach GOOD beside their references, at most `wanted`."""
    from sacrebleu.metrics import CHRF  # of the extra "train"

    held_out = bench.held_out(part)
    pairs = [pair for name in corpora for pair in held_out.get(name, ()) if bench.fits(*pair)]
    found: list[Row] = []
    for start in range(0, len(pairs), 256):
        texts = pairs[start : start + 256]
        translations = bench.translator.translate_batch([source for source, _ in texts], bench.direction)
        for (source, reference), translation in zip(texts, translations):
            if bench.fits(source, translation) and CHRF().sentence_score(translation, [reference]).score >= GOOD:
                found.append(Row(source, translation, frozenset()))
        if len(found) >= wanted:
            break
    if not found:
        raise ValueError(f"none of the held-out {part} sentences is translated well enough to set thresholds by")
    return found[:wanted]


def readings(bench: Bench, rows: Sequence[Row]) -> list[Reading]:
    translator, direction, found = bench.translator, bench.direction, []
    for row in bench.progress(rows, "signals"):
        source, target = translator.encode(row.source, direction), translator.encode_target(row.translation, direction)
        tokens = translator.tokenizer.source_tokens(source, row.source), translator.tokenizer.tokens(target)
        found.append(read(translator, direction, (source, target), tokens))
    return found


def detected(benchmark: Benchmark, bench: Bench, rows: Sequence[Row]) -> dict:
    """Every signal beside the best baseline for what it is to find."""
    rows = spread(rows, bench.limit or len(rows))
    read = readings(bench, rows)
    plain = [baselines(row.source, row.translation) for row in rows]
    values = {name: np.array([signal.measure(one) for one in read]) for name, signal in SIGNALS.items()}
    without = {name: np.array([one[name] for one in plain]) for name in plain[0]}
    thresholds = next((one["thresholds"] for one in bench.earlier.values() if "thresholds" in one), {})
    wrong = {kind: np.array([kind in row.labels for row in rows]) for kind in (HALLUCINATION, OMISSION, REPETITION)}
    kinds = {kind: int(labels.sum()) for kind, labels in wrong.items()}
    found = []
    for name, signal in SIGNALS.items():
        labels = wrong[signal.of]
        if 0 < labels.sum() < len(labels):
            loud = values[name] > thresholds.get(name, np.inf)
            beside = compared(name, benchmark.name, signal.of, values[name], without, labels)
            found.append({**asdict(beside), "alarms": int(loud.sum()), "right": int((loud & labels).sum())})
    both = {
        kind: {name: round(auroc(one, wrong[kind]), 4) for name, one in (values | without).items()}
        for kind, count in kinds.items()
        if 0 < count < len(rows)
    }
    return {"rows": len(rows), "labels": kinds, "auroc": both, "found": found}


def compared(
    signal: str, on: str, of: str, values: np.ndarray, without: dict[str, np.ndarray], labels: np.ndarray
) -> SignalScore:
    """A signal beside the best of the baselines, with a bootstrap of the rows (the same ones for both). Six parameters:
    three names, and what is compared."""
    baseline = max(without, key=lambda name: auroc(without[name], labels))
    random = np.random.default_rng(0)
    gains = []
    for _ in range(RESAMPLES):
        chosen = random.integers(len(labels), size=len(labels))
        gains.append(auroc(values[chosen], labels[chosen]) - auroc(without[baseline][chosen], labels[chosen]))
    low, high = np.nanquantile(gains, (0.025, 0.975))
    mine, theirs = auroc(values, labels), auroc(without[baseline], labels)
    numbers = (round(float(v), 4) for v in (mine, theirs, mine - theirs, low, high))
    first, second, gain, low, high = numbers
    return SignalScore(signal, on, of, len(labels), int(labels.sum()), first, baseline, second, gain, low, high)


def markdown(found: dict) -> str:
    """A table of what labelled() or own() found, or a paragraph of what quiet() did."""
    if "thresholds" in found:
        spoke = {name: sum(name in one for one in found["loud"]) for name in found["thresholds"]}
        rows = [f"| {name} | {value:.3f} | {spoke[name]} |" for name, value in found["thresholds"].items()]
        return "\n".join(
            [
                f"Thresholds by {found['dev']} good translations of dev sentences; tried on {found['test']} of test "
                "sentences.\n",
                "| signal | speaks above | false alarms |",
                "|---|---|---|",
                *rows,
            ]
        )
    lines = [
        f"{found['rows']} rows: "
        + ", ".join(f"{count} with {name}" for name, count in found["labels"].items())
        + ".\n",
        "| signal | finds | AUROC | best without a model | gain, 95 % interval | alarms, of them right |",
        "|---|---|---|---|---|---|",
    ]
    for one in map(lambda values: SignalScore(**values), found["found"]):
        lines.append(
            f"| {one.signal}{' (passed)' if one.passed else ''} | {one.of} | {one.auroc:.3f} | {one.baseline} "
            f"{one.baseline_auroc:.3f} | {one.gain:+.3f} ({one.low:+.3f} to {one.high:+.3f}) "
            f"| {one.alarms}, {one.right} |"
        )
    return "\n".join(lines)

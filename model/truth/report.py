"""Summarize the results of benchmarks: tables for a card, and the trust in signals that the page shows."""

from __future__ import annotations

import textwrap

from attention_atlas.model.trace.trust import SignalScore, Trust
from attention_atlas.model.truth import alignment, calibration, contrastive, detection
from attention_atlas.model.truth.benchmark import read_benchmarks

CARD = "README.md"
HEADING = "## Measured against the world"
TABLES = {
    "alignment": alignment.markdown,
    "calibration": calibration.markdown,
    "contrastive": contrastive.markdown,
    "labelled": detection.markdown,
    "provoked": detection.markdown,
    "quiet": detection.markdown,
}


def summarize_trust(results: list[dict]) -> dict[str, dict]:
    """Return Trust.to_json() by direction: signals with their thresholds, false alarms, and calibration."""
    trust = {}
    for direction in dict.fromkeys(result["direction"] for result in results):
        values = [result["found"] for result in results if result["direction"] == direction]
        quiet = next((v for v in values if "thresholds" in v), {})
        calibration_values = next((v for v in values if "bins" in v), {})
        signals = tuple(SignalScore(**score) for v in values for score in v.get("found", ()))
        thresholds, sentences = quiet.get("thresholds", {}), quiet.get("test", 0)
        shown_signals = set(Trust(thresholds, signals).shown_signals)
        loud = sum(bool(set(names) & shown_signals) for names in quiet.get("loud", ()))
        trust[direction] = Trust(
            thresholds,
            signals,
            round(loud / sentences, 4) if sentences else 0.0,
            sentences,
            calibration_values.get("bins", {}),
            calibration_values.get("errors", {}),
            next((v["phenomena"] for v in values if "phenomena" in v), {}),
        ).to_json()
    return trust


def section(values: dict) -> str:
    """Return the section of a card from the values of truth.json."""
    return f"{HEADING}\n\n{tables(values)}"


def tables(values: dict, *, level: int = 3) -> str:
    """Return the tables of each benchmark under a heading of a level, and the signals that the page shows."""
    benchmarks = {benchmark.name: benchmark for benchmark in read_benchmarks()}
    parts = [f"Measured by `attention-atlas truth` on the weights {values['digest']}."]
    for result in values["results"]:
        benchmark = benchmarks[result["benchmark"]]
        parts += [
            f"{'#' * level} {benchmark.title}, {result['direction']}",
            textwrap.fill(benchmark.about, 120, break_long_words=False, break_on_hyphens=False),
            TABLES[result["kind"]](result["found"]),
        ]
    for direction, fields in values["trust"].items():
        trust = Trust.from_json(fields)
        if trust.sentences:
            named = ", ".join(trust.shown_signals) or "none"
            parts.append(
                f"Of {direction} the page shows these signals: {named}. On {trust.sentences} good translations any of "
                f"them speaks up in {100 * trust.false_alarms:.1f} %."
            )
    return "\n\n".join(parts)

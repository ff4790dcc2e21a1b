"""What was measured, in words and tables for a card; and what the page needs of it."""

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


def trust(results: list[dict]) -> dict[str, dict]:
    """By direction, Trust.to_json(): the signals that were measured, their thresholds, their false alarms, and how
    probabilities hold."""
    found = {}
    for direction in dict.fromkeys(one["direction"] for one in results):
        own = [one["found"] for one in results if one["direction"] == direction]
        quiet = next((one for one in own if "thresholds" in one), {})
        signals = tuple(SignalScore(**values) for one in own for values in one.get("found", ()))
        told = Trust(quiet.get("thresholds", {}), signals)
        loud = sum(bool(set(names) & set(told.shown_signals)) for names in quiet.get("loud", ()))
        sentences, calibrated = quiet.get("test", 0), next((one for one in own if "bins" in one), {})
        found[direction] = Trust(
            told.thresholds,
            signals,
            round(loud / sentences, 4) if sentences else 0.0,
            sentences,
            calibrated.get("bins", {}),
            calibrated.get("errors", {}),
            next((one["phenomena"] for one in own if "phenomena" in one), {}),
        ).to_json()
    return found


def section(found: dict) -> str:
    """The card's section."""
    return f"{HEADING}\n\n{tables(found)}"


def tables(found: dict, *, level: int = 3) -> str:
    """Each benchmark's tables under a heading of a level, and which signals the page shows."""
    titles = {one.name: one for one in read_benchmarks()}
    parts = [f"Measured by `attention-atlas truth` on the weights {found['digest']}."]
    for one in found["results"]:
        known = titles[one["benchmark"]]
        parts += [
            f"{'#' * level} {known.title}, {one['direction']}",
            textwrap.fill(known.about, 120, break_long_words=False, break_on_hyphens=False),
            TABLES[one["kind"]](one["found"]),
        ]
    for direction, values in found["trust"].items():
        told = Trust.from_json(values)
        if told.sentences:
            named = ", ".join(told.shown_signals) or "none"
            parts.append(
                f"Of {direction} the page shows these signals: {named}. On {told.sentences} good translations any of "
                f"them speaks up in {100 * told.false_alarms:.1f} %."
            )
    return "\n\n".join(parts)

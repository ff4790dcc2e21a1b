"""A checkpoint with a trust file in which every signal has passed and always warns, as written by model.truth."""

from __future__ import annotations

import json
from pathlib import Path

from attention_atlas.model.analysis.trust import FILE
from attention_atlas.model.trace.trust import PROVOKED, SIGNALS, SignalScore, Trust
from attention_atlas.model.translator import Translator


def trusted(folder: Path, direction: str = "de-en") -> Translator:
    """Write the trust file into the checkpoint's folder and return its translator."""
    scores = tuple(
        SignalScore(name, PROVOKED if i % 2 else "labelled", s.of, 100, 20, 0.8, "length", 0.6, 0.2, 0.1, 0.3, 8, 6)
        for i, (name, s) in enumerate(SIGNALS.items())
    )
    heads = {"cross": [[0.1, -0.2, 0.0, 0.3]] * 3}
    trust = Trust(
        dict.fromkeys(SIGNALS, -1e9),
        scores,
        0.01,
        1000,
        {"all": [[5, 0.5, 0.4], [7, 0.8, 0.9]]},
        {"all": 0.1},
        {"polarity": {"pairs": 3, "sum": 0.6, "mean": 0.7, "heads": heads}},
    )
    digest = Translator.load(folder, "cpu").digest
    (folder / FILE).write_text(json.dumps({"digest": digest, "trust": {direction: trust.to_json()}}))
    return Translator.load(folder, "cpu")

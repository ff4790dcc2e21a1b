"""A toy's training as it travels to the page: its corpus once, then points and frames as they come."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

from viz.maps import labels
from viz.words import Words, say


def beginning(run: object) -> dict:
    """What stays the same of a run (a model.training.toy.run.ToyRun)."""
    tokenizer = run.tokenizer
    tokens = [
        {
            "source": _labels(tokenizer, tokenizer.encode_source(source, "target")),
            "read": _labels(tokenizer, [tokenizer.begin_id, *tokenizer.encode(target)]),
            "written": _labels(tokenizer, [*tokenizer.encode(target), tokenizer.end_id]),
            "wanted": target,
            "text": source,
        }
        for source, target in run.pairs
    ]
    return {"pairs": tokens, "floor": run.floor, "guess": math.log(len(tokenizer)), "words": list(tokenizer.words)}


def progress(run: object, points: Sequence[object], frames: Sequence[object], done: str | None, limits: dict) -> dict:
    """What one turn brought. limits: of a run, by the name of its end."""
    return {
        "points": [[p.update, _finite(p.loss), _finite(p.minimised), _finite(p.gradient)] for p in points],
        "frames": [_frame(run, frame) for frame in frames],
        "update": run.update,
        "done": None if done is None else _end(done, limits),
    }


def _end(done: str, limits: dict) -> Words:
    if done == "diverged":
        return say("The loss is no longer a number.")
    if done == "learnt":
        return say("Learnt by heart: the loss is within {n} nats of the least possible.", n=limits[done])
    return say("The run has reached its {n} updates.", n=limits[done])


def _frame(run: object, frame: object) -> dict:
    tokenizer = run.tokenizer
    return {
        "update": frame.update,
        "loss": _finite(frame.loss),
        "outputs": [
            {
                "text": tokenizer.decode(ids),
                "finished": ids[-1:] == (tokenizer.end_id,),
                "read": _labels(tokenizer, [tokenizer.begin_id, *ids[:-1]]),
                "written": _labels(tokenizer, ids),
            }
            for ids in frame.outputs
        ],
        "maps": [
            {
                kind: {"shape": list(weights.shape), "data": base64.b64encode(weights.tobytes()).decode("ascii")}
                for kind, weights in pair.items()
            }
            for pair in frame.maps
        ],
    }


def _labels(tokenizer: object, ids: Sequence[int]) -> list[str]:
    return [labels.display(token).removeprefix("\u2581") for token in tokenizer.tokens(ids)]


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None

"""Draw the learning curves of training runs: attention-atlas curves --help

Training loss, loss on the dev sets, and BLEU for each direction and dev set, from the metrics.jsonl of one or several
runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attention_atlas.model.program import CommandLine, refuse_existing, run_program
from attention_atlas.viz.figures import paper

if TYPE_CHECKING:  # matplotlib is an optional dependency
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOG = "metrics.jsonl"
AXES = {"tokens": "target tokens seen", "updates": "updates", "hours": "hours of training"}
SMOOTHED = "training loss (smoothed labels)"
NATS = "nats a token"
LOSS = "loss"  # the key of an evaluation's loss; the others are a direction and a dev set
Curve = tuple[list[float], list[float]]  # x and y of its points


@dataclass(frozen=True)
class TrainingRun:
    """The curves of a run. dev: LOSS, or direction and dev set -> "weights" or "average" -> curve."""

    name: str
    loss: Curve
    dev: dict[str, dict[str, Curve]]


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    refuse_existing(args.out, args.replace)
    runs = [read(path, x=args.x) for path in args.runs]
    paper.write_png(draw(runs, x=args.x), args.out)


def read(path: Path, *, x: str = "tokens") -> TrainingRun:
    """Read the log of a run: the file, or the folder of a run or checkpoint with it. x: a key of AXES.

    ValueError if it is missing, damaged or empty.
    """
    file = path / LOG if path.is_dir() else path
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        trained = [line for line in lines if "loss" in line.keys()]  # .keys() raises if a line is no object
        evaluated = [(line["update"], line["dev"]) for line in lines if "dev" in line]
        updates = [line["update"] for line in trained]
        steps = {
            "updates": updates,
            "tokens": list(accumulate(line["tokens"] for line in trained)),
            "hours": [seconds / 3600 for seconds in accumulate(line["seconds"] for line in trained)],
        }[x]
        dev: dict[str, dict[str, Curve]] = {}
        for update, scores in evaluated:
            # The log of a continued run may lack its first lines; earlier updates are drawn at the start.
            position = float(np.interp(update, [0, *updates], [0, *steps]))
            for weights in ("weights", "average"):
                for name, value in _values(scores.get(weights, {})):
                    positions, values = dev.setdefault(name, {}).setdefault(weights, ([], []))
                    positions.append(position)
                    values.append(value)
        loss = steps, [float(line["loss"]) for line in trained]
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is not the log of a training run: {error}") from error
    if not trained:
        raise ValueError(f"{file} holds no training loss yet")
    return TrainingRun(file.resolve().parent.name if file.name == LOG else file.stem, loss, dev)


def _values(scores: dict) -> list[tuple[str, float]]:
    """Return the loss of an evaluation, and BLEU for each direction and dev set."""
    values = [(LOSS, scores[LOSS])] if LOSS in scores else []
    return values + [(name, value["bleu"]) for name, value in scores.items() if isinstance(value, dict)]


def title(name: str) -> str:
    """Return the title of the panel of a key of TrainingRun.dev."""
    return "dev loss" if name == LOSS else f"dev BLEU, {name.replace('-', ' → ', 1)}"


def draw(runs: Sequence[TrainingRun], *, x: str = "tokens") -> Figure:
    """Draw panels of the training loss, the dev loss, and BLEU for each direction and dev set, with a colour per run.

    Curves of averaged weights are solid, those of the last weights dotted, or solid if there are no averaged ones.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.dev))

    def training(axes: Axes) -> None:
        for run, colour in zip(runs, cycle(paper.COLOURS)):
            axes.plot(*run.loss, color=colour, linewidth=1.2, label=run.name)
        _finish(axes, SMOOTHED, NATS, x)
        paper.legend(axes)

    def evaluation(axes: Axes, name: str) -> None:
        for run, colour in zip(runs, cycle(paper.COLOURS)):
            lines = run.dev.get(name, {})
            for weights, curve in lines.items():
                solid = weights == "average" or "average" not in lines
                label = {"average": "averaged weights", "weights": "last weights"}[weights] if len(runs) == 1 else None
                width, style, size = (1.6, "-", 3) if solid else (1.0, ":", 2)
                look = {"linewidth": width, "linestyle": style, "marker": "o", "markersize": size}
                axes.plot(*curve, color=colour, label=label, **look)
        _finish(axes, title(name), NATS if name == LOSS else "BLEU", x)
        if name == names[0]:
            paper.legend(axes)

    return paper.panels([training, *((lambda axes, name=name: evaluation(axes, name)) for name in names)])


def _finish(axes: Axes, heading: str, unit: str, x: str) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set(title=heading, xlabel=AXES[x], ylabel=unit)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas curves", __doc__)
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help=f"folder of a run or checkpoint, or its {LOG}"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the PNG to write")
    parser.add_argument("--replace", action="store_true", help="write over what is there already")
    parser.add_argument("--x", choices=tuple(AXES), default="tokens", help="what to draw over, default tokens")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)

"""Timing, tables and files that the benchmarks share."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch

from attention_atlas.model.serve.device import finish

ROOT = Path(__file__).resolve().parents[1]
NO_END = -1  # no token has this id, so decoding goes on to its limit
Row = dict[str, object]


@dataclass(frozen=True)
class Measurement:
    """A figure of a report."""

    name: str
    value: float | str
    unit: str


def write_json(path: Path | None, figures: object) -> None:
    """Write figures, or a list of measurements, to the file of --json, if there is one."""
    if path is not None:
        if isinstance(figures, list):
            figures = [asdict(row) if isinstance(row, Measurement) else row for row in figures]
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def print_rows(rows: Iterable[Row]) -> list[Row]:
    """Print each row as a line of JSON as soon as it is measured; return them all."""
    collected = []
    for row in rows:
        print(json.dumps(row, ensure_ascii=False), flush=True)
        collected.append(row)
    return collected


def table(measurements: list[Measurement]) -> str:
    """Return aligned columns: name, value, unit."""
    width = max(len(m.name) for m in measurements)
    return "\n".join(f"{m.name:<{width}}  {m.value:>10.2f} {m.unit}" for m in measurements)


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let torch use this many threads within the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def timed(work: Callable[[], object], device: torch.device | None = None) -> float:
    """Return the seconds that `work` takes, including what it leaves in the device's queue."""
    started = time.perf_counter()
    work()
    if device is not None:
        finish(device)
    return time.perf_counter() - started


def median_seconds(work: Callable[[], object], runs: int, device: torch.device | None = None) -> float:
    """Return the median seconds of several runs after one run to warm up."""
    return take_turns({"": work}, runs, device)[""]


def take_turns(
    works: dict[str, Callable[[], object]], repeats: int, device: torch.device | None = None, *, warm: bool = False
) -> dict[str, float]:
    """Return the median seconds of each work.

    The works take turns, so that other load on the machine affects all of them alike. Unless they are `warm`, a first
    round is run and not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for repeat in range(repeats if warm else repeats + 1):
        for name, work in works.items():
            spent = timed(work, device)
            if warm or repeat:
                seconds[name].append(spent)
    return {name: median(values) for name, values in seconds.items()}


def run_stages(stages: Iterable[str], readings: str, runs: int) -> np.ndarray:
    """Return the readings after each stage of new Python processes [runs, stages, readings].

    stages: lines of Python; readings: expressions, which may use the names of the stages and `started`, the time of
    time.monotonic() when the process was started.
    """
    lines = "\n".join(f"{stage}\nprint({readings})" for stage in stages)
    outputs = [
        subprocess.check_output([sys.executable, "-c", f"started = {time.monotonic()}\n{lines}"], cwd=ROOT, text=True)
        for _ in range(runs)
    ]
    return np.array([[line.split() for line in output.splitlines()] for output in outputs], float)


def compare_with_bar(name: str, seconds: float, bar: float) -> Row:
    """Return a row that says whether a measured time meets its bar, both in seconds."""
    return {"what": name, "seconds": round(seconds, 4), "bar_seconds": bar, "met": seconds <= bar}

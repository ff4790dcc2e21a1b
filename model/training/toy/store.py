"""What visitors train: each one's runs, and the network that each one opened in the other tabs, within bounds."""

from __future__ import annotations

import itertools
import threading
import weakref
from dataclasses import dataclass, field

import torch

from model.serve.limits import BatchLimits
from model.serve.turns import Turns
from model.trace.language import Refusal
from model.training.toy.corpora import Pairs
from model.training.toy.run import ToyRun
from model.training.toy.settings import ToySettings
from model.translator import Translator

SIDES = ("a", "b")  # a visitor's first and second setting
MAX_BYTES = 400_000_000  # of all visitors' runs
LINE = BatchLimits(at_once=1, waiting=8, seconds=20.0)  # one turn at a time, whoever's it is
_clock = itertools.count()


@dataclass(eq=False)
class Visit:
    """One visitor's runs by side, and what they opened. It lives as long as the visitor's session."""

    runs: dict[str, ToyRun] = field(default_factory=dict)
    opened: Translator | None = None
    touched: int = 0

    def run(self, side: object) -> ToyRun:
        """The run of this side. ValueError, in words, if there is none."""
        if not isinstance(side, str) or side not in self.runs:
            raise Refusal("This run is no longer kept: train it again.")
        return self.runs[side]

    @property
    def size(self) -> int:
        """Bytes of its runs."""
        return sum(run.size for run in self.runs.values())


class ToyStore:
    """Every visitor's turns go through here: one at a time, in the order of their asking; when the runs of all take
    more than max_bytes, those of the visitor longest idle are dropped."""

    def __init__(self, max_bytes: int = MAX_BYTES, line: BatchLimits = LINE) -> None:
        self.max_bytes, self.line = max_bytes, Turns(line)
        self._visits: weakref.WeakSet[Visit] = weakref.WeakSet()
        self._lock = threading.Lock()

    @staticmethod
    def prepare() -> None:
        """Load what the first run of a process would wait for: PyTorch's first optimiser imports its compiler,
        seconds of work and 70 MB that a server whose visitors train nothing can do without."""
        torch.optim.SGD([torch.zeros(1)])

    def start(self, visit: Visit, side: str, pairs: Pairs, chosen: ToySettings) -> ToyRun:
        """Begin a run in this side's place and take its first turn. Raises Busy, a ValueError, where too many wait."""
        assert side in SIDES
        with self.line.one():
            run = ToyRun(pairs, chosen)
            visit.runs[side] = run
            run.turn()
        self._touch(visit)
        return run

    def go(self, visit: Visit, side: object):
        """The next turn of a run. ValueError, in words, if it is gone; Busy where too many wait."""
        run = visit.run(side)
        with self.line.one():
            turn = run.turn()
        self._touch(visit)
        return turn

    def _touch(self, visit: Visit) -> None:
        with self._lock:
            visit.touched = next(_clock)
            self._visits.add(visit)
            others = sorted((other for other in self._visits if other is not visit), key=lambda other: other.touched)
            while others and visit.size + sum(other.size for other in others) > self.max_bytes:
                others.pop(0).runs.clear()

    @property
    def size(self) -> int:
        """Bytes of all runs."""
        return sum(visit.size for visit in list(self._visits))

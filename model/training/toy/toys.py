"""Train toys by their recipes, and cache those used last. No state belongs to a visitor."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator
from dataclasses import replace

import torch

from attention_atlas.model.serve.batching import Turns
from attention_atlas.model.serve.caches import ByteCache
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.toy.run import ToyRun, Turn, normalise
from attention_atlas.model.translator import Translator

MAX_BYTES = 128_000_000  # of the cache
TURN_SECONDS = 0.2  # no update starts later in a turn; an update takes at most 0.3 s
POLL_SECONDS = 0.2  # between checks of a toy that another caller trains
RECENT = 2  # cached states of a stopped run: the caller may not have received its last turn
LINE = BatchLimits(at_once=1, waiting=8, seconds=20.0)  # one turn at a time, whoever's it is


class ToyNeeded(Exception):
    """The toy of a question is not cached: it must be trained first."""

    def __init__(self, recipe: ToyRecipe) -> None:
        super().__init__("a toy has to be trained")
        self.recipe = recipe


class Toys:
    """Toys in training, whose turns go through one line, and trained ones. For any number of threads."""

    def __init__(self, most: int = MAX_BYTES, line: BatchLimits = LINE) -> None:
        """most: bytes of what is kept."""
        self.line = Turns(line)
        self._runs: ByteCache[ToyRun] = ByteCache(most * 3 // 4, lambda run: run.size)
        self._under_way: dict[ToyRecipe, int] = {}  # what train() is at: recipe -> updates that are done
        self._lock = threading.Lock()
        self._trained: ByteCache[Translator] = ByteCache(most // 4, lambda toy: toy.weight_bytes)

    @property
    def bytes(self) -> int:
        """Bytes of the runs and networks that are kept."""
        return self._runs.bytes + self._trained.bytes

    @staticmethod
    def prepare() -> None:
        """Load what the first run of a process would wait for: PyTorch's first optimiser imports its compiler, which
        takes seconds and 70 MB."""
        torch.optim.SGD([torch.zeros(1)])

    def find(self, recipe: ToyRecipe) -> Translator:
        """Return the network of a recipe as any checkpoint is served. ToyNeeded if neither it nor its run is kept;
        ValueError, in words, if it has no maps."""
        if (toy := self._trained.get(recipe)) is None:
            if (run := self._runs.get(recipe)) is None:
                raise ToyNeeded(recipe)
            self._trained.put(recipe, toy := run.opened())
        return toy

    def train(self, recipe: ToyRecipe) -> Generator[int]:
        """Train a toy for find(), and yield after each turn how many updates are done. ValueError, in words, for what
        cannot be trained or has no maps; Busy where too many wait.

        Of callers that need the same toy, one trains it, and the others wait for that.
        """
        while True:
            with self._lock:
                waits = recipe in self._under_way
                if not waits:
                    self._under_way[recipe] = 0
            if not waits:
                break
            time.sleep(POLL_SECONDS)
            yield self._under_way.get(recipe, 0)
            if self._trained.get(recipe) is not None:
                return
        try:
            for run in self._advance(recipe):
                self._under_way[recipe] = run.update
                yield run.update
            self._trained.put(recipe, run.opened())
            self._runs.put(run.recipe, run)
        finally:
            del self._under_way[recipe]

    def watch(self, recipe: ToyRecipe, since: int = 0) -> Generator[tuple[ToyRun, Turn | None]]:
        """Train from update `since` to the recipe's last one, and yield each turn: None until the run is at `since`.

        The caller may stop at any turn: the run is kept as it then was. Raises as train().
        """
        for run in self._advance(replace(recipe, updates=since)):
            if run.update < since and not run.done:
                yield run, None
        recent = deque([run.copy()], maxlen=RECENT)
        try:
            yield run, Turn((), () if since else tuple(run.frames), run.done)
            while run.update < recipe.updates and not run.done:
                with self.line.turn():
                    turn = run.turn(seconds=TURN_SECONDS, updates=recipe.updates - run.update)
                recent.append(run.copy())
                yield run, turn
        finally:
            for state in recent:
                self._runs.put(state.recipe, state)

    def _advance(self, recipe: ToyRecipe) -> Generator[ToyRun]:
        """Bring a run to the recipe's last update, from there if it is kept, and yield it after each turn."""
        cached_run = self._runs.get(normalise(recipe))
        if cached_run is not None:
            run = cached_run.copy()
        else:
            with self.line.turn():
                run = ToyRun.begin(recipe)
                run.turn()
        yield run
        while run.update < recipe.updates and not run.done:
            with self.line.turn():
                run.turn(seconds=TURN_SECONDS, updates=recipe.updates - run.update)
            yield run

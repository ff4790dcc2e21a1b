"""Train toys by their recipes, and cache those used last. No state belongs to a visitor.

A large toy takes more memory than the whole cache: there is one place for one, for which callers wait, and which is
emptied some minutes after its last use.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Generator
from dataclasses import replace
from typing import Generic, TypeVar

import torch

from attention_atlas.model.serve.batching import Turns
from attention_atlas.model.serve.caches import ByteCache
from attention_atlas.model.serve.limits import BatchLimits, Busy
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.toy.run import ToyRun, Turn, normalise, parse
from attention_atlas.model.translator import Translator

MAX_BYTES = 128_000_000  # of the cache
TURN_SECONDS = 0.2  # no update starts later in a turn; an update takes at most 0.3 s, of a large toy 2 s
POLL_SECONDS = 0.2  # between checks of a toy that another caller trains
IDLE_SECONDS = 300  # after which a large toy is dropped
LARGE_LINE = BatchLimits(
    at_once=1, waiting=8, seconds=600.0
)  # for the slot of the large toy; its longest run takes some six minutes
RECENT = 2  # cached states of a stopped run: the caller may not have received its last turn
LINE = BatchLimits(at_once=1, waiting=8, seconds=20.0)  # one turn at a time, whoever's it is

Value = TypeVar("Value")


class ToyNeeded(Exception):
    """The toy of a question is not cached: it must be trained first."""

    def __init__(self, recipe: ToyRecipe) -> None:
        super().__init__("a toy has to be trained")
        self.recipe = recipe


class LargeToySlot(Generic[Value]):
    """A place for one value that is too large for a cache. One caller holds it at a time, and `idle_seconds` after the
    last use the value is dropped."""

    def __init__(self, idle_seconds: float, limits: BatchLimits = LARGE_LINE) -> None:
        self.value: Value | None = None
        self._idle_seconds, self._limits = idle_seconds, limits
        self._holder, self._lock = threading.Lock(), threading.Lock()
        self._waiting, self._timer = 0, threading.Timer(0, lambda: None)

    def hold(self) -> Generator[None]:
        """Wait for the place, and yield again and again while another caller holds it. Then the caller holds it, and
        must call release(). Raises Busy beyond the limits on waiting."""
        deadline = time.monotonic() + self._limits.seconds
        with self._lock:
            if self._waiting >= self._limits.waiting:
                raise Busy.queue_full(self._waiting)
            self._waiting += 1
        try:
            while not self._holder.acquire(timeout=POLL_SECONDS):
                if time.monotonic() > deadline:
                    raise Busy.timed_out(self._limits.seconds)
                yield
        finally:
            with self._lock:
                self._waiting -= 1
        self._timer.cancel()

    def release(self) -> None:
        """Let the next caller hold the place."""
        self.touch()
        self._holder.release()

    def touch(self) -> None:
        """Count the seconds until the value is dropped from now on."""
        with self._lock:
            self._timer.cancel()
            self._timer = threading.Timer(self._idle_seconds, self._drop)
            self._timer.daemon = True
            self._timer.start()

    def clear(self) -> None:
        """Free the value's memory; only its holder calls this."""
        self.value = None
        gc.collect()  # a translator and its batcher refer to each other

    def _drop(self) -> None:
        if self._holder.acquire(blocking=False):  # else its holder calls release(), which starts the time again
            self.clear()
            self._holder.release()


class Toys:
    """Toys in training, whose turns go through one line, and trained ones. For any number of threads."""

    def __init__(self, most: int = MAX_BYTES, line: BatchLimits = LINE, idle_seconds: float = IDLE_SECONDS) -> None:
        """most: bytes of the cache. idle_seconds: after which the large toy is dropped."""
        self.line = Turns(line)
        self.large: LargeToySlot[ToyRun | tuple[ToyRecipe, Translator]] = LargeToySlot(idle_seconds)
        self._runs: ByteCache[ToyRun] = ByteCache(most * 3 // 4, lambda run: run.size)
        self._under_way: dict[ToyRecipe, int] = {}  # what train() is at: recipe -> updates that are done
        self._lock = threading.Lock()
        self._trained: ByteCache[Translator] = ByteCache(most // 4, lambda toy: toy.weight_bytes)

    @property
    def bytes(self) -> int:
        """Bytes of the runs and networks in the cache."""
        return self._runs.bytes + self._trained.bytes

    @staticmethod
    def prepare() -> None:
        """Load what the first run of a process would wait for: PyTorch's first optimiser imports its compiler, which
        takes seconds and 70 MB."""
        torch.optim.SGD([torch.zeros(1)])

    def find(self, recipe: ToyRecipe) -> Translator:
        """Return the network of a recipe as any checkpoint is served. ToyNeeded if neither it nor its run is kept;
        ValueError, in words, if it has no maps."""
        if is_large(recipe):
            if (large := self._find_large(recipe)) is None:
                raise ToyNeeded(recipe)
            self.large.touch()
            return large
        if (toy := self._trained.get(recipe)) is None:
            if (run := self._runs.get(recipe)) is None:
                raise ToyNeeded(recipe)
            self._trained.put(recipe, toy := run.opened())
        return toy

    def latest(self, recipe: ToyRecipe) -> ToyRecipe:
        """Return the recipe of the large toy's state if that is just ahead of this recipe, whose caller did not receive
        the last turns; else the recipe. No earlier state of a large toy is kept, and training it again takes long."""
        large = self.large.value
        if large is None:
            return recipe
        state = large.recipe if isinstance(large, ToyRun) else large[0]
        is_near = 0 < state.updates - recipe.updates <= RECENT
        return state if is_near and replace(state, updates=recipe.updates) == normalise(recipe) else recipe

    def train(self, recipe: ToyRecipe) -> Generator[int | None]:
        """Train a toy for find(), and yield after each turn how many updates are done; None while another large toy is
        trained. ValueError, in words, for what cannot be trained or has no maps; Busy where too many wait.

        Of callers that need the same toy, one trains it, and the others wait for that.
        """
        if is_large(recipe):
            yield from self._train_large(recipe)
            return
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

    def watch(self, recipe: ToyRecipe, since: int = 0) -> Generator[tuple[ToyRun | None, Turn | None]]:
        """Train from update `since` to the recipe's last one, and yield each turn: None until the run is at `since`.

        A large toy waits while another one is trained: until then the run is None. The caller may stop at any turn: the
        run is kept as it then was. Raises as train().
        """
        if is_large(recipe):
            yield from self._watch_large(recipe, since)
            return
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

    def _find_large(self, recipe: ToyRecipe) -> Translator | None:
        """Return the large network if it is that of the recipe."""
        large = self.large.value
        return large[1] if isinstance(large, tuple) and large[0] == normalise(recipe) else None

    def _watch_large(self, recipe: ToyRecipe, since: int) -> Generator[tuple[ToyRun | None, Turn | None]]:
        """Do the same as watch(): the one run is not copied, and a caller that is behind it gets what it missed."""
        for _ in self.large.hold():
            yield None, None
        try:
            for run in self._advance_large(replace(recipe, updates=since)):
                if run.update < since:
                    yield run, None
            missed = (frame for frame in run.frames if not since or frame.update > since)
            yield run, Turn(tuple(run.points[since:]), tuple(missed), run.done)
            while run.update < recipe.updates and not run.done:
                with self.line.turn():
                    turn = run.turn(seconds=TURN_SECONDS, updates=recipe.updates - run.update)
                yield run, turn
        finally:
            self.large.release()

    def _train_large(self, recipe: ToyRecipe) -> Generator[int | None]:
        """Do the same as train(): the network takes the place of its run."""
        for _ in self.large.hold():
            yield None
        try:
            if self._find_large(recipe) is not None:
                return
            for run in self._advance_large(recipe, exact=True):
                yield run.update
            self.large.value = normalise(recipe), run.opened(copy=False)
        finally:
            self.large.release()

    def _advance_large(self, recipe: ToyRecipe, *, exact: bool = False) -> Generator[ToyRun]:
        """Bring the large run to at least the recipe's last update, and yield it after each turn. exact: not beyond."""
        run = self.large.value
        is_same = isinstance(run, ToyRun) and replace(run.recipe, updates=0) == replace(normalise(recipe), updates=0)
        if not is_same or (exact and run.update > recipe.updates):
            run = None
            self.large.clear()  # before the new one is built
            self.large.value = run = self._begin(recipe)
        yield from self._continue(run, recipe)

    def _advance(self, recipe: ToyRecipe) -> Generator[ToyRun]:
        """Bring a run to the recipe's last update, from there if it is kept, and yield it after each turn."""
        cached_run = self._runs.get(normalise(recipe))
        yield from self._continue(self._begin(recipe) if cached_run is None else cached_run.copy(), recipe)

    def _begin(self, recipe: ToyRecipe) -> ToyRun:
        """Return a new run with its first frame."""
        with self.line.turn():
            run = ToyRun.begin(recipe)
            run.turn()
        return run

    def _continue(self, run: ToyRun, recipe: ToyRecipe) -> Generator[ToyRun]:
        """Bring a run to the recipe's last update, and yield it before and after each turn."""
        yield run
        while run.update < recipe.updates and not run.done:
            with self.line.turn():
                run.turn(seconds=TURN_SECONDS, updates=recipe.updates - run.update)
            yield run


def is_large(recipe: ToyRecipe) -> bool:
    """Return whether a toy is kept outside of the cache. ValueError for a recipe that cannot be trained."""
    return parse(recipe)[1].is_large

"""Long computations about a model, done in parts, whose results stay in memory as long as the model is served."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

MAX_RESULTS = 32  # results stored for one model
Part = TypeVar("Part")
Result = TypeVar("Result")
Parts = Generator[tuple[int, int], None, Result]  # after each part yields (parts done, parts in all)


def finish(parts: Generator[Part, None, Result], watch: Callable[[Part], object] = lambda part: None) -> Result:
    """Run a generator to its end and return its result; call `watch` with each value it yields."""
    while True:
        try:
            part = next(parts)
        except StopIteration as end:
            return end.value
        watch(part)


class Owner(Protocol):
    """A model, identified by the digest of its weights."""

    digest: str


@dataclass(frozen=True, eq=False)
class Work(Generic[Result]):
    """A computation in parts whose result is stored on its owner.

    owner     the model that the result is about
    settings  everything else the result depends on; their repr must be the same in every process
    compute   returns the generator that yields after each part (of at most half a second) and returns the result
    """

    owner: Owner
    settings: tuple[Hashable, ...]
    compute: Callable[[], Parts[Result]]

    @property
    def key(self) -> str:
        """An identifier of the work, the same in every process."""
        return hashlib.sha256(repr((self.owner.digest, self.settings)).encode()).hexdigest()[:24]

    def find(self) -> Result | None:
        """Return the stored result, or None."""
        return self._results.get(self.settings)

    def result(self) -> Result:
        """Return the stored result. Raises WorkNeeded if there is none."""
        result = self.find()
        if result is None:
            raise WorkNeeded(self)
        return result

    def run(self) -> Parts[Result]:
        """Compute the result part by part, and store it."""
        result = yield from self.compute()
        self._results[self.settings] = result
        while len(self._results) > MAX_RESULTS:
            self._results.popitem(last=False)
        return result

    @property
    def _results(self) -> OrderedDict[tuple[Hashable, ...], Result]:
        return vars(self.owner).setdefault("_results_of_work", OrderedDict())


class WorkNeeded(Exception):
    """An answer needs a result that is not stored: run the work, then ask again."""

    def __init__(self, work: Work) -> None:
        super().__init__("a result has to be computed")
        self.work = work

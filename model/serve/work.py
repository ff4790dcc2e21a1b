"""Results about a model that take many parts to compute, kept as long as the model is served."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

KEPT = 32  # results of a model
Part = TypeVar("Part")
Result = TypeVar("Result")
Parts = Generator[tuple[int, int], None, Result]  # after each part, how many are done, of how many


def finish(parts: Generator[Part, None, Result], watch: Callable[[Part], object] = lambda part: None) -> Result:
    """Run a generator to its end and return its result. watch: called with what it yields."""
    while True:
        try:
            part = next(parts)
        except StopIteration as end:
            return end.value
        watch(part)


class Owner(Protocol):
    """A model. digest: of its weights."""

    digest: str


@dataclass(frozen=True, eq=False)
class Work(Generic[Result]):
    """settings: all that the result depends on besides the weights; their repr is the same in every process. compute:
    called without arguments, the parts, which return the result. A part is to take half a second at the most."""

    owner: Owner
    settings: tuple[Hashable, ...]
    compute: Callable[[], Parts[Result]]

    @property
    def key(self) -> str:
        """A name of the work, the same in every process."""
        return hashlib.sha256(repr((self.owner.digest, self.settings)).encode()).hexdigest()[:24]

    def find(self) -> Result | None:
        """Return the result if it was computed here."""
        return self._results.get(self.settings)

    def result(self) -> Result:
        """Return the result. WorkNeeded if it was not computed here."""
        found = self.find()
        if found is None:
            raise WorkNeeded(self)
        return found

    def run(self) -> Parts[Result]:
        """Compute the result, part by part, and keep it."""
        result = yield from self.compute()
        self._results[self.settings] = result
        while len(self._results) > KEPT:
            self._results.popitem(last=False)
        return result

    @property
    def _results(self) -> OrderedDict[tuple[Hashable, ...], Result]:
        return vars(self.owner).setdefault("_results_of_work", OrderedDict())


class WorkNeeded(Exception):
    """An answer needs a result that is not kept here: run the work, and ask again."""

    def __init__(self, work: Work) -> None:
        super().__init__("a result has to be computed")
        self.work = work

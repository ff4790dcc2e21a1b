"""Long work in parts, each in a file of its own: whoever goes on finds what is done, after a kill, in any process.

A process that is lent a GPU ends with its answer: files stay. The same work of the same weights gives the same parts,
so that whoever does one a second time does no harm.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attention_atlas.model.files import replace_file


@dataclass(frozen=True)
class Parts:
    """folder: for nothing but these; count: of the parts. A part is a dict of arrays by name."""

    folder: Path
    count: int

    @property
    def missing(self) -> list[int]:
        return [number for number in range(self.count) if not self._path(number).is_file()]

    @property
    def done(self) -> int:
        return self.count - len(self.missing)

    def step(self, make: Callable[[int], Mapping[str, np.ndarray]]) -> tuple[int, int]:
        """Make the first part that is missing; how many are done, of how many."""
        for number in self.missing[:1]:
            self.folder.mkdir(parents=True, exist_ok=True)
            written = io.BytesIO()  # to a path, numpy would add its ending
            np.savez(written, **make(number))
            content = written.getvalue()
            replace_file(self._path(number), lambda partial, content=content: partial.write_bytes(content))
        return self.done, self.count

    def read(self) -> Iterator[dict[str, np.ndarray]]:
        """All of them in order. To be asked for once none is missing."""
        for number in range(self.count):
            with np.load(self._path(number), allow_pickle=False) as file:
                yield dict(file)

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number}.npz"

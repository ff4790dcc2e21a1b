"""A benchmark: a declarative file, and what a kind of benchmark is given to measure it with."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.files import read_json
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.readers import Splits
from attention_atlas.model.translator import Translator

FOLDER = Path(__file__).with_name("benchmarks")


@dataclass(frozen=True)
class Benchmark:
    """name: of its file; kind: which module measures it; title, about: what it is, and whence, for the card;
    directions: for which it is; data: a folder or file below the data folder; options: what its kind asks for."""

    name: str
    kind: str
    title: str
    about: str
    directions: tuple[str, ...]
    data: str
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def definition(self) -> str:
        """Changes with whatever the file says."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).hexdigest()[:16]


def read_benchmarks(folder: Path = FOLDER) -> list[Benchmark]:
    """Every file's, in the order of their names. ValueError, naming the file, for what is none."""
    found = []
    for path in sorted(folder.glob("*.json")):
        values = read_json(path)
        try:
            found.append(Benchmark(path.stem, **{**values, "directions": tuple(values["directions"])}))
        except (TypeError, KeyError) as error:
            raise ValueError(f"{path} is no benchmark: {error}") from error
    return found


@dataclass(frozen=True, eq=False)
class Bench:
    """What a benchmark is measured with. reverse: gives a model that translates back, where there is one; limit: only
    so many rows, for a try; earlier: results by name of what was measured before."""

    translator: Translator
    direction: str
    data: Path
    reverse: Callable[[], Translator | None]
    limit: int | None = None
    earlier: Mapping[str, dict] = field(default_factory=dict)
    quiet: bool = False

    @property
    def languages(self) -> tuple[str, str]:
        return parse_direction(self.direction)

    def progress(self, rows, what: str) -> Iterator:
        """The rows, with a bar."""
        return tqdm(rows, desc=what, disable=self.quiet, leave=False)

    @cached_property
    def corpora(self) -> list[Splits]:
        """The data folder's corpora of the direction, with their held-out parts."""
        return read_folder(self.data, [self.languages])

    def held_out(self, part: str) -> dict[str, list[tuple[str, str]]]:
        """Pairs of a part, "dev" or "test", by corpus."""
        parts = ((splits.train.name, getattr(splits, part)) for splits in self.corpora)
        return {name: corpus.oriented(self.direction) for name, corpus in parts if corpus.oriented(self.direction)}

    def rows(self, path: Path) -> list[list[str]]:
        """A table's lines, cut at tabs."""
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file]

    def fits(self, source: str, target: str) -> bool:
        """Whether the model can read the one and be made to write the other."""
        translator = self.translator
        return (
            bool(source.strip() and target.strip())
            and translator.fits(source, self.direction)
            and len(translator.encode_target(target, self.direction)) < translator.max_tokens
        )

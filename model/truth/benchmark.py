"""Read the declarative files of benchmarks, and the data, corpora and models that a benchmark is measured with."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.files import read_json, value_errors
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.readers import Splits
from attention_atlas.model.translator import Translator

FOLDER = Path(__file__).with_name("benchmarks")


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of labelled data.

    name        of its file
    kind        the measure, such as "alignment" (KINDS of the program)
    title, about  for the card, with the source of the data
    directions  those that it applies to
    data        a folder or file below the data folder
    options     the settings of its kind
    """

    name: str
    kind: str
    title: str
    about: str
    directions: tuple[str, ...]
    data: str
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def definition(self) -> str:
        """A digest of the file's content."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).hexdigest()[:16]


def read_benchmarks(folder: Path = FOLDER) -> list[Benchmark]:
    """Read every benchmark of a folder, in the order of names. Raises ValueError, naming the file, for any other."""
    benchmarks = []
    for path in sorted(folder.glob("*.json")):
        values = read_json(path)
        with value_errors(f"{path} is no benchmark", TypeError, KeyError):
            benchmarks.append(Benchmark(path.stem, **{**values, "directions": tuple(values["directions"])}))
    return benchmarks


@dataclass(frozen=True, eq=False)
class Bench:
    """The model and data of one direction, with which benchmarks are measured.

    data     the data folder
    reverse  returns a model that translates back, or None
    limit    the number of rows of a trial; None: all
    earlier  benchmark's name -> its result, of those measured before
    """

    translator: Translator
    direction: str
    data: Path
    reverse: Callable[[], Translator | None]
    limit: int | None = None
    earlier: Mapping[str, dict] = field(default_factory=dict)

    @property
    def languages(self) -> tuple[str, str]:
        return parse_direction(self.direction)

    def progress(self, rows, title: str) -> Iterator:
        """Iterate over rows with a progress bar."""
        return tqdm(rows, desc=title, leave=False)

    @cached_property
    def corpora(self) -> list[Splits]:
        """The corpora of the direction in the data folder, with their held-out parts."""
        return read_folder(self.data, [self.languages])

    def held_out(self, part: str) -> dict[str, list[tuple[str, str]]]:
        """Return the pairs of a part, "dev" or "test", by corpus."""
        parts = ((splits.train.name, getattr(splits, part)) for splits in self.corpora)
        return {name: corpus.oriented(self.direction) for name, corpus in parts if corpus.oriented(self.direction)}

    def rows(self, path: Path) -> list[list[str]]:
        """Return the rows of a gzipped table of tab-separated values."""
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file]

    def fits(self, source: str, target: str) -> bool:
        """Return whether the model can read the source and be forced to write the target."""
        translator = self.translator
        return (
            bool(source.strip() and target.strip())
            and translator.fits(source, self.direction)
            and len(translator.encode_target(target, self.direction)) < translator.max_tokens
        )

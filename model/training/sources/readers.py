"""Readers of parallel corpora in their published layouts, their splits, and the normalization of sentences."""

from __future__ import annotations

import gzip
import hashlib
import unicodedata
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from attention_atlas.model.files import value_errors
from attention_atlas.model.trace.directions import parse_direction

TATOEBA_FILES = {"de": ("deu-eng.zip", "deu.txt"), "fr": ("fra-eng.zip", "fra.txt")}
SPLITS = ("train", "dev", "test")
TAG = "\x1a"  # marks a source that a model wrote: the control character SUBSTITUTE, which nobody types


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentence pairs of two languages. pairs[i] = (sentence in languages[0], its translation in languages[1]).

    one_way: whether the corpus may only be used in this direction, because a model wrote the first side.
    """

    name: str
    languages: tuple[str, str]
    pairs: tuple[tuple[str, str], ...]
    one_way: bool = False

    def oriented(self, direction: str) -> list[tuple[str, str]]:
        """Return the (source, target) pairs of a direction such as "de-en"; none if the corpus does not have it."""
        languages = parse_direction(direction)
        if languages == self.languages:
            return list(self.pairs)
        return [(b, a) for a, b in self.pairs] if languages == self.languages[::-1] and not self.one_way else []


EMPTY = Corpus("none", ("", ""), ())


@dataclass(frozen=True, eq=False)
class Splits:
    """A corpus in three parts, any of which may be empty."""

    train: Corpus = EMPTY
    dev: Corpus = EMPTY
    test: Corpus = EMPTY


def read_aligned(first: str | Path, second: str | Path, languages: tuple[str, str], *, name: str = "") -> Corpus:
    """Read two line-aligned text files, plain or .gz (as of Moses and EuroParl). Raises ValueError if their lengths
    differ."""
    columns = [read_lines(Path(path)) for path in (first, second)]
    if len(columns[0]) != len(columns[1]):
        raise ValueError(f"{first} has {len(columns[0])} lines but {second} has {len(columns[1])}: not aligned")
    return Corpus(name or Path(first).name, languages, clean_pairs(zip(*columns)))


def read_synthetic(source: str | Path, target: str | Path, languages: tuple[str, str]) -> Corpus:
    """Read line-aligned files whose source a model translated from the target (back-translation, Sennrich et al. 2016).

    Each source begins with TAG, so that the model can tell it from real sentences (Caswell et al. 2019).
    """
    aligned = read_aligned(source, target, languages, name="synthetic")
    return replace(aligned, pairs=tuple((f"{TAG} {a}", b) for a, b in aligned.pairs), one_way=True)


def read_multi30k(root: str | Path, split: str, languages: tuple[str, str]) -> Corpus:
    """Read Multi30k task 1 in its repository's layout (Elliott et al. 2016). split: train, val or test_2016_flickr."""
    folder = Path(root) / "data" / "task1" / "raw"
    paths = [folder / f"{split}.{language}.gz" for language in languages]
    return read_aligned(*paths, languages, name="multi30k")


def read_tatoeba(path: str | Path, language: str) -> Corpus:
    """Read a zip of manythings.org: English TAB other language (TAB attribution in newer files)."""
    member = TATOEBA_FILES[language][1] if language in TATOEBA_FILES else None
    errors = value_errors(f"{path} is not a zip of UTF-8 text", OSError, zipfile.BadZipFile, UnicodeDecodeError)
    with errors, zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(".txt") and not n.startswith("_")]
        if member not in names and len(names) != 1:
            raise ValueError(f"{path} holds {names}: expected one sentence file such as deu.txt")
        text = archive.read(member if member in names else names[0]).decode("utf-8")
    rows = (line.rstrip("\r").split("\t") for line in text.split("\n"))
    return Corpus("tatoeba", (language, "en"), clean_pairs((row[1], row[0]) for row in rows if len(row) >= 2))


def split_tatoeba(corpus: Corpus) -> dict[str, Corpus]:
    """Split a corpus into train, dev and test by a hash of the English sentence.

    The hash is SHA-1 of comparison_key() modulo 100: 0 is test, 1 is dev. Training pairs that share a side with the
    other two are left out.
    """
    parts: dict[str, list[tuple[str, str]]] = {split: [] for split in SPLITS}
    for pair in corpus.pairs:
        bucket = int(hashlib.sha1(comparison_key(pair[1]).encode()).hexdigest(), 16) % 100
        parts[{0: "test", 1: "dev"}.get(bucket, "train")].append(pair)
    held_out = [Corpus(corpus.name, corpus.languages, tuple(parts[split])) for split in ("dev", "test")]
    train = remove_leaks(Corpus(corpus.name, corpus.languages, tuple(parts["train"])), held_out)
    return dict(zip(SPLITS, (train, *held_out)))


def remove_leaks(train: Corpus, held_out: Iterable[Corpus]) -> Corpus:
    """Return the training corpus without pairs that share a side with a held-out pair."""
    keys = {comparison_key(side) for corpus in held_out for pair in corpus.pairs for side in pair}
    return replace(train, pairs=tuple(p for p in train.pairs if keys.isdisjoint(map(comparison_key, p))))


def comparison_key(sentence: str) -> str:
    """Return the form in which sentences are compared and hashed: without TAG, NFKC, lower case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", sentence.removeprefix(TAG)).lower().split())


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 text file, plain or .gz. Raises ValueError if it is missing or not one."""
    if not path.is_file():
        raise ValueError(f"no such file: {path}")
    opener, form = (gzip.open, "gzipped UTF-8 text") if path.suffix == ".gz" else (open, "UTF-8 text")
    errors = value_errors(f"{path} is not {form}", OSError, EOFError, UnicodeDecodeError)
    with errors, opener(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\r\n") for line in file]


def clean_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Normalize both sides of the pairs and drop those with an empty side."""
    normalized = (tuple(map(normalize_text, pair)) for pair in pairs)
    return tuple((a, b) for a, b in normalized if a and b)


def normalize_text(sentence: str) -> str:
    """Return a sentence with composed accents (NFC) and single spaces."""
    return " ".join(unicodedata.normalize("NFC", sentence).split())


def read_table(path: Path, columns: str) -> list[list[str]]:
    """Read a table of the given columns, such as "English TAB German". Raises ValueError for a row with another number
    of columns."""
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != columns.count(" TAB ") + 1:
            raise ValueError(f"{path}, line {number}: expected {columns}, found {len(row)} columns")
    return rows

"""Parallel corpora, read from the layouts in which they are published, and split."""

from __future__ import annotations

import gzip
import hashlib
import unicodedata
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from attention_atlas.model.trace.directions import parse_direction

TATOEBA_FILES = {"de": ("deu-eng.zip", "deu.txt"), "fr": ("fra-eng.zip", "fra.txt")}
SPLITS = ("train", "dev", "test")
TAG = "\x1a"  # before a source that a model wrote; the control character SUBSTITUTE, which nobody types


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentence pairs of two languages. pairs[i] = (sentence in languages[0], the same in languages[1]).

    one_way: to be read in this direction alone, as a corpus whose first side a model wrote.
    """

    name: str
    languages: tuple[str, str]
    pairs: tuple[tuple[str, str], ...]
    one_way: bool = False

    def oriented(self, direction: str) -> list[tuple[str, str]]:
        """(source, target) pairs of a direction such as "de-en"; empty if the corpus does not serve it."""
        wanted = parse_direction(direction)
        if wanted == self.languages:
            return list(self.pairs)
        return [(b, a) for a, b in self.pairs] if wanted == self.languages[::-1] and not self.one_way else []


@dataclass(frozen=True, eq=False)
class Splits:
    """One corpus in three parts; a file pair without held-out parts has empty ones."""

    train: Corpus
    dev: Corpus
    test: Corpus


def read_aligned(first: str | Path, second: str | Path, languages: tuple[str, str], *, name: str = "") -> Corpus:
    """Two line-aligned text files, plain or .gz (Moses and EuroParl style). ValueError if their lengths differ."""
    columns = [read_lines(Path(path)) for path in (first, second)]
    if len(columns[0]) != len(columns[1]):
        raise ValueError(f"{first} has {len(columns[0])} lines but {second} has {len(columns[1])}: not aligned")
    return Corpus(name or Path(first).name, languages, clean(zip(*columns)))


def read_synthetic(source: str | Path, target: str | Path, languages: tuple[str, str]) -> Corpus:
    """Line-aligned files with a real target side and a source side that a model translated from it.

    Each source begins with TAG: told apart from real ones, they teach the target language without teaching the model
    to expect a machine's sentences (back-translation: Sennrich et al. 2016; tagged: Caswell et al. 2019).
    """
    aligned = read_aligned(source, target, languages, name="synthetic")
    return replace(aligned, pairs=tuple((f"{TAG} {a}", b) for a, b in aligned.pairs), one_way=True)


def read_multi30k(root: str | Path, split: str, languages: tuple[str, str]) -> Corpus:
    """Multi30k task 1 in its repository's layout (Elliott et al. 2016); split: train, val or test_2016_flickr."""
    folder = Path(root) / "data" / "task1" / "raw"
    paths = [folder / f"{split}.{language}.gz" for language in languages]
    return read_aligned(*paths, languages, name="multi30k")


def read_tatoeba(path: str | Path, language: str) -> Corpus:
    """A manythings.org zip: English TAB other language (TAB attribution in newer files)."""
    member = TATOEBA_FILES[language][1] if language in TATOEBA_FILES else None
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if n.endswith(".txt") and not n.startswith("_")]
            if member not in names and len(names) != 1:
                raise ValueError(f"{path} holds {names}: expected one sentence file such as deu.txt")
            text = archive.read(member if member in names else names[0]).decode("utf-8")
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a zip of UTF-8 text: {error}") from error
    rows = (line.rstrip("\r").split("\t") for line in text.split("\n"))
    return Corpus("tatoeba", (language, "en"), clean((row[1], row[0]) for row in rows if len(row) >= 2))


def split_tatoeba(corpus: Corpus) -> dict[str, Corpus]:
    """train, dev and test by a hash of the English sentence; training shares neither side with the other two.

    SHA-1 of the NFKC-lowercased English sentence modulo 100: 0 = test, 1 = dev.
    """
    parts: dict[str, list[tuple[str, str]]] = {split: [] for split in SPLITS}
    for pair in corpus.pairs:
        bucket = int(hashlib.sha1(normalised(pair[1]).encode()).hexdigest(), 16) % 100
        parts[{0: "test", 1: "dev"}.get(bucket, "train")].append(pair)
    held_out = [Corpus(corpus.name, corpus.languages, tuple(parts[split])) for split in ("dev", "test")]
    train = without_leaks(Corpus(corpus.name, corpus.languages, tuple(parts["train"])), held_out)
    return dict(zip(SPLITS, (train, *held_out)))


def without_leaks(train: Corpus, held_out: Iterable[Corpus]) -> Corpus:
    """The training pairs that share neither side with a held-out pair."""
    taken = {normalised(side) for corpus in held_out for pair in corpus.pairs for side in pair}
    kept = tuple(p for p in train.pairs if normalised(p[0]) not in taken and normalised(p[1]) not in taken)
    return replace(train, pairs=kept)


def normalised(sentence: str) -> str:
    """The form in which sentences are compared and hashed: untagged, NFKC, lower case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", sentence.removeprefix(TAG)).lower().split())


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file, plain or .gz. ValueError if it is missing or is none."""
    if not path.is_file():
        raise ValueError(f"no such file: {path}")
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="\n") as file:
            return [line.rstrip("\r\n") for line in file]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not {'gzipped ' if path.suffix == '.gz' else ''}UTF-8 text: {error}") from error


def clean(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Pairs of which neither side is empty, tidied."""
    tidy = (tuple(map(tidied, pair)) for pair in pairs)
    return tuple((a, b) for a, b in tidy if a and b)


def tidied(sentence: str) -> str:
    """A sentence with composed accents and single spaces: only what no reader would miss."""
    return " ".join(unicodedata.normalize("NFC", sentence).split())

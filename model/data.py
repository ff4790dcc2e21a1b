"""Parallel corpora -> sentence pairs -> length-bucketed, padded batches."""

from __future__ import annotations

import gzip
import hashlib
import unicodedata
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from model.tokenizer import Tokenizer

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


def parse_direction(direction: str) -> tuple[str, str]:
    """"de-en" -> ("de", "en"). ValueError for anything else."""
    parts = tuple(direction.split("-"))
    if len(parts) != 2 or not all(part.isalpha() and part.islower() for part in parts) or parts[0] == parts[1]:
        raise ValueError(f"a direction is two different language codes such as 'de-en', found {direction!r}")
    return parts


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


@dataclass(frozen=True, eq=False)
class Batch:
    """Padded on the right. source [batch, source]; inputs `<s> y1 .. yT` and outputs `y1 .. yT </s>` [batch, target].
    tokens: outputs that are not padding, in the WHOLE batch, also where this is one process's share of it."""

    source: Tensor
    inputs: Tensor
    outputs: Tensor
    tokens: int

    def to(self, device: torch.device) -> Batch:
        return Batch(self.source.to(device), self.inputs.to(device), self.outputs.to(device), self.tokens)


@dataclass(frozen=True, eq=False)
class Examples:
    """Encoded pairs: source ids with language symbol and </s>, target ids without <s> and </s>."""

    source: list[list[int]]
    target: list[list[int]]

    @classmethod
    def encode(cls, pairs: list[tuple[str, str]], tokenizer: Tokenizer, target_language: str, *,
               max_length: int) -> Examples:
        """Pairs longer than max_length tokens on either side are left out."""
        encoded = [(tokenizer.encode_source(s, target_language), tokenizer.encode(t)) for s, t in pairs]
        kept = [(s, t) for s, t in encoded if len(s) <= max_length and len(t) < max_length]
        return cls([s for s, _ in kept], [t for _, t in kept])

    def epoch(self, number: int) -> Examples:
        """What an epoch sees: the same each time. A Mixture draws anew."""
        return self

    def __add__(self, other: Examples) -> Examples:
        return Examples(self.source + other.source, self.target + other.target)


def plan_batches(examples: Examples, tokens_per_batch: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """The epoch's batches as arrays of row numbers, in their order: a function of seed and epoch alone.

    Pairs of like length share a batch; padded target tokens stay within tokens_per_batch (one pair at the least).
    """
    random = np.random.default_rng((seed, epoch))
    target = np.array([len(t) + 1 for t in examples.target])
    source = np.array([len(s) for s in examples.source])
    # A little noise in the sort keys makes other neighbours each epoch.
    order = np.lexsort((source + random.uniform(0, 3, len(source)), target + random.uniform(0, 1, len(target)).round()))
    batches, start, longest = [], 0, 0
    for end, row in enumerate(order):
        longest = max(longest, target[row])
        if end > start and longest * (end + 1 - start) > tokens_per_batch:
            batches.append(order[start:end])
            start, longest = end, target[row]
    if start < len(order):
        batches.append(order[start:])
    return [batches[i] for i in random.permutation(len(batches))]


def make_batch(examples: Examples, rows: np.ndarray, tokenizer: Tokenizer, *, rank: int = 0,
               world_size: int = 1) -> Batch:
    """The batch of these rows, or process `rank`'s share of it.

    A process for which no row is left gets one pair with nothing but padding to predict: every process then runs the
    same computation, and that one adds nothing to loss or gradient.
    """
    mine = rows[rank::world_size]
    shown = mine if len(mine) else rows[:1]
    target = [examples.target[i] for i in shown]
    outputs = pad([[*t, tokenizer.end_id] for t in target], tokenizer.pad_id)
    return Batch(
        source=pad([examples.source[i] for i in shown], tokenizer.pad_id),
        inputs=pad([[tokenizer.begin_id, *t] for t in target], tokenizer.pad_id),
        outputs=outputs if len(mine) else torch.full_like(outputs, tokenizer.pad_id),
        tokens=sum(len(examples.target[i]) + 1 for i in rows))


def pad(sequences: list[list[int]], pad_id: int) -> Tensor:
    """int64 [batch, longest], padded on the right. No sequences: [0, 0]."""
    padded = torch.full((len(sequences), max(map(len, sequences), default=0)), pad_id, dtype=torch.long)
    for row, sequence in zip(padded, sequences):
        row[:len(sequence)] = torch.tensor(sequence, dtype=torch.long)
    return padded


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
    # Only what no reader would miss: composed accents, single spaces, no empty side.
    tidy = ((" ".join(unicodedata.normalize("NFC", side).split()) for side in pair) for pair in pairs)
    return tuple((a, b) for a, b in tidy if a and b)

"""WMT's news test sets as one corpus: line-aligned NAME.xx.gz, as OPUS-MT-testsets collects them."""

from __future__ import annotations

from pathlib import Path

from attention_atlas.model.training.sources.readers import Corpus, read_aligned

# By the beginning of a file's name; all others train. The second two hold one language pair each.
HELD_OUT = {"newstest2013.": "dev", "newstest2018.": "test", "newsdiscusstest2015.": "test"}


def read_news(folder: str | Path, languages: tuple[str, str]) -> dict[str, Corpus] | None:
    """train, dev and test of every file that the folder has in both languages; None if it has no such file."""
    first, second = languages
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "dev": [], "test": []}
    found = False
    for path in sorted(Path(folder).glob(f"*.{first}.gz")):
        other = path.with_name(path.name.removesuffix(f".{first}.gz") + f".{second}.gz")
        if other.is_file():
            found = True
            split = next((part for start, part in HELD_OUT.items() if path.name.startswith(start)), "train")
            parts[split].extend(read_aligned(path, other, languages).pairs)
    return {split: Corpus("news", languages, tuple(pairs)) for split, pairs in parts.items()} if found else None

"""Read the corpora of a data folder, each in its published layout, with their splits."""

from __future__ import annotations

from pathlib import Path

from attention_atlas.model.training.sources.more import read_more
from attention_atlas.model.training.sources.readers import (
    TATOEBA_FILES,
    Corpus,
    Splits,
    clean_pairs,
    read_aligned,
    read_multi30k,
    read_table,
    read_tatoeba,
    split_tatoeba,
)
from attention_atlas.model.training.sources.words import read_dictionary

MULTI30K_SPLITS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
TABLES = {"de": "deu-eng.tsv.gz", "fr": "fra-eng.tsv.gz"}  # English TAB other language
# WMT's news test sets by the start of the file name; all others train. The second two have one language pair each.
NEWS_HELD_OUT = {"newstest2013.": "dev", "newstest2018.": "test", "newsdiscusstest2015.": "test"}
LANGUAGE_PAIRS = (("de", "en"), ("fr", "en"))


def read_folder(root: Path, directions: list[tuple[str, str]]) -> list[Splits]:
    """Read the corpora of a folder for directions.

    The splits of the corpora in more/ depend on all other corpora of the folder, whichever directions are asked for.
    """
    pairs = list(dict.fromkeys(tuple(sorted(d, key=lambda code: (code == "en", code))) for d in directions))
    if not any((root / "more").glob("*.tsv.gz")):
        return [splits for languages in pairs for splits in _read_published(root, languages)]
    published = {languages: _read_published(root, languages) for languages in dict.fromkeys((*LANGUAGE_PAIRS, *pairs))}
    more = read_more(root / "more", (splits for corpora in published.values() for splits in corpora), pairs)
    return [splits for languages, others in zip(pairs, more) for splits in (*published[languages], *others)]


def _read_published(root: Path, languages: tuple[str, str]) -> list[Splits]:
    corpora = []
    captions = root / "multi30k"
    if all((captions / "data/task1/raw" / f"train.{language}.gz").is_file() for language in languages):
        corpora.append(Splits(*(read_multi30k(captions, name, languages) for name in MULTI30K_SPLITS.values())))
    archive = root / "tatoeba" / TATOEBA_FILES.get(languages[0], ("",))[0]
    if languages[1] == "en" and archive.is_file():
        corpora.append(Splits(**split_tatoeba(read_tatoeba(archive, languages[0]))))
    table = root / "tatoeba-2021" / TABLES.get(languages[0], "")
    if languages[1] == "en" and table.is_file():
        rows = read_table(table, "English TAB translation")
        pairs = clean_pairs((other, english) for english, other in rows)
        corpora.append(Splits(**split_tatoeba(Corpus("tatoeba-2021", (languages[0], "en"), pairs))))
    if news := read_news(root / "news", languages):
        corpora.append(Splits(**news))
    if dictionary := read_dictionary(root, languages):
        corpora.append(dictionary)
    return corpora


def read_news(folder: str | Path, languages: tuple[str, str]) -> dict[str, Corpus] | None:
    """Read WMT's news test sets as one corpus: train, dev and test of the line-aligned files NAME.xx.gz that
    OPUS-MT-testsets collects. Returns None if the folder has none in both languages."""
    first, second = languages
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "dev": [], "test": []}
    has_files = False
    for path in sorted(Path(folder).glob(f"*.{first}.gz")):
        translation = path.with_name(path.name.removesuffix(f".{first}.gz") + f".{second}.gz")
        if translation.is_file():
            has_files = True
            split = next((part for start, part in NEWS_HELD_OUT.items() if path.name.startswith(start)), "train")
            parts[split].extend(read_aligned(path, translation, languages).pairs)
    if not has_files:
        return None
    return {split: Corpus("news", languages, tuple(pairs)) for split, pairs in parts.items()}

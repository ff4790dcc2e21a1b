"""The corpora of a data folder, each in its published layout."""

from __future__ import annotations

from pathlib import Path

from attention_atlas.model.training.sources.more import read_more
from attention_atlas.model.training.sources.news import read_news
from attention_atlas.model.training.sources.readers import (
    TATOEBA_FILES,
    Splits,
    read_multi30k,
    read_tatoeba,
    split_tatoeba,
)
from attention_atlas.model.training.sources.tables import FILES, read_table
from attention_atlas.model.training.sources.words import read_dictionary

MULTI30K_SPLITS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
EVERY_PAIR = (("de", "en"), ("fr", "en"))


def read_folder(root: Path, directions: list[tuple[str, str]]) -> list[Splits]:
    """What the folder has for the directions. Those of more/ are split as all the others together ask, whichever
    directions are wanted."""
    wanted = list(dict.fromkeys(tuple(sorted(d, key=lambda code: (code == "en", code))) for d in directions))
    if not any((root / "more").glob("*.tsv.gz")):
        return [splits for languages in wanted for splits in _published(root, languages)]
    found = {languages: _published(root, languages) for languages in dict.fromkeys((*EVERY_PAIR, *wanted))}
    more = read_more(root / "more", (splits for every in found.values() for splits in every), wanted)
    return [splits for languages, new in zip(wanted, more) for splits in (*found[languages], *new)]


def _published(root: Path, languages: tuple[str, str]) -> list[Splits]:
    found = []
    captions = root / "multi30k"
    if all((captions / "data/task1/raw" / f"train.{language}.gz").is_file() for language in languages):
        found.append(Splits(*(read_multi30k(captions, name, languages) for name in MULTI30K_SPLITS.values())))
    archive = root / "tatoeba" / TATOEBA_FILES.get(languages[0], ("",))[0]
    if languages[1] == "en" and archive.is_file():
        found.append(Splits(**split_tatoeba(read_tatoeba(archive, languages[0]))))
    table = root / "tatoeba-2021" / FILES.get(languages[0], "")
    if languages[1] == "en" and table.is_file():
        found.append(Splits(**split_tatoeba(read_table(table, languages[0], name="tatoeba-2021"))))
    news = read_news(root / "news", languages)
    if news:
        found.append(Splits(**news))
    dictionary = read_dictionary(root, languages)
    if dictionary:
        found.append(dictionary)
    return found

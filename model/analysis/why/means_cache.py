"""A cache of the means of the models that are served: from the checkpoint's folder, or made when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.why import averages
from attention_atlas.model.files import read_or_none
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.translator import Translator

SENTENCES = 100  # that means are taken over: the same ones in every process, so that all give the same numbers
BATCH = 8  # sentences a batch


@dataclass(frozen=True)
class Progress:
    """So many sentences of so many are read."""

    done: int
    total: int


class MeansCache:
    """Means by weights and direction, kept while the process runs."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Means | None] = {}

    def find(self, translator: Translator, direction: str) -> Means | None:
        """Those of the checkpoint's folder, or those made already; None: there are none yet. A damaged file, or one of
        other weights, is none, and the log says so."""
        key = translator.digest, direction
        if key not in self._found:
            self._found[key] = stored_means(translator)
        return self._found[key]

    def can_make(self, direction: str) -> bool:
        """Whether there are sentences of this project's own in the direction's source language."""
        return parse_direction(direction)[0] in languages()

    def make(self, translator: Translator, direction: str) -> Iterator[Progress]:
        """Compute the means over SENTENCES sentences, batch by batch. ValueError if there are none in this language."""
        if not self.can_make(direction):
            raise ValueError(f"there are no sentences of this project's own for {direction}")
        texts = sentences(parse_direction(direction)[0])
        texts = texts[:: max(1, len(texts) // SENTENCES)][:SENTENCES]
        for totals in averages.collecting(translator, {direction: texts}, batch=BATCH):
            yield Progress(totals.sentences, len(texts))
        self._found[translator.digest, direction] = totals.means(translator.digest)


def stored_means(translator: Translator) -> Means | None:
    """Those of the checkpoint's folder; a damaged file, or one of other weights, is none, and the log says so."""
    folder = translator.folder
    return folder and read_or_none(folder / averages.FILE, lambda path: averages.load(path, translator))

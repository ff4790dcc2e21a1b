"""Lenses that visitors have fitted to sentences of our own, kept as long as the model is served."""

from __future__ import annotations

from attention_atlas.model.analysis.lenses.fit import Fitting
from attention_atlas.model.analysis.lenses.fitted import Lenses, stored
from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.translator import Translator

SENTENCES, SLOPES, STEPS, BATCH = 40, 8, 60, 4


def fitted_to(translator: Translator) -> Lenses | None:
    """The lenses beside the weights, or those that were fitted here; None where there are neither."""
    found = stored(translator.folder, translator.config, translator.digest)
    return found or next(filter(None, (fitting(translator, one).find() for one in translator.directions)), None)


def fitting(translator: Translator, direction: str) -> Work[Lenses]:
    """Those that can be fitted here."""

    def compute() -> Parts[Lenses]:
        texts = {direction: sentences(parse_direction(direction)[0])[:SENTENCES]}
        return Fitting(translator, texts, SLOPES, STEPS, BATCH).parts()

    return Work(translator, ("lenses", direction), compute)


def can(direction: str) -> bool:
    """Whether there are sentences in the source language."""
    return parse_direction(direction)[0] in languages()

"""Surveys that visitors take of this project's own sentences, kept as long as the model is served."""

from __future__ import annotations

from dataclasses import replace

from attention_atlas.model.analysis.alignment.linker import choose_linking_heads, linker, linking_maps
from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.survey.corpus import Corpus, encoded
from attention_atlas.model.analysis.survey.run import SurveyRun
from attention_atlas.model.analysis.survey.window import Sums
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.survey.survey import OWN, DirectionSurvey
from attention_atlas.model.translator import Translator

SENTENCES, WINDOW = 200, 4
LINKED = 40  # sentences on which heads are chosen that link words


def surveyed(translator: Translator, direction: str) -> DirectionSurvey | None:
    """The survey beside the weights, or the one that was taken here; None where there is neither."""
    return shipped(translator, direction) or survey(translator, direction).find()


def shipped(translator: Translator, direction: str) -> DirectionSurvey | None:
    """The survey beside the weights."""
    return translator.survey.directions.get(direction) if translator.survey else None


def can(direction: str) -> bool:
    """Whether there are sentences in the source language."""
    return parse_direction(direction)[0] in languages()


def survey(translator: Translator, direction: str) -> Work[DirectionSurvey]:
    """The survey that is taken here. The first parts choose heads that link words, the last one is induction's."""

    def compute() -> Parts[DirectionSurvey]:
        lines = sentences(parse_direction(direction)[0])[:SENTENCES]
        run = SurveyRun(translator, direction, Corpus(OWN, lambda: ((line, "") for line in lines), True), window=WINDOW)
        texts = [text for text in lines[:LINKED] if encoded(translator, direction, text)]
        starts, maps = range(0, len(texts), WINDOW), []
        of = len(starts) + run.windows
        for done, start in enumerate(starts, 1):
            maps += linking_maps(translator, direction, texts[start : start + WINDOW])
            yield done, of
        linked_by = choose_linking_heads(translator, maps)
        run.link = linker(linked_by) if linked_by else None
        sums = Sums.empty(run.seed)
        for done in run.measuring(sums):
            yield len(starts) + done, of
        return replace(run.result(sums), linked_by=linked_by)

    return Work(translator, ("survey", direction), compute)

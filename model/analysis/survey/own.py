"""Surveys that visitors take: of this project's own sentences, window by window, kept in files while the server
runs."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path

from model.analysis.sentences import languages, sentences
from model.analysis.survey.corpus import Corpus
from model.analysis.survey.run import Run
from model.trace.directions import parse_direction
from model.trace.language import Refusal
from model.trace.survey.survey import OWN, DirectionSurvey
from model.translator import Translator

SENTENCES, WINDOW = 200, 20  # a window is one question of the page: seconds, also of a large model
PARTS = SENTENCES // WINDOW + 1  # the last one is induction's


def surveyed(translator: Translator, direction: str) -> DirectionSurvey | None:
    """The survey beside the weights, or the one that was taken here; None where there is neither."""
    shipped = translator.survey.directions.get(direction) if translator.survey else None
    if shipped or not _folder(translator).is_dir() or not can(direction):
        return shipped
    run = own(translator, direction)
    return run.result() if run.is_done else None


def can(direction: str) -> bool:
    """Whether there are sentences in the source language."""
    return parse_direction(direction)[0] in languages()


def own(translator: Translator, direction: str) -> Run:
    """The survey that is taken here, as far as it is. A Refusal where there are no sentences."""
    language = parse_direction(direction)[0]
    if language not in languages():
        raise Refusal("There are no sentences of this project's own in {language}: run python -m model.survey with "
                      "sentences of yours.", language=language)
    corpus = Corpus(OWN, lambda: ((line, "") for line in islice(sentences(language), SENTENCES)),
                    own=True)
    folder = _folder(translator)
    folder.mkdir(parents=True, exist_ok=True)
    return Run(translator, direction, corpus, parts=folder, window=WINDOW)


def _folder(translator: Translator) -> Path:
    # A process that is lent a GPU ends with its answer: files stay. The same sentences of the same weights give the
    # same sums, so that whoever asks finds what others have measured.
    return Path(tempfile.gettempdir()) / f"attention-atlas-survey-{translator.digest}"

"""Surveys that visitors take: of this project's own sentences, window by window, kept in files as long as the model is
served."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from attention_atlas.model.analysis.alignment.linker import linker, linking_heads
from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.survey.corpus import Corpus, encoded
from attention_atlas.model.analysis.survey.run import SurveyRun, save
from attention_atlas.model.checkpoint import read_survey
from attention_atlas.model.files import read_json, write_json
from attention_atlas.model.trace.alignment.voters import RowToken, Voter
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.survey.survey import OWN, DirectionSurvey, Survey
from attention_atlas.model.translator import Translator

SENTENCES, WINDOW = 200, 20  # a window is one question of the page: seconds, also of a large model
PARTS = 1 + SENTENCES // WINDOW + 1  # the first one chooses heads that link words, the last one is induction's
LINKED = 2 * WINDOW  # sentences on which they are chosen: about a window's time


def surveyed(translator: Translator, direction: str) -> DirectionSurvey | None:
    """The survey beside the weights, or the one that was taken here; None where there is neither."""
    shipped = translator.survey.directions.get(direction) if translator.survey else None
    if shipped or not can(direction):
        return shipped
    taken = read_survey(_folder(translator) / f"{direction}.json", translator.digest)
    return taken.directions[direction] if taken else None


def can(direction: str) -> bool:
    """Whether there are sentences in the source language."""
    return parse_direction(direction)[0] in languages()


@dataclass(frozen=True)
class OwnSurvey:
    """One that is taken here, as far as it is."""

    translator: Translator
    direction: str
    corpus: Corpus
    folder: Path

    def step(self) -> tuple[int, int]:
        """Do the first part that is missing; how many are done, of how many. Whoever else steps at the same time at
        worst does the same."""
        if self.linked_by is None:
            texts = [
                text for text, _ in islice(self.corpus.read(), LINKED) if encoded(self.translator, self.direction, text)
            ]
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(
                self._links,
                [[v.layer, v.head, v.row.value] for v in linking_heads(self.translator, self.direction, texts)],
            )
            return 1, 1 + self.run.windows
        done, of = self.run.step()
        if done == of:
            found = Survey(self.translator.name, self.translator.digest, {self.direction: self.result()})
            save(self.folder / f"{self.direction}.json", found)
        return 1 + done, 1 + of

    def result(self) -> DirectionSurvey:
        """The survey. ValueError while parts are missing."""
        return replace(self.run.result(), linked_by=self.linked_by or ())

    @property
    def linked_by(self) -> tuple[Voter, ...] | None:
        """The heads that link words; none where a model's translations have no words. None: not chosen yet."""
        if not self._links.is_file():
            return None
        return tuple(Voter(layer, head, RowToken(row), False) for layer, head, row in read_json(self._links))

    @cached_property
    def run(self) -> SurveyRun:
        """What is measured of every sentence. To be asked for once heads are chosen."""
        link = linker(self.linked_by) if self.linked_by else None
        return SurveyRun(self.translator, self.direction, self.corpus, link=link, parts=self.folder, window=WINDOW)

    @property
    def _links(self) -> Path:
        return self.folder / f"{self.direction}-links.json"


def own(translator: Translator, direction: str) -> OwnSurvey:
    """The survey that is taken here. A Refusal where there are no sentences."""
    language = parse_direction(direction)[0]
    if language not in languages():
        raise Refusal(
            "This project has no sentences of its own in {language}.",
            language=language,
        )
    corpus = Corpus(OWN, lambda: ((line, "") for line in islice(sentences(language), SENTENCES)), own=True)
    return OwnSurvey(translator, direction, corpus, _folder(translator))


def _folder(translator: Translator) -> Path:
    # A process that is lent a GPU ends with its answer: files stay. The same sentences of the same weights give the
    # same sums, so that whoever asks finds what others have measured.
    return translator.scratch / "survey"

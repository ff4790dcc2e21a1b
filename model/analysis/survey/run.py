"""Run the survey of a direction: in one process or several, resumable, or in the page.

SurveyRun measures all windows of a corpus; survey_work() surveys the project's own sentences for the page;
find_survey() returns whichever survey exists.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from attention_atlas.model.analysis.alignment.linker import Linker, choose_linking_heads, linker, linking_maps
from attention_atlas.model.analysis.sentences import has_sentences, sentences
from attention_atlas.model.analysis.survey import corpus as corpora
from attention_atlas.model.analysis.survey.corpus import Corpus, CorpusStats, encode_or_empty
from attention_atlas.model.analysis.survey.sums import Sums, estimate_kinds
from attention_atlas.model.analysis.survey.window import Measures, add_repetitions, add_window
from attention_atlas.model.analysis.why.means import Means
from attention_atlas.model.files import replace_file
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.survey.survey import OWN, DirectionSurvey, Survey, to_json
from attention_atlas.model.translator import Translator

GATHERED = "gathered"  # in place of a process's number
FORMAT = 2  # of the part files; increased when their meaning changes
# In the page:
PAGE_SENTENCES, PAGE_WINDOW = 200, 4
PAGE_LINKED = 40  # sentences on which the linking heads are chosen


@dataclass(eq=False)
class SurveyRun:
    """The survey of one direction.

    ablated  the number of sentences, from the first, on which every head is ablated
    means    the mean outputs that replace ablated heads
    link     links words for the statistics of alignment; None leaves those out
    parts    a folder for finished windows; None keeps them in memory only
    window   the number of sentences in a window

    Windows are measured independently and summed exactly, so the result does not depend on which process measured
    which window. Only the machine and the number of torch's threads may change the last digits of a pass.
    """

    translator: Translator
    direction: str
    corpus: Corpus
    seed: int = 0
    ablated: int = 0
    means: Means | None = None
    link: Linker | None = None
    parts: Path | None = None
    window: int = corpora.WINDOW
    stats: CorpusStats = field(init=False)

    def __post_init__(self) -> None:
        if self.ablated and self.means is None:
            raise ValueError("to switch heads off there must be means of them: run attention-atlas means")
        self.stats = corpora.scan_corpus(self.translator, self.direction, self.corpus)
        needs_examples = not self.corpus.own and has_sentences(self.direction)
        self.lines = sentences(parse_direction(self.direction)[0]) if needs_examples else ()
        self.windows = -(-self.stats.pairs // self.window) + -(-len(self.lines) // self.window) + 1

    def work(self, rank: int = 0, world: int = 1, *, watch: Callable[[int], object] = lambda done: None) -> Sums:
        """Measure this process's share of the windows that no part contains, and return their sums.

        With a folder of parts, the sums are also written there for result(). watch is called with the number of
        windows finished so far.
        """
        _, done = self._load([path for path in self._paths() if self._is_gathered(path)])  # others may still be growing
        mine = [number for number in range(self.windows) if number not in done][rank::world]
        sums = Sums.empty(self.seed)
        for finished in self.measure(sums, mine, f"{self.direction}-{rank}"):
            watch(len(done) + finished)
        return sums

    def measure(self, sums: Sums, mine: Collection[int] | None = None, name: str = "") -> Iterator[int]:
        """Measure windows (by default all) and add them to sums; yield the number of finished windows.

        name: of the part file that is updated after each window, if there is a folder of parts.
        """
        stats, finished = self.stats, []
        measures = Measures(stats.counts, stats.frequent, self.ablated, self.means, link=self.link)
        selected = set(range(self.windows) if mine is None else mine)
        windows = itertools.chain(
            corpora.read_windows(self.translator, self.direction, self.corpus, self.window),
            corpora.read_examples(self.translator, self.direction, self.lines, self.stats.pairs, self.window),
            [corpora.make_repetitions(self.translator, self.direction, self.stats, self.seed)],
        )
        for number, items in enumerate(windows):
            if number not in selected:
                continue
            if number == self.windows - 1:
                for start in range(0, len(items), self.window):
                    add_repetitions(sums, self.translator, items[start : start + self.window])
                    yield len(finished)
            elif items:
                add_window(sums, self.translator, self.direction, items, measures)
            finished.append(number)
            if self.parts:
                self._save(name, sums, finished)
            yield len(finished)

    def result(self, sums: Sums | None = None) -> DirectionSurvey:
        """Return the survey from these sums, by default from all parts. Raises ValueError if windows are missing."""
        if sums is None:
            sums, done = self._load()
            if len(done) < self.windows:
                raise ValueError(f"{self.windows - len(done)} of {self.windows} windows are not measured yet")
        model = self.translator.model
        return DirectionSurvey(
            self.corpus.name,
            self.stats.pairs - self.stats.skipped,
            self.stats.skipped,
            min(self.ablated, self.stats.pairs),
            self.stats.references,
            estimate_kinds(sums, model.num_layers, model.num_heads),
        )

    def gather(self) -> None:
        """Merge all parts into one, so that a later run may have another number of processes."""
        if not self.parts:
            return
        self.parts.mkdir(parents=True, exist_ok=True)
        sums, done = self._load()
        if done:
            self._save(f"{self.direction}-{GATHERED}", sums, sorted(done))
        for path in self._paths():  # if killed here, the remaining parts are skipped as contained in the gathered one
            if not done or not self._is_gathered(path):
                path.unlink()

    def _is_gathered(self, path: Path) -> bool:
        return path.stem == f"{self.direction}-{GATHERED}"

    def _paths(self) -> list[Path]:
        """Return the parts, the gathered one first, so that parts it already contains are skipped."""
        paths = self.parts.glob(f"{self.direction}-*.npz") if self.parts else ()
        return sorted(paths, key=lambda path: (not self._is_gathered(path), path))

    def _load(self, paths: list[Path] | None = None) -> tuple[Sums, set[int]]:
        """Return the sums of parts (by default all) and their windows. Parts of another corpus, model or setting are
        skipped."""
        sums, done = Sums.empty(self.seed), set()
        for path in self._paths() if paths is None else paths:
            with np.load(path, allow_pickle=False) as file:
                facts = json.loads(str(file["facts"]))
                windows = set(file["windows"].tolist())
                if facts != self._facts() or windows <= done:
                    continue
                assert not windows & done, f"{path} overlaps with other parts"
                sums.merge(Sums.empty(self.seed).restore({n: file[n] for n in file.files if ":" in n}))
                done |= windows
        return sums, done

    def _facts(self) -> dict:
        return {
            "format": FORMAT,
            "digest": self.translator.digest,
            "corpus": self.stats.fingerprint,
            "seed": self.seed,
            "ablated": self.ablated,
            "direction": self.direction,
            "link": self.link is not None,
            "means": self.means is not None and self.means.sentences,
            "lines": len(self.lines),
            "window": self.window,
        }

    def _save(self, name: str, sums: Sums, windows: list[int]) -> None:
        arrays = {**sums.arrays(), "windows": np.array(windows, np.int64), "facts": np.array(json.dumps(self._facts()))}

        def write(partial: Path) -> None:
            with open(partial, "wb") as file:
                np.savez(file, **arrays)

        replace_file(self.parts / f"{name}.npz", write)


def save(path: Path, survey: Survey) -> None:
    """Write a survey to a file atomically."""
    text = json.dumps(to_json(survey), separators=(",", ":"), ensure_ascii=False) + "\n"
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def find_survey(translator: Translator, direction: str) -> DirectionSurvey | None:
    """Return the survey stored beside the weights, or the one made in the page; None if there is neither."""
    return stored_survey(translator, direction) or survey_work(translator, direction).find()


def stored_survey(translator: Translator, direction: str) -> DirectionSurvey | None:
    """Return the survey stored beside the weights, if there is one."""
    return translator.survey.directions.get(direction) if translator.survey else None


def survey_work(translator: Translator, direction: str) -> Work[DirectionSurvey]:
    """Return the work of surveying the project's own sentences; its result is kept while the model is served. The first
    parts choose the linking heads, the last one measures induction."""

    def compute() -> Parts[DirectionSurvey]:
        lines = sentences(parse_direction(direction)[0])[:PAGE_SENTENCES]
        corpus = Corpus(OWN, lambda: ((line, "") for line in lines), own=True)
        run = SurveyRun(translator, direction, corpus, window=PAGE_WINDOW)
        texts = [text for text in lines[:PAGE_LINKED] if encode_or_empty(translator, direction, text)]
        starts, maps = range(0, len(texts), PAGE_WINDOW), []
        total = len(starts) + run.windows
        for done, start in enumerate(starts, 1):
            maps += linking_maps(translator, direction, texts[start : start + PAGE_WINDOW])
            yield done, total
        linked_by = choose_linking_heads(translator, maps)
        run.link = linker(linked_by) if linked_by else None
        sums = Sums.empty(run.seed)
        for done in run.measure(sums):
            yield len(starts) + done, total
        return replace(run.result(sums), linked_by=linked_by)

    return Work(translator, ("survey", direction), compute)

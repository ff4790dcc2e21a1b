"""A survey from its first window to its last, by one process or many, killed and resumed at will."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from attention_atlas.model.analysis.alignment.linker import Linker
from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.survey import corpus as corpora
from attention_atlas.model.analysis.survey.corpus import Corpus, Seen
from attention_atlas.model.analysis.survey.finish import kinds
from attention_atlas.model.analysis.survey.window import Measures, Sums, add, add_repetitions
from attention_atlas.model.files import replace_file
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.survey.survey import DirectionSurvey, Survey, to_json
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.translator import Translator

GATHERED = "{}-gathered"
FORMAT = 1  # of the parts: changed when what they mean changes


@dataclass(eq=False)
class SurveyRun:
    """One direction's survey. ablated: on how many of the first sentences every head is switched off, with means in its
    place. link: how sentences are aligned; None: they are not. parts: a folder for what is done so far, or None where
    it need not outlive the process.

    Windows are measured independently and summed exactly, so that the result depends neither on who measured which nor
    on when; only the number of torch's threads and the machine may change the last digits of a pass.
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
    seen: Seen = field(init=False)

    def __post_init__(self) -> None:
        if self.ablated and self.means is None:
            raise ValueError("to switch heads off there must be means of them: run attention-atlas means")
        self.seen = corpora.look(self.translator, self.direction, self.corpus)
        language = parse_direction(self.direction)[0]
        shown = not self.corpus.own and language in languages()
        self.lines = sentences(language) if shown else ()
        self.windows = -(-self.seen.pairs // self.window) + -(-len(self.lines) // self.window) + 1

    def work(self, rank: int = 0, world: int = 1, *, watch: Callable[[int], object] = lambda done: None) -> Sums:
        """Measure every world-th of the windows that no part has. Returns what this process found; with a folder of
        parts it is there, too, and result() finds it. watch hears how many windows of all are done here."""
        _, done = self._stored(self._gathered())  # what others are doing now is theirs
        mine = [number for number in range(self.windows) if number not in done][rank::world]
        sums = Sums.empty(self.seed)
        for finished in self.measuring(sums, mine, f"{self.direction}-{rank}"):
            watch(len(done) + finished)
        return sums

    def measuring(self, sums: Sums, mine: Collection[int] | None = None, name: str = "") -> Iterator[int]:
        """Measure windows, all for None, and add them to sums, with a folder of parts also into the one of this name.
        Yields how many are done."""
        seen, finished = self.seen, []
        measures = Measures(seen.counts, seen.frequent, self.ablated, self.means, link=self.link)
        wanted = set(range(self.windows) if mine is None else mine)
        for number, items in enumerate(self._windows()):
            if number not in wanted:
                continue
            if number == self.windows - 1:
                for start in range(0, len(items), self.window):
                    add_repetitions(sums, self.translator, items[start : start + self.window])
                    yield len(finished)
            elif items:
                add(sums, self.translator, self.direction, items, measures)
            finished.append(number)
            if self.parts:
                self._save(name, sums, finished)
            yield len(finished)

    def _windows(self) -> Iterator[list]:
        yield from corpora.items(self.translator, self.direction, self.corpus, self.window)
        yield from corpora.examples(self.translator, self.direction, self.lines, self.seen.pairs, self.window)
        yield corpora.repetitions(self.translator, self.direction, self.seen, self.seed)

    def result(self, sums: Sums | None = None) -> DirectionSurvey:
        """The survey, from these sums or from all parts. ValueError while windows are missing."""
        if sums is None:
            sums, done = self._stored()
            if len(done) < self.windows:
                raise ValueError(f"{self.windows - len(done)} of {self.windows} windows are not measured yet")
        model = self.translator.model
        return DirectionSurvey(
            self.corpus.name,
            self.seen.pairs - self.seen.skipped,
            self.seen.skipped,
            min(self.ablated, self.seen.pairs),
            self.seen.references,
            kinds(sums, model.num_layers, model.num_heads),
        )

    def gather(self) -> None:
        """Make one part of all, before processes divide what is left: a later run may have another number of them."""
        if not self.parts:
            return
        self.parts.mkdir(parents=True, exist_ok=True)
        sums, done = self._stored()
        if done:
            self._save(GATHERED.format(self.direction), sums, sorted(done))
        for path in self._paths():  # killed here: what is left is inside the gathered one, and is passed over
            if path not in self._gathered() or not done:
                path.unlink()

    def _gathered(self) -> list[Path]:
        path = self.parts / f"{GATHERED.format(self.direction)}.npz" if self.parts else None
        return [path] if path and path.exists() else []

    def _paths(self) -> list[Path]:
        # The gathered one first: it holds whatever was not deleted after it was written.
        others = sorted(self.parts.glob(f"{self.direction}-*.npz")) if self.parts else []
        return [*self._gathered(), *(path for path in others if path not in self._gathered())]

    def _stored(self, paths: list[Path] | None = None) -> tuple[Sums, set[int]]:
        """The sums of parts, all of them for None, and the windows in them. A part of another corpus, model or setting
        is passed over."""
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
            "corpus": self.seen.fingerprint,
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


def save(path: Path, found: Survey) -> None:
    """Write it, whole or not at all."""
    text = json.dumps(to_json(found), separators=(",", ":"), ensure_ascii=False) + "\n"
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))

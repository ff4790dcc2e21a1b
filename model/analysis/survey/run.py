"""Run the survey of a direction: in one process or several, resumable, or in the page.

SurveyRun measures all windows of a corpus; survey_work() surveys the project's own sentences for the page;
find_survey() returns whichever survey exists.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from attention_atlas.model.analysis.alignment.links import choose_linking_heads, linking_maps, links
from attention_atlas.model.analysis.sentences import has_sentences, source_sentences
from attention_atlas.model.analysis.survey import corpus as corpora
from attention_atlas.model.analysis.survey.batch import Item, ablation_losses, maps_and_lengths, similarity
from attention_atlas.model.analysis.survey.batch import run as run_pass
from attention_atlas.model.analysis.survey.corpus import Corpus, CorpusStats, Repeated, encode_or_empty
from attention_atlas.model.analysis.survey.sums import Sums, estimate_kinds
from attention_atlas.model.analysis.why.means import Means
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.files import replace_file
from attention_atlas.model.serve.cores import map_over_cores
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.alignment import Voter
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.survey.cells import Measurement
from attention_atlas.model.trace.survey.survey import OWN, DirectionSurvey, Survey, to_json
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import tokens_of
from attention_atlas.model.translator import Translator

BATCH, ABLATED_BATCH = 32, 8  # an ablated batch has a row for each head of each sentence
COMPARED = 8  # heads are compared with each other on every eighth sentence
FORMAT = 2  # of the part files; increased when their meaning changes
# In the page:
PAGE_SENTENCES, PAGE_WINDOW = 200, 4
PAGE_LINKED = 40  # sentences on which the linking heads are chosen

Measurements = dict[str, Measurement]  # "kind/statistic" -> values [heads of all layers]


@dataclass(eq=False)
class SurveyRun:
    """The survey of one direction.

    ablated    the number of sentences, from the first, on which every head is ablated
    means      the mean outputs that replace ablated heads
    linked_by  the heads that link words for the statistics of alignment; without them those are left out
    parts      a folder for finished windows; None keeps them in memory only
    window     the number of sentences in a window

    Windows are measured independently and summed exactly, so the result does not depend on which process measured
    which window. Only the machine and the number of torch's threads may change the last digits of a pass.
    """

    translator: Translator
    direction: str
    corpus: Corpus
    seed: int = 0
    ablated: int = 0
    means: Means | None = None
    linked_by: tuple[Voter, ...] = ()
    parts: Path | None = None
    window: int = corpora.WINDOW
    stats: CorpusStats = field(init=False)

    def __post_init__(self) -> None:
        if self.ablated and self.means is None:
            raise ValueError("to switch heads off there must be means of them: run attention-atlas means")
        self.stats = corpora.scan_corpus(self.translator, self.direction, self.corpus)
        needs_examples = not self.corpus.own and has_sentences(self.direction)
        self.lines = source_sentences(self.direction) if needs_examples else ()
        self.gathered = f"{self.direction}-gathered"  # the name of the part that gather() makes
        self.windows = -(-self.stats.pairs // self.window) + -(-len(self.lines) // self.window) + 1

    def work(self, rank: int = 0, world: int = 1, *, watch: Callable[[int], object] = lambda done: None) -> Sums:
        """Measure this process's share of the windows that no part contains, and return their sums.

        With a folder of parts, the sums are also written there for result(). watch is called with the number of
        windows finished so far.
        """
        _, done = self._load([path for path in self._paths() if path.stem == self.gathered])  # others may be growing
        mine = [number for number in range(self.windows) if number not in done][rank::world]
        sums = Sums(self.seed)
        for finished in self.measure(sums, mine, f"{self.direction}-{rank}"):
            watch(len(done) + finished)
        return sums

    def measure(self, sums: Sums, mine: Collection[int] | None = None, name: str = "") -> Iterator[int]:
        """Measure windows (by default all) and add them to sums; yield the number of finished windows.

        name: of the part file that is updated after each window, if there is a folder of parts.
        """
        finished = []
        selected = set(range(self.windows) if mine is None else mine)
        windows = chain(
            corpora.read_windows(self.translator, self.direction, self.corpus, self.window),
            corpora.read_examples(self.translator, self.direction, self.lines, self.stats.pairs, self.window),
            [corpora.make_repetitions(self.translator, self.direction, self.stats, self.seed)],
        )
        for number, items in enumerate(windows):
            if number not in selected:
                continue
            if number == self.windows - 1:
                for start in range(0, len(items), self.window):
                    self._add_repetitions(sums, items[start : start + self.window])
                    yield len(finished)
            elif items:
                self._add_window(sums, items)
            finished.append(number)
            if self.parts:
                self._save(name, sums, finished)
            yield len(finished)

    def _add_window(self, sums: Sums, items: Sequence[Item]) -> None:
        """Measure a window of sentences and add it to the sums."""
        untranslated = [item for item in items if not item.target_ids]
        targets = self.translator.generate([item.source_ids for item in untranslated], self.direction)
        translations = {item.number: tuple(ids) for item, ids in zip(untranslated, targets)}
        items = [replace(item, target_ids=translations.get(item.number, item.target_ids)) for item in items]
        items = sorted(items, key=lambda item: (len(item.source_ids), item.number))
        batches = list(batched(items, BATCH))
        results = list(chain.from_iterable(map_over_cores(self._measure_batch, batches)))
        rows, similarities = defaultdict(list), defaultdict(list)
        in_corpus = [result for result in results if result[0].counts]
        for index, (_, measurements, by_kind) in enumerate(in_corpus):
            for name, measurement in measurements.items():
                rows[name].append((index, measurement.values, measurement.chance))
            for name, values in by_kind.items():
                similarities[name].append((index, values, 0.0))
        numbers = np.array([item.number for item, _, _ in in_corpus], np.int64)
        sums.totals.add(numbers, rows)
        sums.similarities.add(numbers, similarities)
        for item, measurements, _ in results:
            if item.line is not None:
                for name, measurement in measurements.items():
                    sums.reservoir.add(name, item.line, measurement.values)

    def _add_repetitions(self, sums: Sums, sequences: Sequence[Repeated]) -> None:
        """Measure induction on repeated random sequences of one shape and add it to the sums."""
        batch = run_pass(
            self.translator, [s.source_ids for s in sequences], [s.target_ids for s in sequences], slopes=False
        )
        rows = defaultdict(list)
        for kind in (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF):
            if kind not in batch.output.kinds:
                continue
            weights, _ = maps_and_lengths(self.translator.model, batch.output, kind)
            for index, sequence in enumerate(sequences):
                tokens = range(batch.axes(kind, index)[0])
                start = sequence.start[kind.side == Side.DECODER]
                induction = cells.induction_cells(kind, tokens, tokens, start, sequence.period)
                allowed = cells.allowed_cells(kind, len(tokens), len(tokens))
                maps = weights[index, ..., : len(tokens), : len(tokens)]
                value = cells.measure_weights(maps, allowed, {"induction": induction})["induction"]
                rows[f"{kind.value}/induction"].append((index, value.values.reshape(-1), value.chance))
        sums.totals.add(np.array([sequence.number for sequence in sequences]), rows)

    def _measure_batch(self, items: Sequence[Item]) -> list[tuple[Item, Measurements, dict[str, np.ndarray]]]:
        """Return each sentence with its measurements and, for every eighth, the similarities of heads by kind."""
        batch = run_pass(self.translator, [i.source_ids for i in items], [i.target_ids for i in items])
        losses = self._ablate(items)
        maps = {
            kind: maps_and_lengths(self.translator.model, batch.output, kind)
            for kind in self.translator.model.num_layers
        }
        results = []
        for row, item in enumerate(items):
            measurements, similarities = {}, {}
            tokenizer = self.translator.tokenizer
            source = tokenizer.source_tokens(item.source_ids, item.text)
            inputs = tokenizer.tokens((tokenizer.begin_id, *item.target_ids[:-1]))
            rarest = self._rarest(item, source)
            for kind, (weights, lengths) in maps.items():
                queries, keys = batch.axes(kind, row)
                own_maps = weights[row, ..., :queries, :keys]
                linked = None
                if kind is AttentionKind.CROSS and self.linked_by:
                    linked = links(source, tokenizer.tokens(item.target_ids), own_maps, self.linked_by)
                tokens = tokens_of(kind, source, inputs)
                by_name = cells.measure(kind, own_maps, *tokens, lengths[row, ..., :keys], rarest, linked)
                by_name["gradient"] = Measurement(np.abs(batch.slopes[kind][row]), 0.0)
                if item.number in losses:
                    by_name["ablation"] = Measurement(losses[item.number][kind], 0.0)
                for name, measurement in by_name.items():
                    values = measurement.values.reshape(-1)
                    measurements[f"{kind.value}/{name}"] = Measurement(values, measurement.chance)
                if item.counts and item.number % COMPARED == 0:
                    allowed = cells.allowed_cells(kind, queries, keys)
                    similarities[kind.value] = similarity(own_maps.reshape(-1, queries, keys), allowed).reshape(-1)
            results.append((item, measurements, similarities))
        return results

    def _rarest(self, item: Item, source: Sequence[str]) -> frozenset[int]:
        """Return the positions of the rarest of a sentence's rare tokens."""
        counts = {
            position: self.stats.counts[i]
            for position, (i, token) in enumerate(zip(item.source_ids, source))
            if not is_symbol(token) and i not in self.stats.frequent
        }
        return frozenset(position for position, count in counts.items() if count == min(counts.values()))

    def _ablate(self, items: Sequence[Item]) -> dict[int, dict]:
        """Return, by sentence number, kind -> losses [layers, heads] of the sentences on which heads are ablated."""
        ablated = [item for item in items if item.counts and item.number < self.ablated]
        losses = {}
        for part in batched(ablated, ABLATED_BATCH):
            batch = run_pass(self.translator, [i.source_ids for i in part], [i.target_ids for i in part], slopes=False)
            by_kind = ablation_losses(self.translator.model, batch, self.means)
            for row, item in enumerate(part):
                losses[item.number] = {kind: values[row] for kind, values in by_kind.items()}
        return losses

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
            self.linked_by,
        )

    def gather(self) -> None:
        """Merge all parts into one, so that a later run may have another number of processes. Needs `parts`."""
        self.parts.mkdir(parents=True, exist_ok=True)
        sums, done = self._load()
        if done:
            self._save(self.gathered, sums, sorted(done))
        for path in self._paths():  # if killed here, the remaining parts are skipped as contained in the gathered one
            if not done or path.stem != self.gathered:
                path.unlink()

    def _paths(self) -> list[Path]:
        """Return the parts, the gathered one first, so that parts it already contains are skipped."""
        paths = self.parts.glob(f"{self.direction}-*.npz") if self.parts else ()
        return sorted(paths, key=lambda path: (path.stem != self.gathered, path))

    def _load(self, paths: list[Path] | None = None) -> tuple[Sums, set[int]]:
        """Return the sums of parts (by default all) and their windows. Parts of another corpus, model or setting are
        skipped."""
        sums, done = Sums(self.seed), set()
        for path in self._paths() if paths is None else paths:
            with np.load(path, allow_pickle=False) as file:
                facts = json.loads(str(file["facts"]))
                windows = set(file["windows"].tolist())
                if facts != self._facts() or windows <= done:
                    continue
                assert not windows & done, f"{path} overlaps with other parts"
                sums.merge(Sums(self.seed).restore({n: file[n] for n in file.files if ":" in n}))
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
            "link": bool(self.linked_by),
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
        lines = source_sentences(direction)[:PAGE_SENTENCES]
        corpus = Corpus(OWN, lambda: ((line, "") for line in lines), own=True)
        run = SurveyRun(translator, direction, corpus, window=PAGE_WINDOW)
        texts = [text for text in lines[:PAGE_LINKED] if encode_or_empty(translator, direction, text)]
        starts, maps = range(0, len(texts), PAGE_WINDOW), []
        total = len(starts) + run.windows
        for done, start in enumerate(starts, 1):
            maps += linking_maps(translator, direction, texts[start : start + PAGE_WINDOW])
            yield done, total
        run.linked_by = choose_linking_heads(translator, maps)
        sums = Sums(run.seed)
        for done in run.measure(sums):
            yield len(starts) + done, total
        return run.result(sums)

    return Work(translator, ("survey", direction), compute)

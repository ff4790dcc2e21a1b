"""What is found in a window of sentences, and added to the sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from attention_atlas.model.analysis.alignment.linker import Linker
from attention_atlas.model.analysis.survey import ablation
from attention_atlas.model.analysis.survey.batch import Item, Pass, maps_and_lengths, run, similarity
from attention_atlas.model.analysis.survey.corpus import Repeated
from attention_atlas.model.analysis.survey.reservoir import Reservoir
from attention_atlas.model.analysis.survey.totals import Totals
from attention_atlas.model.serve.cores import map_over_cores
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.survey.cells import Measurement, SentenceFacts
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import tokens_of
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.translator import Translator

BATCH, ABLATED_BATCH = 32, 8  # the second one's rows are as many times more as a layer has heads
COMPARED = 8  # every so manieth sentence is one on which heads are compared with each other

Result = dict[str, Measurement]  # "kind/statistic" -> values [heads of all layers]


@dataclass(frozen=True, eq=False)
class Measures:
    """What is measured of each sentence. counts: how often the corpus has each source id; frequent: those ids that are
    not rare. ablated: of how many of the first sentences heads are switched off, one by one, with these means in their
    place. link: None: without alignments."""

    counts: Counter
    frequent: frozenset[int]
    ablated: int = 0
    means: Means | None = None
    slopes: bool = True
    link: Linker | None = None


@dataclass(eq=False)
class Sums:
    """What a survey adds up: by statistic, of every two heads, and examples."""

    totals: Totals
    similarities: Totals
    reservoir: Reservoir

    @classmethod
    def empty(cls, seed: int) -> Sums:
        return cls(Totals(seed), Totals(seed, 0), Reservoir())

    def merge(self, other: Sums) -> None:
        """Add what another process found."""
        self.totals.merge(other.totals)
        self.similarities.merge(other.similarities)
        self.reservoir.merge(other.reservoir)

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        return {
            f"{part}:{name}": array
            for part in ("totals", "similarities", "reservoir")
            for name, array in getattr(self, part).arrays().items()
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> Sums:
        """From a file."""
        for part in ("totals", "similarities", "reservoir"):
            getattr(self, part).restore(
                {name.removeprefix(f"{part}:"): array for name, array in arrays.items() if name.startswith(f"{part}:")}
            )
        return self


def add(sums: Sums, translator: Translator, direction: str, items: Sequence[Item], measures: Measures) -> None:
    """Measure a window and add it."""
    items = sorted(_translated(translator, direction, items), key=lambda item: (len(item.source_ids), item.number))
    batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
    found = [
        row for rows in map_over_cores(lambda batch: _measured(translator, batch, measures), batches) for row in rows
    ]
    rows, alike = defaultdict(list), defaultdict(list)
    counted = [row for row in found if row[0].counts]
    for index, (_, result, pairs) in enumerate(counted):
        for name, value in result.items():
            rows[name].append((index, value.values, value.chance))
        for name, value in pairs.items():
            alike[name].append((index, value, 0.0))
    numbers = np.array([item.number for item, _, _ in counted], np.int64)
    sums.totals.add(numbers, rows)
    sums.similarities.add(numbers, alike)
    for item, result, _ in found:
        if item.line is not None:
            for name, value in result.items():
                sums.reservoir.add(name, item.line, value.values)


def add_repetitions(sums: Sums, translator: Translator, sequences: Sequence[Repeated]) -> None:
    """Measure induction on repeated random sequences of one shape."""
    found = run(translator, [s.source_ids for s in sequences], [s.target_ids for s in sequences], slopes=False)
    rows = defaultdict(list)
    for kind in (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF):
        if kind not in found.output.kinds:
            continue
        weights, _ = maps_and_lengths(translator.model, found.output, kind)
        for index, sequence in enumerate(sequences):
            tokens = range(found.axes(kind, index)[0])
            place = cells.induction_cells(
                kind, tokens, tokens, sequence.first[kind.side == Side.DECODER], sequence.period
            )
            allowed = cells.allowed_cells(kind, len(tokens), len(tokens))
            own = weights[index, ..., : len(tokens), : len(tokens)]
            value = cells.measure_weights(own, allowed, {"induction": place})["induction"]
            rows[f"{kind.value}/induction"].append((index, value.values.reshape(-1), value.chance))
    sums.totals.add(np.array([sequence.number for sequence in sequences]), rows)


def _translated(translator: Translator, direction: str, items: Sequence[Item]) -> list[Item]:
    without = [item for item in items if not item.target_ids]
    targets = translator.generate([list(item.source_ids) for item in without], direction) if without else []
    written = {item.number: tuple(ids) for item, ids in zip(without, targets)}
    return [replace(item, target_ids=written.get(item.number, item.target_ids)) for item in items]


def _measured(translator: Translator, items: Sequence[Item], measures: Measures) -> list[tuple[Item, Result, dict]]:
    """Of each item its statistics, and where it is one to compare on, how alike each two heads of a kind are."""
    found = run(translator, [i.source_ids for i in items], [i.target_ids for i in items], slopes=measures.slopes)
    losses = _losses(translator, items, measures)
    maps = {kind: maps_and_lengths(translator.model, found.output, kind) for kind in translator.model.num_layers}
    rows = []
    for row, item in enumerate(items):
        sentence = _Sentence(translator, item, found, row)
        result, pairs = {}, {}
        for kind, (weights, lengths) in maps.items():
            queries, keys = found.axes(kind, row)
            own = weights[row, ..., :queries, :keys]
            facts = sentence.facts(measures, own) if kind is AttentionKind.CROSS else sentence.facts(measures)
            named = cells.measure(kind, own, *sentence.tokens(kind), lengths[row, ..., :keys], facts)
            if found.slopes:
                named["gradient"] = Measurement(np.abs(found.slopes[kind][row]), 0.0)
            if item.number in losses:
                named["ablation"] = Measurement(losses[item.number][kind], 0.0)
            result |= {f"{kind.value}/{name}": Measurement(f.values.reshape(-1), f.chance) for name, f in named.items()}
            if item.counts and item.number % COMPARED == 0:
                pairs[kind.value] = similarity(
                    own.reshape(-1, queries, keys), cells.allowed_cells(kind, queries, keys)
                ).reshape(-1)
        rows.append((item, result, pairs))
    return rows


def _losses(translator: Translator, items: Sequence[Item], measures: Measures) -> dict[int, dict]:
    chosen = [item for item in items if item.counts and item.number < measures.ablated]
    found = {}
    for start in range(0, len(chosen), ABLATED_BATCH):
        part = chosen[start : start + ABLATED_BATCH]
        plain = run(translator, [i.source_ids for i in part], [i.target_ids for i in part], slopes=False)
        by_kind = ablation.losses(translator.model, plain, measures.means)
        found |= {item.number: {kind: values[row] for kind, values in by_kind.items()} for row, item in enumerate(part)}
    return found


@dataclass(frozen=True, eq=False)
class _Sentence:
    translator: Translator
    item: Item
    found: Pass
    row: int

    def tokens(self, kind: AttentionKind) -> tuple[Sequence[str], Sequence[str]]:
        tokenizer = self.translator.tokenizer
        source = tokenizer.source_tokens(self.item.source_ids, self.item.text)
        inputs = tokenizer.tokens((tokenizer.begin_id, *self.item.target_ids[:-1]))
        return tokens_of(kind, source, inputs)

    def facts(self, measures: Measures, cross: np.ndarray | None = None) -> SentenceFacts:
        """cross: this sentence's weights of cross-attention, where alignments are wanted."""
        source, ids = self.tokens(AttentionKind.ENCODER_SELF)[0], self.item.source_ids
        rare = {
            at: measures.counts[i]
            for at, (i, token) in enumerate(zip(ids, source))
            if not is_symbol(token) and i not in measures.frequent
        }
        rarest = frozenset(at for at, count in rare.items() if count == min(rare.values()))
        if cross is None or measures.link is None:
            return SentenceFacts(rarest)
        return SentenceFacts(
            rarest, measures.link(source, self.translator.tokenizer.tokens(self.item.target_ids), cross)
        )

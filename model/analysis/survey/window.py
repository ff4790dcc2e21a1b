"""Measure a window of sentences and add it to the sums of a survey."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from attention_atlas.model.analysis.alignment.linker import Linker
from attention_atlas.model.analysis.survey.batch import Item, ablation_losses, maps_and_lengths, run, similarity
from attention_atlas.model.analysis.survey.corpus import Repeated
from attention_atlas.model.analysis.survey.sums import Sums
from attention_atlas.model.analysis.why.means import Means
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.serve.cores import map_over_cores
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.survey.cells import Measurement, SentenceFacts
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import tokens_of
from attention_atlas.model.translator import Translator

BATCH, ABLATED_BATCH = 32, 8  # an ablated batch has a row for each head of each sentence
COMPARED = 8  # heads are compared with each other on every eighth sentence

Measurements = dict[str, Measurement]  # "kind/statistic" -> values [heads of all layers]


@dataclass(frozen=True, eq=False)
class Measures:
    """The measurements to make for each sentence.

    counts    the frequency of each source id in the corpus
    frequent  the source ids that are not rare
    ablated   the number of sentences, from the first, on which heads are ablated one by one
    means     the mean outputs that replace ablated heads
    slopes    whether to take gradients of the gates
    link      links words for the statistics of alignment; None leaves those out
    """

    counts: Counter
    frequent: frozenset[int]
    ablated: int = 0
    means: Means | None = None
    slopes: bool = True
    link: Linker | None = None


def add_window(sums: Sums, translator: Translator, direction: str, items: Sequence[Item], measures: Measures) -> None:
    """Measure a window of sentences and add it to the sums."""
    untranslated = [item for item in items if not item.target_ids]
    targets = translator.generate([list(item.source_ids) for item in untranslated], direction) if untranslated else []
    translations = {item.number: tuple(ids) for item, ids in zip(untranslated, targets)}
    items = [replace(item, target_ids=translations.get(item.number, item.target_ids)) for item in items]
    items = sorted(items, key=lambda item: (len(item.source_ids), item.number))
    batches = list(batched(items, BATCH))
    results = [
        row for rows in map_over_cores(lambda batch: _measure(translator, batch, measures), batches) for row in rows
    ]
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


def add_repetitions(sums: Sums, translator: Translator, sequences: Sequence[Repeated]) -> None:
    """Measure induction on repeated random sequences of one shape and add it to the sums."""
    batch = run(translator, [s.source_ids for s in sequences], [s.target_ids for s in sequences], slopes=False)
    rows = defaultdict(list)
    for kind in (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF):
        if kind not in batch.output.kinds:
            continue
        weights, _ = maps_and_lengths(translator.model, batch.output, kind)
        for index, sequence in enumerate(sequences):
            tokens = range(batch.axes(kind, index)[0])
            start = sequence.start[kind.side == Side.DECODER]
            induction = cells.induction_cells(kind, tokens, tokens, start, sequence.period)
            allowed = cells.allowed_cells(kind, len(tokens), len(tokens))
            maps = weights[index, ..., : len(tokens), : len(tokens)]
            value = cells.measure_weights(maps, allowed, {"induction": induction})["induction"]
            rows[f"{kind.value}/induction"].append((index, value.values.reshape(-1), value.chance))
    sums.totals.add(np.array([sequence.number for sequence in sequences]), rows)


def _measure(
    translator: Translator, items: Sequence[Item], measures: Measures
) -> list[tuple[Item, Measurements, dict[str, np.ndarray]]]:
    """Return each sentence with its measurements and, for every eighth, the similarities of heads by kind."""
    batch = run(translator, [i.source_ids for i in items], [i.target_ids for i in items], slopes=measures.slopes)
    losses = _ablate(translator, items, measures)
    maps = {kind: maps_and_lengths(translator.model, batch.output, kind) for kind in translator.model.num_layers}
    results = []
    for row, item in enumerate(items):
        measurements, similarities = {}, {}
        tokenizer = translator.tokenizer
        source = tokenizer.source_tokens(item.source_ids, item.text)
        inputs = tokenizer.tokens((tokenizer.begin_id, *item.target_ids[:-1]))
        rarest = _rarest(item, source, measures)
        for kind, (weights, lengths) in maps.items():
            queries, keys = batch.axes(kind, row)
            own_maps = weights[row, ..., :queries, :keys]
            facts = SentenceFacts(rarest)
            if kind is AttentionKind.CROSS and measures.link is not None:
                facts = SentenceFacts(rarest, measures.link(source, tokenizer.tokens(item.target_ids), own_maps))
            by_name = cells.measure(kind, own_maps, *tokens_of(kind, source, inputs), lengths[row, ..., :keys], facts)
            if batch.slopes:
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


def _rarest(item: Item, source: Sequence[str], measures: Measures) -> frozenset[int]:
    """Return the positions of the rarest of a sentence's rare tokens."""
    counts = {
        position: measures.counts[i]
        for position, (i, token) in enumerate(zip(item.source_ids, source))
        if not is_symbol(token) and i not in measures.frequent
    }
    return frozenset(position for position, count in counts.items() if count == min(counts.values()))


def _ablate(translator: Translator, items: Sequence[Item], measures: Measures) -> dict[int, dict]:
    """Return, by sentence number, kind -> losses [layers, heads] of the sentences on which heads are ablated."""
    ablated = [item for item in items if item.counts and item.number < measures.ablated]
    losses = {}
    for part in batched(ablated, ABLATED_BATCH):
        batch = run(translator, [i.source_ids for i in part], [i.target_ids for i in part], slopes=False)
        by_kind = ablation_losses(translator.model, batch, measures.means)
        for row, item in enumerate(part):
            losses[item.number] = {kind: values[row] for kind, values in by_kind.items()}
    return losses

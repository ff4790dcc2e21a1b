"""Contrastive pairs: is the right translation more probable than one with a single mistake? And whose heads know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.analysis.survey import ablation, batch
from attention_atlas.model.analysis.why import averages
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.truth.benchmark import Bench, Benchmark

BATCH = 4  # pairs whose heads are switched off one by one, at once
HEADS_ON = 32  # pairs of each phenomenon on which they are
Triple = tuple[str, str, str]  # source, right, wrong


def measure(benchmark: Benchmark, bench: Bench) -> dict:
    """By phenomenon: pairs, and the share where the right one is more probable, by the sum and by the mean of its
    tokens' log-probabilities; and what each head, switched off, costs (float [layers, heads], nats of the margin)."""
    found = {}
    for phenomenon, files in benchmark.options["phenomena"].items():
        rows = [tuple(row) for file in files for row in bench.rows(bench.data / benchmark.data / file)]
        triples = [t for t in rows if all(bench.fits(t[0], target) for target in t[1:])][: bench.limit]
        found[phenomenon] = {**preferred(bench, triples), "heads": by_head(bench, spread(triples, HEADS_ON))}
    return {"phenomena": found, "pairs": sum(one["pairs"] for one in found.values())}


def spread(rows: Sequence, count: int) -> list:
    """So many rows, evenly from all."""
    return [rows[at] for at in np.unique(np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(int))]


def ids_of(bench: Bench, triples: Sequence[Triple]) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    translator, direction = bench.translator, bench.direction
    sources = [translator.encode(source, direction) for source, *_ in triples]
    return sources, *([translator.encode_target(t[side], direction) for t in triples] for side in (1, 2))


def preferred(bench: Bench, triples: Sequence[Triple]) -> dict:
    """How often the right one wins, of ties half."""
    sources, *sides = ids_of(bench, triples)
    right, wrong = (bench.translator.log_probabilities(sources, side) for side in sides)

    def share(total) -> float:
        ahead = np.array([total(a) - total(b) for a, b in zip(right, wrong)])
        return round(float((ahead > 0).mean() + (ahead == 0).mean() / 2), 4)

    return {"pairs": len(triples), "sum": share(np.sum), "mean": share(np.mean)}


def by_head(bench: Bench, triples: Sequence[Triple]) -> dict[str, list]:
    """What each head, its mean output in its place, takes from the margin of the right translation, mean over pairs.
    Empty where the model has no means."""
    translator = bench.translator
    path = translator.folder / averages.FILE
    if not path.is_file():
        return {}
    means, total = averages.load(path, translator), None
    for start in bench.progress(range(0, len(triples), BATCH), "heads"):
        sources, *sides = ids_of(bench, triples[start : start + BATCH])
        for sign, targets in zip((1, -1), sides):
            passed = batch.run(translator, sources, targets, slopes=False)
            lengths = np.array(passed.target_lengths)[:, None, None]
            lost = ablation.losses(translator.model, passed, means)
            part = {kind: sign * (values * lengths).sum(0) for kind, values in lost.items()}
            total = part if total is None else {kind: total[kind] + part[kind] for kind in part}
    return {kind.value: np.round(values / len(triples), 3).tolist() for kind, values in total.items()}


def markdown(found: dict) -> str:
    """A table of measure()'s values."""
    lines = [
        f"{found['pairs']} pairs: how often the right one is the more probable, by the sum of its tokens' "
        "log-probabilities, which favours what is short, and by their mean; and the head whose mean output in its "
        "place costs its margin most.\n",
        "| phenomenon | pairs | by sum | by mean | costliest head (nats) |",
        "|---|---|---|---|---|",
    ]
    for name, one in found["phenomena"].items():
        lines.append(f"| {name} | {one['pairs']} | {one['sum']:.2f} | {one['mean']:.2f} | {costliest(one['heads'])} |")
    return "\n".join(lines)


def costliest(heads: dict[str, list]) -> str:
    """The head that costs most, in words; a dash where none was switched off."""
    best = max(
        (
            (np.max(values), kind, np.unravel_index(np.argmax(values), np.shape(values)))
            for kind, values in heads.items()
        ),
        default=None,
        key=lambda one: one[0],
    )
    if best is None:
        return "–"
    cost, kind, (layer, head) = best
    return f"{AttentionKind(kind).value.replace('_', ' ')} {layer + 1}.{head + 1} ({cost:.2f})"

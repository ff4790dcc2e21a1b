"""Compare the probability of right translations and of ones with a single mistake, and find the heads that decide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.analysis.survey import batch
from attention_atlas.model.analysis.why.means import FILE as MEANS_FILE
from attention_atlas.model.analysis.why.means import load_means
from attention_atlas.model.truth.benchmark import Bench, Benchmark

BATCH = 4  # pairs in one pass, for ablating heads
MAX_ABLATED = 32  # pairs of each phenomenon on which heads are ablated
Triple = tuple[str, str, str]  # source, right, wrong


def measure(benchmark: Benchmark, bench: Bench) -> dict:
    """Return, for each phenomenon, how often the right translation is more probable and what each head contributes.

    "sum" and "mean" are shares of the pairs, by the sum and by the mean of the tokens' log-probabilities; "heads" is
    what ablating each head costs, in nats of the margin [layers, heads].
    """
    phenomena = {}
    for phenomenon, files in benchmark.options["phenomena"].items():
        rows = [tuple(row) for file in files for row in bench.rows(bench.data / benchmark.data / file)]
        triples = [t for t in rows if all(bench.fits(t[0], target) for target in t[1:])][: bench.limit]
        phenomena[phenomenon] = {
            **preference(bench, triples),
            "heads": head_costs(bench, spread_rows(triples, MAX_ABLATED)),
        }
    return {"phenomena": phenomena, "pairs": sum(values["pairs"] for values in phenomena.values())}


def spread_rows(rows: Sequence, count: int) -> list:
    """Return at most `count` rows, evenly spaced."""
    return [rows[i] for i in np.unique(np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(int))]


def encode_triples(bench: Bench, triples: Sequence[Triple]) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Return the ids of sources, right targets and wrong targets."""
    translator, direction = bench.translator, bench.direction
    sources = [translator.encode(source, direction) for source, *_ in triples]
    return sources, *([translator.encode_target(t[side], direction) for t in triples] for side in (1, 2))


def preference(bench: Bench, triples: Sequence[Triple]) -> dict:
    """Return the share of pairs whose right translation is more probable; ties count half."""
    sources, *sides = encode_triples(bench, triples)
    right, wrong = (bench.translator.log_probabilities(sources, side) for side in sides)

    def share(total) -> float:
        ahead = np.array([total(a) - total(b) for a, b in zip(right, wrong)])
        return round(float((ahead > 0).mean() + (ahead == 0).mean() / 2), 4)

    return {"pairs": len(triples), "sum": share(np.sum), "mean": share(np.mean)}


def head_costs(bench: Bench, triples: Sequence[Triple]) -> dict[str, list]:
    """Return what the margin of the right translation loses if a head's output is replaced by its mean.

    The mean over pairs, by kind of attention [layers, heads]; {} for a model without means of heads.
    """
    translator = bench.translator
    path = translator.folder / MEANS_FILE
    if not path.is_file():
        return {}
    means, total = load_means(path, translator), None
    for start in bench.progress(range(0, len(triples), BATCH), "heads"):
        sources, *sides = encode_triples(bench, triples[start : start + BATCH])
        for sign, targets in zip((1, -1), sides):
            passed = batch.run(translator, sources, targets, slopes=False)
            lengths = np.array(passed.target_lengths)[:, None, None]
            lost = batch.ablation_losses(translator.model, passed, means)
            part = {kind: sign * (values * lengths).sum(0) for kind, values in lost.items()}
            total = part if total is None else {kind: total[kind] + part[kind] for kind in part}
    return {kind.value: np.round(values / len(triples), 3).tolist() for kind, values in total.items()}


def markdown(values: dict) -> str:
    """Return a table of measure()'s values."""
    lines = [
        f"{values['pairs']} pairs: how often the right one is the more probable, by the sum of its tokens' "
        "log-probabilities, which favours what is short, and by their mean; and the head whose mean output in its "
        "place costs its margin most.\n",
        "| phenomenon | pairs | by sum | by mean | costliest head (nats) |",
        "|---|---|---|---|---|",
    ]
    for name, row in values["phenomena"].items():
        head = costliest_head(row["heads"])
        lines.append(f"| {name} | {row['pairs']} | {row['sum']:.2f} | {row['mean']:.2f} | {head} |")
    return "\n".join(lines)


def costliest_head(heads: dict[str, list]) -> str:
    """Return the name and the cost of the head that costs most; a dash if none was ablated."""
    if not heads:
        return "–"
    kind, costs = max(heads.items(), key=lambda item: np.max(item[1]))
    layer, head = np.unravel_index(np.argmax(costs), np.shape(costs))
    return f"{kind.replace('_', ' ')} {layer + 1}.{head + 1} ({np.max(costs):.2f})"

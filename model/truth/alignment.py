"""Word links beside links by hand: every head, chosen heads, both directions together, and statistical aligners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from attention_atlas.model.align import WAYS, Aligner, described, link, read_pairs, scored
from attention_atlas.model.analysis.alignment.choose import (
    all_voters,
    encode_words,
    link_by_rows,
    score_maps,
    sum_heads,
)
from attention_atlas.model.trace.alignment import (
    AlignmentScore,
    Gold,
    Links,
    RowToken,
    parse_links,
    pool_scores,
    score_links,
    transpose_links,
)
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.truth.benchmark import Bench, Benchmark

GOLD = "gold"
CHOSEN_ON = 100  # sentences, whose links by hand are not asked


def measure(benchmark: Benchmark, bench: Bench) -> dict:
    """Alignment error rates in percent, pooled over the sentences. ValueError where the files do not fit together."""
    folder, reverse = bench.data / benchmark.data, bench.reverse()
    gold = sentences(folder, bench.languages)[: bench.limit]
    pairs, golds = [pair for pair, _ in gold], [links for _, links in gold]
    aligner = Aligner(bench.translator, bench.direction, reverse)
    chosen = aligner.choose(pairs[:CHOSEN_ON])
    maps = score_maps(aligner.translator, [encode_words(aligner.translator, bench.direction, *pair) for pair in pairs])
    others = reverse and score_maps(reverse, [encode_words(reverse, aligner.back, *pair[::-1]) for pair in pairs])

    def rate(found: Sequence[Links]) -> float:
        return _percent(pool_scores(map(score_links, found, golds)))

    def table(read: Callable[[dict, RowToken, int], Links], width: int) -> dict[str, list]:
        layers = range(bench.translator.model.num_layers[AttentionKind.CROSS])
        return {
            row.value: [[rate([read(one, row, layer, at) for one in maps]) for at in range(width)] for layer in layers]
            for row in RowToken
        }

    heads = bench.translator.model.num_heads[AttentionKind.CROSS]
    every = all_voters(bench.translator.model.num_layers[AttentionKind.CROSS], heads)
    by_place = {(v.row, v.layer, v.head): [v] for v in every if not v.by_length}
    return {
        "sentences": len(pairs),
        "reverse": reverse.name if reverse else None,
        "heads": table(
            lambda one, row, layer, head: link_by_rows(sum_heads(one, by_place[row, layer, head])),
            heads,
        ),
        "means": {
            row: [values[0] for values in rows]
            for row, rows in table(
                lambda one, row, layer, _: link_by_rows(one[row, False][layer, :, :, :-1].mean(0)), 1
            ).items()
        },
        "chosen_heads": described(chosen),
        "chosen": {how: rate(link(maps, others, chosen, how)) for how in WAYS},
        "diagonal": rate([diagonal(*map(len, pair)) for pair in pairs]),
        "others": others_rates(benchmark, folder),
        "published": benchmark.options.get("published", {}),
    }


def others_rates(benchmark: Benchmark, folder: Path) -> dict[str, float]:
    """The error rates of links that others left beside the gold, all lines of it."""
    return {
        name: _percent(
            scored(
                folder / f"{GOLD}.talp",
                folder / one["file"],
                gold_first=1,
                links_first=0,
                reversed_links=one.get("reversed", False),
            )
        )
        for name, one in benchmark.options.get("others", {}).items()
    }


def _percent(found: AlignmentScore) -> float:
    return round(100 * found.error_rate, 2)


def sentences(folder: Path, languages: Sequence[str]) -> list[tuple[tuple[list[str], list[str]], Gold]]:
    """Words of both sides with their links, source first. The links' own first language is the one that comes first by
    name. ValueError for lines that do not belong together."""
    lines = (folder / f"{GOLD}.talp").read_text(encoding="utf-8").splitlines()
    pairs = list(read_pairs(*(folder / f"{GOLD}.{language}" for language in languages)))
    if len(lines) != len(pairs):
        raise ValueError(f"{folder}: {len(pairs)} sentences and {len(lines)} lines of links")
    golds = [parse_links(line, first=1) for line in lines]
    if list(languages) != sorted(languages):
        golds = [Gold(transpose_links(gold.sure), transpose_links(gold.possible)) for gold in golds]
    return [(pair, gold) for pair, gold in zip(pairs, golds) if all(pair)]


def diagonal(sources: int, targets: int) -> Links:
    """Each target word with the source word as far along its sentence."""
    return frozenset((round(target * (sources - 1) / max(1, targets - 1)), target) for target in range(targets))


def markdown(found: dict) -> str:
    """Two tables of measure()'s values, in percent."""
    heads, means = found["heads"], found["means"]
    lines = [
        "| layer | row read: mean of heads | best head | row predicted: mean of heads | best head |",
        "|---|---|---|---|---|",
    ]
    for layer in range(len(means[RowToken.READ.value])):
        cells = [f"{v:.1f}" for row in RowToken for v in (means[row.value][layer], min(heads[row.value][layer]))]
        lines.append(f"| {layer + 1} | {' | '.join(cells)} |")
    beside = {f"chosen heads, {how}": rate for how, rate in found["chosen"].items()}
    beside |= {"the diagonal": found["diagonal"], **{f"{name}, these lines": v for name, v in found["others"].items()}}
    beside |= {f"{name}, published on the whole set": value for name, value in found["published"].items()}
    rows = "\n".join(f"| {name} | {value:.1f} |" for name, value in beside.items())
    both = f"with {found['reverse']} for the other direction" if found["reverse"] else "of this direction alone"
    return "\n".join(
        [
            f"{found['sentences']} sentences; alignment error rate in percent, the best head of a layer chosen on the "
            f"same ones, the chosen heads {both}, without links by hand.\n",
            *lines,
            f"\n| links | AER |\n|---|---|\n{rows}",
        ]
    )

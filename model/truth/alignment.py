"""Compare word links with links by hand: of every head, chosen heads, both directions, and statistical aligners."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attention_atlas.model.align import MODES, Aligner, describe_heads, link_words, read_pairs, score_files
from attention_atlas.model.analysis.alignment.links import link_by_rows, sum_heads
from attention_atlas.model.trace.alignment import (
    AlignmentScore,
    Gold,
    Links,
    RowToken,
    Voter,
    parse_links,
    pool_scores,
    score_links,
    transpose_links,
)
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.truth.benchmark import Bench, Benchmark

GOLD = "gold"
CHOOSE_ON = 100  # sentences on which heads are chosen, without links by hand


def measure(benchmark: Benchmark, bench: Bench) -> dict:
    """Return alignment error rates in percent, pooled over the sentences. Raises ValueError for inconsistent files."""
    folder, reverse = bench.data / benchmark.data, bench.reverse()
    gold = sentences(folder, bench.languages)[: bench.limit]
    pairs, golds = [pair for pair, _ in gold], [links for _, links in gold]
    aligner = Aligner(bench.translator, bench.direction, reverse)
    aligning_heads = aligner.choose_heads(pairs[:CHOOSE_ON])
    maps, back_maps = aligner.score_maps(pairs), aligner.score_back(pairs)

    def rate(links: Sequence[Links]) -> float:
        return _percent(pool_scores(map(score_links, links, golds)))

    model = bench.translator.model
    layers, heads = range(model.num_layers[AttentionKind.CROSS]), range(model.num_heads[AttentionKind.CROSS])

    def rate_head(row: RowToken, layer: int, head: int) -> float:
        voter = Voter(layer, head, row, by_length=False)
        return rate([link_by_rows(sum_heads(sentence, [voter])) for sentence in maps])

    def rate_mean(row: RowToken, layer: int) -> float:
        return rate([link_by_rows(sentence[row, False][layer].mean(0)) for sentence in maps])

    return {
        "sentences": len(pairs),
        "reverse": reverse.name if reverse else None,
        "heads": {row.value: [[rate_head(row, layer, head) for head in heads] for layer in layers] for row in RowToken},
        "means": {row.value: [rate_mean(row, layer) for layer in layers] for row in RowToken},
        "chosen_heads": describe_heads(aligning_heads),
        "chosen": {mode: rate(link_words(maps, back_maps, aligning_heads, mode)) for mode in MODES},
        "diagonal": rate([diagonal(*map(len, pair)) for pair in pairs]),
        "others": external_rates(benchmark, folder),
        "published": benchmark.options.get("published", {}),
    }


def external_rates(benchmark: Benchmark, folder: Path) -> dict[str, float]:
    """Return the error rates of other aligners' links in the benchmark's folder, over all lines."""
    gold = folder / f"{GOLD}.talp"
    return {
        name: _percent(score_files(gold, folder / entry["file"], reversed_links=entry.get("reversed", False)))
        for name, entry in benchmark.options.get("others", {}).items()
    }


def _percent(score: AlignmentScore) -> float:
    return round(100 * score.error_rate, 2)


def sentences(folder: Path, languages: Sequence[str]) -> list[tuple[tuple[list[str], list[str]], Gold]]:
    """Return the words of both sides and their links, source first.

    In the file of links, the language that sorts first is the source. Raises ValueError if the files differ in length.
    """
    lines = (folder / f"{GOLD}.talp").read_text(encoding="utf-8").splitlines()
    pairs = list(read_pairs(*(folder / f"{GOLD}.{language}" for language in languages)))
    if len(lines) != len(pairs):
        raise ValueError(f"{folder}: {len(pairs)} sentences and {len(lines)} lines of links")
    golds = [parse_links(line, first=1) for line in lines]
    if list(languages) != sorted(languages):
        golds = [Gold(transpose_links(gold.sure), transpose_links(gold.possible)) for gold in golds]
    return [(pair, gold) for pair, gold in zip(pairs, golds) if all(pair)]


def diagonal(sources: int, targets: int) -> Links:
    """Link each target word to the source word at the same relative position."""
    return frozenset((round(target * (sources - 1) / max(1, targets - 1)), target) for target in range(targets))


def markdown(values: dict) -> str:
    """Return two tables of measure()'s values, in percent."""
    heads, means = values["heads"], values["means"]
    lines = [
        "| layer | row read: mean of heads | best head | row predicted: mean of heads | best head |",
        "|---|---|---|---|---|",
    ]
    for layer in range(len(means[RowToken.READ.value])):
        cells = [f"{v:.1f}" for row in RowToken for v in (means[row.value][layer], min(heads[row.value][layer]))]
        lines.append(f"| {layer + 1} | {' | '.join(cells)} |")
    rates = {f"chosen heads, {mode}": rate for mode, rate in values["chosen"].items()}
    rates |= {"the diagonal": values["diagonal"], **{f"{name}, these lines": v for name, v in values["others"].items()}}
    rates |= {f"{name}, published on the whole set": value for name, value in values["published"].items()}
    rows = "\n".join(f"| {name} | {value:.1f} |" for name, value in rates.items())
    both = f"with {values['reverse']} for the other direction" if values["reverse"] else "of this direction alone"
    return "\n".join(
        [
            f"{values['sentences']} sentences; alignment error rate in percent, the best head of a layer chosen on the "
            f"same ones, the chosen heads {both}, without links by hand.\n",
            *lines,
            f"\n| links | AER |\n|---|---|\n{rows}",
        ]
    )

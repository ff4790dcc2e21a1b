"""Measure calibration: whether tokens of probability 0.8 are right in 8 of 10 cases, under forced references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from attention_atlas.model.decode.runs import batched
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.truth.benchmark import Bench, Benchmark

BATCH = 16
ALL = "all"


def measure(benchmark: Benchmark, bench: Bench) -> dict:
    """Return bins and the expected calibration error (Guo et al. 2017, section 2), by corpus and over all.

    A bin is [tokens, mean probability of the most probable token, share of cases in which the reference has it].
    """
    count, sentences = benchmark.options["bins"], bench.limit or benchmark.options["sentences"]
    bins = {}
    for domain, pairs in bench.progress(bench.held_out("dev").items(), "calibration"):
        fitting = [pair for pair in pairs if bench.fits(*pair)][:sentences]
        bins[domain] = bin_tokens(np.concatenate([*most_probable(bench, fitting)], axis=1), count)
    bins = {ALL: pool_bins(bins.values()), **bins}
    return {"bins": bins, "errors": {domain: round(calibration_error(rows), 4) for domain, rows in bins.items()}}


@torch.inference_mode()
def most_probable(bench: Bench, pairs: Sequence[tuple[str, str]]) -> Iterable[np.ndarray]:
    """Yield, for each reference, [2, tokens]: the largest probability, and whether it is the reference token's."""
    translator, direction = bench.translator, bench.direction
    pad_id, begin = translator.config.pad_id, translator.tokenizer.begin_id
    for part in batched(pairs, BATCH):
        targets = [translator.encode_target(target, direction) for _, target in part]
        sources, inputs = (
            pad(rows, pad_id).to(translator.device)
            for rows in ([translator.encode(s, direction) for s, _ in part], [[begin, *ids[:-1]] for ids in targets])
        )
        best, predicted = translator.model(sources, inputs).logits.softmax(-1).max(-1)
        for row, ids in enumerate(targets):
            right = predicted[row, : len(ids)].cpu().numpy() == np.array(ids)
            yield np.stack([best[row, : len(ids)].cpu().double().numpy(), right])


def bin_tokens(tokens: np.ndarray, count: int) -> list[list[float]]:
    """Sort tokens [2, tokens], their probability and whether it is right, into bins of equal width."""
    numbers = np.minimum((tokens[0] * count).astype(int), count - 1)
    sizes = np.bincount(numbers, minlength=count)
    means = (np.bincount(numbers, values, count) / np.maximum(sizes, 1) for values in tokens)
    return [[int(n), round(float(p), 4), round(float(r), 4)] for n, p, r in zip(sizes, *means)]


def pool_bins(domains: Iterable[list[list[float]]]) -> list[list[float]]:
    """Return the bins of several domains together."""
    stacked = np.array(list(domains))
    sizes = stacked[..., 0].sum(0)
    sums = (stacked[..., 1:] * stacked[..., :1]).sum(0) / np.maximum(sizes, 1)[:, None]
    return [[int(n), *np.round(row, 4).tolist()] for n, row in zip(sizes, sums)]


def calibration_error(bins: list[list[float]]) -> float:
    """Return the expected calibration error: the mean distance of probability and share, weighted by tokens."""
    rows = np.array(bins)
    return float((rows[:, 0] * np.abs(rows[:, 1] - rows[:, 2])).sum() / max(1, rows[:, 0].sum()))


def markdown(values: dict) -> str:
    """Return a table of measure()'s values."""
    tokens = {domain: sum(row[0] for row in rows) for domain, rows in values["bins"].items()}
    lines = ["| domain | tokens | expected calibration error |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {d} | {tokens[d]:,} | {value:.3f} |" for d, value in values["errors"].items())])

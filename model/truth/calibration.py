"""Are tokens of probability 0.8 right in 8 of 10 cases? Under forced references, by domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from attention_atlas.model.nets.masks import pad
from attention_atlas.model.truth.benchmark import Bench, Benchmark

BATCH = 16
ALL = "all"


def measure(benchmark: Benchmark, bench: Bench) -> dict:
    """By corpus and over all: bins of equal width, each [tokens, mean probability of the most probable token, share of
    cases in which the reference has it], and the expected calibration error (Guo et al. 2017, section 2)."""
    count, sentences = benchmark.options["bins"], bench.limit or benchmark.options["sentences"]
    found = {}
    for domain, pairs in bench.progress(bench.held_out("dev").items(), "calibration"):
        fitting = [pair for pair in pairs if bench.fits(*pair)][:sentences]
        found[domain] = binned(np.concatenate([*surest(bench, fitting)], axis=1), count)
    found = {ALL: pooled(found.values()), **found}
    return {"bins": found, "errors": {domain: round(error(rows), 4) for domain, rows in found.items()}}


@torch.inference_mode()
def surest(bench: Bench, pairs: Sequence[tuple[str, str]]) -> Iterable[np.ndarray]:
    """For each target token of the references: the largest probability, and whether it is this token's: [2, tokens]."""
    translator, direction = bench.translator, bench.direction
    pad_id, begin = translator.config.pad_id, translator.tokenizer.begin_id
    for start in range(0, len(pairs), BATCH):
        part = pairs[start : start + BATCH]
        targets = [translator.encode_target(target, direction) for _, target in part]
        sources, inputs = (
            pad(rows, pad_id).to(translator.device)
            for rows in ([translator.encode(s, direction) for s, _ in part], [[begin, *ids[:-1]] for ids in targets])
        )
        best, chosen = translator.model(sources, inputs).logits.softmax(-1).max(-1)
        for row, ids in enumerate(targets):
            right = chosen[row, : len(ids)].cpu().numpy() == np.array(ids)
            yield np.stack([best[row, : len(ids)].cpu().double().numpy(), right])


def binned(tokens: np.ndarray, count: int) -> list[list[float]]:
    """Of [2, tokens], probability and right or not."""
    places = np.minimum((tokens[0] * count).astype(int), count - 1)
    sizes = np.bincount(places, minlength=count)
    means = (np.bincount(places, values, count) / np.maximum(sizes, 1) for values in tokens)
    return [[int(n), round(float(p), 4), round(float(r), 4)] for n, p, r in zip(sizes, *means)]


def pooled(domains: Iterable[list[list[float]]]) -> list[list[float]]:
    """The bins of several domains together."""
    stacked = np.array(list(domains))
    sizes = stacked[..., 0].sum(0)
    sums = (stacked[..., 1:] * stacked[..., :1]).sum(0) / np.maximum(sizes, 1)[:, None]
    return [[int(n), *np.round(row, 4).tolist()] for n, row in zip(sizes, sums)]


def error(bins: list[list[float]]) -> float:
    """Expected calibration error: how far probability and share are apart, weighted by tokens."""
    rows = np.array(bins)
    return float((rows[:, 0] * np.abs(rows[:, 1] - rows[:, 2])).sum() / max(1, rows[:, 0].sum()))


def markdown(found: dict) -> str:
    """A table of measure()'s values."""
    tokens = {domain: sum(row[0] for row in rows) for domain, rows in found["bins"].items()}
    lines = ["| domain | tokens | expected calibration error |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {d} | {tokens[d]:,} | {value:.3f} |" for d, value in found["errors"].items())])

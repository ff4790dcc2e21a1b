"""How long the laboratory of causes takes on one word of 16 + 16 tokens: python -m bench.why --help

Medians of repeated runs in one process, beside the bar in seconds, and beside the time that the same floating-point
operations take at the speed of matrix products measured in the same run: between machines, compare the ratios. A bar is
met by its seconds, or on a slow machine by twice that time. OPUS-MT and NLLB-600M are random weights at those sizes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch
from torch import nn

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.experiments import cutting, heads, patching, smallest
from attention_atlas.model.analysis.why.experiments.heads import list_heads
from attention_atlas.model.analysis.why.experiments.patching import PatchMode, StreamGrid
from attention_atlas.model.analysis.why.methods import attention, flow, gradients, occlusion
from attention_atlas.model.analysis.why.split import split_case
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.nets.products import linear
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import CHECKPOINT, add_json, command_line, integer, parse_args, program
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.why.attribution import Columns, Question

LENGTH = 16
NO_END = -1  # no token has this id: decoding goes on to its limit
SIZES = {
    "opus-mt": ModelConfig(
        58_101, d_model=512, num_encoder_layers=6, num_decoder_layers=6, d_feedforward=2048, norm_first=False
    ),
    "nllb-600m": ModelConfig(
        256_206, d_model=1024, num_heads=16, num_encoder_layers=12, num_decoder_layers=12, d_feedforward=4096
    ),
}


# Seconds on two cores, by size: what the page promises. Of the largest, only estimates and sixteen heads are promised.
BARS = {
    "shipped": {
        "estimates": 0.3,
        "occlusion": 0.3,
        "heads": 0.6,
        "gradients": 1.5,
        "smallest": 4.0,
        "patches": 1.0,
        "again": 0.2,
    },
    "opus-mt": {
        "estimates": 1.0,
        "occlusion": 2.0,
        "heads": 6.0,
        "gradients": 8.0,
        "smallest": 45.0,
        "patches": 6.0,
        "again": 1.0,
    },
    "nllb-600m": {"estimates": 5.0, "heads": 15.0},
}
HEADS = {"nllb-600m": 16}  # how many are measured where it is not all of them


@dataclass(frozen=True)
class Work:
    """Something to measure. bar: its name in BARS, or none. passes, decoder: what its result says of how many full
    passes over 16 + 16 tokens it was worth, gradients as two more each, and how many of the decoder alone."""

    name: str
    bar: str
    run: Callable[[], object]
    passes: Callable[[object], float] = lambda found: 0.0
    decoder: Callable[[object], float] = lambda found: 0.0


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    lines = []
    for size in BARS if args.all else [args.size or "shipped"]:
        for line in measure(size, args):
            print(json.dumps(line), flush=True)
            lines.append(line)
    if args.json:
        args.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


def measure(size: str, args: argparse.Namespace) -> Iterator[dict[str, object]]:
    """A line for the model and one for each work."""
    model = Transformer(SIZES[size]).eval() if size in SIZES else checkpoint.load(args.checkpoint).model
    case, whole = inputs(model)
    speed = matrix_speed(model.config.d_model)
    per_pass, per_decoder = operations(model.config)
    yield {
        "model": size if size in SIZES else str(args.checkpoint),
        "threads": torch.get_num_threads(),
        "gigaflops_per_second": round(speed / 1e9, 1),
        "tokens": [LENGTH, LENGTH],
    }
    for work in works(case, whole, args.heads or HEADS.get(size)):
        if work.bar not in BARS[size]:
            continue
        seconds, found = timed(work.run, args.runs)
        bound = (work.passes(found) * per_pass + work.decoder(found) * per_decoder) / speed
        bar = BARS[size][work.bar]
        yield {
            "what": work.name,
            "seconds": round(seconds, 4),
            "bar_seconds": bar,
            "met": seconds <= max(bar, 2 * bound),
            "gigaflops": round(bound * speed / 1e9, 1),
            "times_the_bound": round(seconds / bound, 2),
        }


def inputs(model: Transformer) -> tuple[Case, smallest.Translation]:
    """A source of 16 tokens, and what the model itself writes in 16 steps; the last of them is asked about."""
    random = torch.Generator().manual_seed(1)
    source = torch.randint(10, model.config.vocabulary_size, (1, LENGTH), generator=random)
    with torch.inference_mode():
        (written,) = greedy(model, model.encode(source), [LENGTH], begin_id=1, end_id=NO_END)
        logits = model(source, torch.tensor([[1, *written[:-1]]])).logits[0, -1]
    contrast = next(i for i in logits.topk(2).indices.tolist() if i != written[-1])
    tokens = tuple(f"▁{i}" for i in range(LENGTH))
    columns = Columns(tuple((i,) for i in range(LENGTH)), tuple((i,) for i in range(LENGTH)), tokens, tokens)
    question = Question(LENGTH - 1, written[-1], "a", contrast, "b")
    case = Case(model, question, source, torch.tensor([[1, *written[:-1]]]), columns)
    return case, smallest.Translation(case, torch.tensor(written), 0, NO_END)


def works(case: Case, whole: smallest.Translation, measured_heads: int | None) -> list[Work]:
    """What the page asks for. Each run starts from the ids: nothing is kept from the last one."""
    layers, silence = case.model.config.num_decoder_layers, heads.zero_values()
    chosen = list_heads(case)[:measured_heads]
    at_source = sum(kind is AttentionKind.ENCODER_SELF for kind, _, _ in chosen)
    other = patching.replace_source(case, [*case.source_ids[0].tolist()[:-1], 11])
    grid = StreamGrid(Side.DECODER)

    def fresh() -> Case:
        return replace(case)

    def estimates() -> None:
        one = fresh()
        split_case(one)
        heads.estimate_heads(one, silence)
        for method in (flow.ALTI, flow.ROLLOUT, attention.RAW, attention.NORMS, gradients.GRADIENT_X_INPUT):
            method(one)

    def again(without: Interventions) -> None:
        with torch.inference_mode():
            memory = case.model.encode(case.source_ids, interventions=without)
            greedy(case.model, memory, [LENGTH], begin_id=1, end_id=NO_END, interventions=without)

    off = Interventions(heads_off=frozenset(chosen[:3]))
    edge = cutting.cut_edges(
        Interventions(), [Edge(AttentionKind.CROSS, LENGTH // 2, 2, 0, 0)], cutting.CutMode.RENORMALISE
    )
    return [
        Work("estimates, parts, norms, ALTI+, gradient x input", "estimates", estimates, lambda found: 7),
        Work(
            "occlusion by mask",
            "occlusion",
            lambda: occlusion.MASK(fresh()),
            lambda found: LENGTH + 1,
            lambda found: LENGTH,
        ),
        Work(
            "occlusion by mean",
            "occlusion",
            lambda: occlusion.MEAN(fresh()),
            lambda found: LENGTH + 1,
            lambda found: LENGTH,
        ),
        Work(
            f"{len(chosen)} heads measured",
            "heads",
            lambda: heads.ablate(fresh(), silence, [[head] for head in chosen]),
            lambda found: at_source + 1,
            lambda found: len(chosen) - at_source,
        ),
        Work(
            "integrated gradients",
            "gradients",
            lambda: gradients.INTEGRATED_GRADIENTS(fresh()),
            lambda found: 3 * found.notes[0].values["steps"],
        ),
        Work(
            "smallest set, one order",
            "smallest",
            lambda: smallest.shrink_to_end(replace(whole, case=fresh()), {}),
            lambda found: found.passes,
        ),
        Work(
            "patch grid of the decoder's stream",
            "patches",
            lambda: patching.patch_grid(fresh(), replace(other), grid, PatchMode.DENOISE),
            lambda found: 2,
            lambda found: layers * LENGTH,
        ),
        Work("translation without three heads", "again", lambda: again(off), lambda found: 1),
        Work("translation with an edge cut", "again", lambda: again(edge), lambda found: 1),
    ]


def operations(config: ModelConfig) -> tuple[float, float]:
    """Floating-point operations of a full pass over 16 + 16 tokens without the output projection, and of the decoder's
    share: two for each weight of a matrix and token."""
    d, wide = config.d_model, 2 * config.d_model * config.d_feedforward
    encoder = 2 * LENGTH * config.num_encoder_layers * (4 * d * d + wide)
    decoder = 2 * LENGTH * config.num_decoder_layers * (8 * d * d + wide)
    return encoder + decoder, decoder


def matrix_speed(width: int) -> float:
    """Floating-point operations a second of a product of the shapes that a batch has, the best of several: of whatever
    numbers, or of those that float16 holds, if that is faster (model.nets.products)."""
    rows, right = torch.randn(512, width), torch.randn(width, 4 * width)
    packed = nn.Parameter(right.half().float().t())
    with torch.inference_mode():
        best = min(
            timed(work, 1)[0] for _ in range(20) for work in (lambda: rows @ right, lambda: linear(rows, packed))
        )
    return 2 * len(rows) * right.numel() / best


def timed(run: Callable[[], object], runs: int) -> tuple[float, object]:
    """The median seconds of a run, after one that does not count, and what the last one found."""
    found, seconds = run(), []
    for _ in range(runs):
        started = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - started)
    return median(seconds), found


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.why", __doc__)
    parser.add_argument("--checkpoint", type=Path, default=CHECKPOINT, help=f"default {CHECKPOINT}")
    parser.add_argument("--size", choices=tuple(SIZES), help="random weights of this size instead")
    parser.add_argument("--all", action="store_true", help="the checkpoint, and each size after it")
    parser.add_argument("--heads", type=int, help="how many heads to measure; default all, of the largest size 16")
    parser.add_argument("--runs", type=integer(), default=5, help="of which the median is taken, default 5")
    add_json(parser, "also write the lines as one list")
    return parse_args(parser, argv)


if __name__ == "__main__":
    program(main)

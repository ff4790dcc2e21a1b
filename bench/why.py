"""Measure the methods and experiments of the tab Why on one word of 16 + 16 tokens: python -m bench.why --help

Medians of repeated runs in one process, next to the bar in seconds and to the time that the same floating-point
operations take at the speed of matrix products measured in the same run: between machines, compare the ratios. A bar is
met by its seconds, or on a slow machine by twice that time. OPUS-MT and NLLB-600M have random weights.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.experiments import cutting, heads, patching, smallest
from attention_atlas.model.analysis.why.experiments.heads import list_heads
from attention_atlas.model.analysis.why.experiments.patching import PatchMode, StreamGrid
from attention_atlas.model.analysis.why.methods import attention, flow, gradients, occlusion
from attention_atlas.model.analysis.why.split import split_case
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.nets.products import linear
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import DEFAULT_CHECKPOINT, CommandLine, integer, parse_args, run_program
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.why.attribution import Columns, Question
from bench.common import NO_END, Row, compare_with_bar, print_rows, take_turns, timed, write_json
from bench.made.shapes import SHAPES

LENGTH = 16
# Seconds on two cores, by size: what the page promises. For the largest size it promises only estimates and 16 heads.
BARS = {
    "shipped": dict(estimates=0.3, occlusion=0.3, heads=0.6, gradients=1.5, smallest=4.0, patches=1.0, again=0.2),
    "opus-mt": dict(estimates=1.0, occlusion=2.0, heads=6.0, gradients=8.0, smallest=45.0, patches=6.0, again=1.0),
    "nllb-600m": dict(estimates=5.0, heads=15.0),
}
HEADS = {"nllb-600m": 16}  # number of heads that are measured, where it is not all
# Torch counts attention's products only on a GPU, and no products of packed matrices. Counts by shape.
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
UNCOUNTED = {
    ATTENTION: lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
    torch.ops.quantized.linear_dynamic_fp16: lambda x, packed, *, out_shape, **_: 2 * math.prod(out_shape) * x[-1],
}


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.why", __doc__)
    parser.add_argument("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT, help=f"default {DEFAULT_CHECKPOINT}")
    parser.add_argument("--size", choices=tuple(BARS), default="shipped", help="of the checkpoint, or random weights")
    parser.add_argument("--all", action="store_true", help="the checkpoint, and each size after it")
    parser.add_argument("--heads", type=int, help="how many heads to measure; default all, of the largest size 16")
    parser.add_argument("--runs", type=integer(), default=5, help="of which the median is taken, default 5")
    parser.add_json("also write the lines as one list")
    args = parse_args(parser, argv)
    sizes = BARS if args.all else [args.size]
    write_json(args.json, print_rows(row for size in sizes for row in measure(size, args)))


def measure(size: str, args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for the model and one for each work."""
    model = checkpoint.load(args.checkpoint).model if size == "shipped" else Transformer(SHAPES[size]).eval()
    case, whole = inputs(model)
    speed = matrix_speed(model.config.d_model)
    yield {
        "model": str(args.checkpoint) if size == "shipped" else size,
        "threads": torch.get_num_threads(),
        "gigaflops_per_second": round(speed / 1e9, 1),
        "tokens": [LENGTH, LENGTH],
    }
    for name, (bar, work) in works(case, whole, args.heads or HEADS.get(size)).items():
        if bar not in BARS[size]:
            continue
        flops = count_flops(work, inference=False)  # warms up, too
        row = compare_with_bar(name, take_turns({"": work}, args.runs, warm=True)[""], BARS[size][bar])
        yield {
            **row,
            "met": row["seconds"] <= max(row["bar_seconds"], 2 * flops / speed),
            "gigaflops": round(flops / 1e9, 1),
            "times_the_bound": round(row["seconds"] * speed / flops, 2),
        }


def inputs(model: Transformer) -> tuple[Case, smallest.Translation]:
    """Return a question about the last of 16 tokens that the model writes for a random source, and the translation."""
    random = torch.Generator().manual_seed(1)
    source = torch.randint(10, model.config.vocabulary_size, (1, LENGTH), generator=random)
    with torch.inference_mode():
        (target,) = greedy(model, model.encode(source), [LENGTH], begin_id=1, end_id=NO_END)
        logits = model(source, torch.tensor([[1, *target[:-1]]])).logits[0, -1]
    contrast = next(i for i in logits.topk(2).indices.tolist() if i != target[-1])
    tokens = tuple(f"▁{i}" for i in range(LENGTH))
    columns = Columns(tuple((i,) for i in range(LENGTH)), tuple((i,) for i in range(LENGTH)), tokens, tokens)
    question = Question(LENGTH - 1, target[-1], "a", contrast, "b")
    case = Case(model, question, source, torch.tensor([[1, *target[:-1]]]), columns)
    return case, smallest.Translation(case, torch.tensor(target), 0, NO_END)


def works(
    case: Case, whole: smallest.Translation, measured_heads: int | None
) -> dict[str, tuple[str, Callable[[], object]]]:
    """Return the works that the page asks for, each with its name in BARS.

    Each run starts from the ids; nothing is cached between runs.
    """
    zeros, measured = heads.zero_values(), list_heads(case)[:measured_heads]
    groups = [[head] for head in measured]
    second = patching.replace_source(case, [*case.source_ids[0].tolist()[:-1], 11])
    grid = StreamGrid(Side.DECODER)

    def fresh() -> Case:
        return replace(case)

    def estimates() -> None:
        copy = fresh()
        split_case(copy)
        heads.estimate_heads(copy, zeros)
        for method in (flow.ALTI, flow.ROLLOUT, attention.RAW, attention.NORMS, gradients.GRADIENT_X_INPUT):
            method(copy)

    def translate(interventions: Interventions) -> None:
        with torch.inference_mode():
            memory = case.model.encode(case.source_ids, interventions=interventions)
            greedy(case.model, memory, [LENGTH], begin_id=1, end_id=NO_END, interventions=interventions)

    off = Interventions(heads_off=frozenset(measured[:3]))
    edge = cutting.cut_edges(
        Interventions(), [Edge(AttentionKind.CROSS, LENGTH // 2, 2, 0, 0)], cutting.CutMode.RENORMALISE
    )
    return {
        "estimates, parts, norms, ALTI+, gradient x input": ("estimates", estimates),
        "occlusion by mask": ("occlusion", lambda: occlusion.MASK(fresh())),
        "occlusion by mean": ("occlusion", lambda: occlusion.MEAN(fresh())),
        f"{len(measured)} heads measured": ("heads", lambda: heads.ablate(fresh(), zeros, groups)),
        "integrated gradients": ("gradients", lambda: gradients.INTEGRATED_GRADIENTS(fresh())),
        "smallest set, one order": ("smallest", lambda: smallest.shrink_to_end(replace(whole, case=fresh()), {})),
        "patch grid of the decoder's stream": (
            "patches",
            lambda: patching.patch_grid(fresh(), replace(second), grid, PatchMode.DENOISE),
        ),
        "translation without three heads": ("again", lambda: translate(off)),
        "translation with an edge cut": ("again", lambda: translate(edge)),
    }


def matrix_speed(width: int) -> float:
    """Return the floating-point operations per second of a matrix product of a batch's shapes, the best of several.

    The faster of a plain product and one of packed float16 weights (model.nets.products).
    """
    rows, right = torch.randn(512, width), torch.randn(width, 4 * width)
    packed = nn.Parameter(right.half().float().t())
    with torch.inference_mode():
        best = min(timed(work) for _ in range(20) for work in (lambda: rows @ right, lambda: linear(rows, packed)))
    return 2 * len(rows) * right.numel() / best


def count_flops(work: Callable[[], object], *, inference: bool = True) -> float:
    """Return the floating-point operations of the matrix products. inference: False if `work` sets its own mode."""
    with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as counter, torch.inference_mode(inference):
        work()
    return counter.get_total_flops()


if __name__ == "__main__":
    run_program(main)

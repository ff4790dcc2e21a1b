"""How long the laboratory of causes takes on one word of 16 + 16 tokens: python -m bench.why --help

Medians of repeated runs in one process, beside the time that the same floating-point operations take at the speed of
matrix products measured in the same run: between machines, compare the ratios. OPUS-MT and NLLB-600M are random weights
at those sizes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch

from model import checkpoint
from model.analysis.why.case import Case
from model.analysis.why.experiments import cutting, heads, patching, smallest
from model.analysis.why.methods import attention, flow, gradients, occlusion
from model.analysis.why.split import parts
from model.config import ModelConfig
from model.decode.greedy import greedy
from model.nets.transformer import Transformer
from model.trace.interventions import Interventions
from model.trace.kinds import AttentionKind, Side
from model.trace.why.columns import Columns
from model.trace.why.patches import Direction, StreamGrid
from model.trace.why.question import Question

LENGTH = 16
NO_END = -1  # no token has this id: decoding goes on to its limit
SIZES = {
    "opus-mt": ModelConfig(58_101, d_model=512, num_encoder_layers=6, num_decoder_layers=6, d_feedforward=2048,
                           norm_first=False),
    "nllb-600m": ModelConfig(256_206, d_model=1024, num_heads=16, num_encoder_layers=12, num_decoder_layers=12,
                             d_feedforward=4096)}


@dataclass(frozen=True)
class Work:
    """Something to measure. passes: full passes over 16 + 16 tokens that it is worth, gradients as two more each;
    decoder: passes of the decoder alone."""

    name: str
    run: Callable[[], object]
    passes: float = 0
    decoder: float = 0


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    model = Transformer(SIZES[args.size]).eval() if args.size else checkpoint.load(args.checkpoint).model
    case, whole = inputs(model)
    speed = matrix_speed(model.config.d_model)
    per_pass, per_decoder = operations(model.config)
    print(json.dumps({"model": args.size or str(args.checkpoint), "threads": torch.get_num_threads(),
                      "gigaflops_per_second": round(speed / 1e9, 1), "tokens": [LENGTH, LENGTH]}))
    for work in works(case, whole, args.heads):
        seconds = timed(work.run, args.runs)
        bound = (work.passes * per_pass + work.decoder * per_decoder) / speed
        print(json.dumps({"what": work.name, "seconds": round(seconds, 4), "gigaflops": round(bound * speed / 1e9, 1),
                          "times_the_bound": round(seconds / bound, 2)}), flush=True)


def inputs(model: Transformer) -> tuple[Case, smallest.Whole]:
    """A source of 16 tokens, and what the model itself writes in 16 steps; the last of them is asked about."""
    random = torch.Generator().manual_seed(1)
    source = torch.randint(10, model.config.vocabulary_size, (1, LENGTH), generator=random)
    with torch.inference_mode():
        written, = greedy(model, model.encode(source), [LENGTH], begin_id=1, end_id=NO_END)
        logits = model(source, torch.tensor([[1, *written[:-1]]])).logits[0, -1]
    contrast = next(i for i in logits.topk(2).indices.tolist() if i != written[-1])
    tokens = tuple(f"▁{i}" for i in range(LENGTH))
    columns = Columns(tuple((i,) for i in range(LENGTH)), tuple((i,) for i in range(LENGTH)), tokens, tokens)
    question = Question(LENGTH - 1, written[-1], "a", contrast, "b")
    case = Case(model, question, source, torch.tensor([[1, *written[:-1]]]), columns)
    return case, smallest.Whole(case, torch.tensor(written), 0, NO_END)


def works(case: Case, whole: smallest.Whole, measured_heads: int | None) -> list[Work]:
    """What the page asks for. Each run starts from the ids: nothing is kept from the last one."""
    config, silence = case.model.config, heads.silence()
    chosen = heads.all_heads(case)[:measured_heads]
    at_source = sum(kind is AttentionKind.ENCODER_SELF for kind, _, _ in chosen)
    steps = _steps(case)
    set_passes = smallest.smallest_set(whole, {}).passes
    other = patching.corrupted(case, [*case.source_ids[0].tolist()[:-1], 11])
    grid = StreamGrid(Side.DECODER)

    def fresh() -> Case:
        return replace(case)

    def estimates() -> None:
        one = fresh()
        parts(one)
        heads.estimated(one, silence)
        for method in (flow.ALTI, flow.ROLLOUT, attention.RAW, attention.NORMS, gradients.GRADIENT_X_INPUT):
            method(one)

    def without_heads() -> None:
        off = Interventions(heads_off=frozenset(chosen[:3]))
        with torch.inference_mode():
            memory = case.model.encode(case.source_ids, interventions=off)
            greedy(case.model, memory, [LENGTH], begin_id=1, end_id=NO_END, interventions=off)

    return [
        Work("estimates, parts, norms, ALTI+, gradient x input", estimates, passes=7),
        Work("occlusion by mask", lambda: occlusion.MASK(fresh()), passes=LENGTH + 1, decoder=LENGTH),
        Work("occlusion by mean", lambda: occlusion.MEAN(fresh()), passes=LENGTH + 1, decoder=LENGTH),
        Work(f"{len(chosen)} heads measured",
             lambda: heads.ablate(fresh(), silence, [[head] for head in chosen]),
             passes=at_source + 1, decoder=len(chosen) - at_source),
        Work(f"integrated gradients, {steps} gradients", lambda: gradients.INTEGRATED_GRADIENTS(fresh()),
             passes=3 * steps),
        Work(f"smallest set, {set_passes} passes",
             lambda: smallest.smallest_set(replace(whole, case=fresh()), {}), passes=set_passes),
        Work("patch grid of the decoder's stream",
             lambda: patching.patched(fresh(), replace(other), grid, Direction.DENOISE),
             passes=2, decoder=config.num_decoder_layers * LENGTH),
        Work("every edge of one cross-attention map cut",
             lambda: cutting.effects_if_cut(fresh(), AttentionKind.CROSS, 0, 0), passes=1, decoder=LENGTH * LENGTH),
        Work("translation without three heads", without_heads, passes=1)]


def _steps(case: Case) -> int:
    """How many gradients integrated gradients take on this word."""
    return int(gradients.INTEGRATED_GRADIENTS(case).notes[0].split(", ")[1].split()[0])


def operations(config: ModelConfig) -> tuple[float, float]:
    """Floating-point operations of a full pass over 16 + 16 tokens without the output projection, and of the decoder's
    share: two for each weight of a matrix and token."""
    d, wide = config.d_model, 2 * config.d_model * config.d_feedforward
    encoder = 2 * LENGTH * config.num_encoder_layers * (4 * d * d + wide)
    decoder = 2 * LENGTH * config.num_decoder_layers * (8 * d * d + wide)
    return encoder + decoder, decoder


def matrix_speed(width: int) -> float:
    """Floating-point operations a second of a product of the shapes that a batch has, the best of several."""
    left, right = torch.randn(512, width), torch.randn(width, 4 * width)
    best = min(timed(lambda: left @ right, 1) for _ in range(20))
    return 2 * 512 * width * 4 * width / best


def timed(run: Callable[[], object], runs: int) -> float:
    """The median seconds of a run, after one that does not count."""
    run()
    found = []
    for _ in range(runs):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return median(found)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.why", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoints/de-en"), help="default checkpoints/de-en")
    parser.add_argument("--size", choices=tuple(SIZES), help="random weights of this size instead")
    parser.add_argument("--heads", type=int, help="how many heads to measure; default all")
    parser.add_argument("--runs", type=int, default=5, help="of which the median is taken, default 5")
    args = parser.parse_args(argv)
    if args.runs < 1:
        parser.error(f"--runs must be at least 1, found {args.runs}")
    return args


if __name__ == "__main__":
    main()

"""Check and measure a GPU in one command of at most nine minutes: python -m bench.cuda --json FILE

The CPU's ids and maps on 200 sentences, half precision against float32, translation with every attention map compared
with the CPU and MarianMTModel, training with its share of the device's peak, and memory. Needs only torch and
sentencepiece; without transformers there is no MarianMTModel. If a part fails, the report says so and goes on.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import traceback
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.decode.recorded import greedy_with_records
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import DEFAULT_CHECKPOINT, add_json, command_line, parse_args, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.training.batches import Batch, Examples, make_batch, plan_batches
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.loss import SummedLoss
from attention_atlas.model.translator import Translator
from bench.common import NO_END, median_seconds, write_json
from bench.made.captions import LARGEST, captions, texts

MINUTES = 9.0
SENTENCES = 200
TOLERANCE = 1e-3  # of maps, between devices
LENGTHS, BATCHES = (8, 32, 128, 256), (1, 8, 64, 512)
MAX_CELLS = 512 * 32 * 32  # batch x tokens x tokens of the largest maps that fit on common cards
CPU_CELLS = 8 * 64 * 64  # above, the CPU would take minutes
UPDATES = (2048, 8192, 32768)  # tokens of a training update
REPEATED = 5  # times that all captions are used, which makes six of the largest updates
# Operations per second of dense bfloat16 products, by a part of the device's name (from the data sheets).
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12, "T4": 65e12, "A10": 125e12}


@dataclass(frozen=True, eq=False)
class Bench:
    """The checkpoint on both devices, and the time at which no further part begins."""

    cpu: Translator
    gpu: Translator
    ends: float

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.ends - time.monotonic()

    def seconds(self, run: Callable[[], object], *, repeats: int = 5) -> float:
        """Return the median after one run to warm up, which starts with an idle device."""
        return median_seconds(run, repeats, self.gpu.device)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    cpu, gpu = (Translator.load(args.checkpoint, device) for device in ("cpu", args.device))
    bench = Bench(cpu, gpu, time.monotonic() + 60 * args.minutes)
    results: dict[str, object] = {"device": device_facts(gpu.device), "checkpoint": gpu.name, "digest": gpu.digest}
    for name, part in PARTS.items():
        results[name] = run_part(part, bench)
        print(json.dumps({name: results[name]}), flush=True)
        write_json(args.json, results)


def run_part(part: Callable[[Bench], dict], bench: Bench) -> dict:
    """Return the report of a part with its seconds. An error is its report, so that the other parts still run."""
    if bench.left <= 0:
        return {"failed": "no time was left"}
    started = time.monotonic()
    try:
        report = part(bench)
    except Exception as error:
        traceback.print_exc()
        report = {"failed": f"{type(error).__name__}: {error}"[:300]}
    return {**report, "seconds": round(time.monotonic() - started, 1)}


def device_facts(device: torch.device) -> dict:
    facts = {"torch": torch.__version__, "python": platform.python_version(), "name": str(device)}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts |= {
            "name": properties.name,
            "memory_gib": round(properties.total_memory / 2**30, 1),
            "cuda": torch.version.cuda,
            "capability": f"{properties.major}.{properties.minor}",
        }
    return facts


def same_as_cpu(bench: Bench) -> dict:
    """Compare greedy and beam ids of both devices, and return the largest difference of an attention weight."""
    language = parse_direction(bench.cpu.directions[0])[0]
    sentences = texts(SENTENCES, language)
    sources = [bench.cpu.encode(sentence) for sentence in sentences]
    beam = {"beam": 5, "length_penalty": 1.0}
    greedy_differences, beam_differences = (
        sum(a != b for a, b in zip(bench.cpu.generate(some, **options), bench.gpu.generate(some, **options)))
        for some, options in ((sources, {}), (sources[:40], beam))
    )
    largest = 0.0
    for start in range(0, SENTENCES, 50):
        batch = sentences[start : start + 50]
        for a, b in zip(bench.cpu.trace_batch(batch), bench.gpu.trace_batch(batch)):
            if a.target_ids == b.target_ids:
                largest = max(
                    largest,
                    *(float(np.abs(a.maps(kind).weights - b.maps(kind).weights).max()) for kind in TRANSFORMER_KINDS),
                )
    return {
        "sentences": SENTENCES,
        "other_greedy_ids": greedy_differences,
        "other_beam_ids_of_40": beam_differences,
        "largest_map_difference": largest,
        "passed": greedy_differences == beam_differences == 0 and largest <= TOLERANCE,
    }


def half_precision(bench: Bench) -> dict:
    """Count the translations that change when the device computes in half precision."""
    language = parse_direction(bench.cpu.directions[0])[0]
    sources = [bench.gpu.encode(sentence) for sentence in texts(SENTENCES, language)]
    exact = bench.gpu.generate(sources)
    changed = {}
    for dtype in (torch.float16, torch.bfloat16):
        model = deepcopy(bench.gpu.model).to(dtype)
        half = Translator(Checkpoint("", model, bench.gpu.tokenizer, bench.gpu.directions, {}, ""), bench.gpu.device)
        changed[str(dtype).removeprefix("torch.")] = sum(a != b for a, b in zip(half.generate(sources), exact))
    return {"sentences": SENTENCES, "changed": changed}


def translation(bench: Bench) -> dict:
    """Measure the milliseconds to decode and to copy every attention map to the CPU, by length and batch size."""
    rows = []
    for length in LENGTHS:
        for batch in BATCHES:
            limit = min(length, bench.gpu.config.max_length - 1)
            if batch * limit * limit > MAX_CELLS or bench.left < 90:
                continue
            repeats = 5 if batch * limit <= 4096 else 2
            row = {"tokens": limit, "batch": batch, "gpu_ms": _milliseconds(bench, bench.gpu, limit, batch, repeats)}
            if batch * limit * limit <= CPU_CELLS:
                row["cpu_ms"] = _milliseconds(bench, bench.cpu, limit, batch, 2)
            rows.append(row)
    return {"with_all_maps": rows}


def _milliseconds(bench: Bench, translator: Translator, length: int, batch: int, repeats: int) -> float:
    source = _source(translator, length, batch)

    @torch.inference_mode()
    def run() -> None:
        memory = translator.model.encode(source, record=True)
        _, recorded = greedy_with_records(
            translator.model, memory, [length] * batch, begin_id=translator.tokenizer.begin_id, end_id=NO_END
        )
        for kind in recorded.output.kinds:
            for row in range(batch):
                recorded.output.maps(kind, row).cpu()

    return round(1000 * bench.seconds(run, repeats=repeats), 2)


def _source(translator: Translator, length: int, batch: int) -> torch.Tensor:
    ids = translator.tokenizer.encode_source("", parse_direction(translator.directions[0])[1])  # symbol and </s>
    row = [ids[0], *[ordinary_id(translator)] * max(1, length - 2), ids[-1]]
    return torch.tensor([row] * batch, device=translator.device)


def ordinary_id(translator: Translator) -> int:
    """Return the id of a piece that is not a special symbol."""
    return next(i for i in range(len(translator.tokenizer)) if i not in translator.tokenizer.special_ids)


def marian(bench: Bench) -> dict:
    """Measure transformers' MarianMTModel with random weights and forced lengths."""
    from bench.made.peers import Marian

    peer = Marian(bench.gpu.config, bench.gpu.tokenizer, bench.gpu.device, maps=True)
    rows = []
    for length in LENGTHS[:3]:
        for batch in BATCHES:
            if batch * length * length > MAX_CELLS or bench.left < 60:
                continue
            source = _source(bench.gpu, length, batch).cpu()
            seconds = bench.seconds(partial(peer, source, length), repeats=2)
            rows.append({"tokens": length, "batch": batch, "marian_ms": round(1000 * seconds, 2)})
    return {"with_all_maps": rows}


def training(bench: Bench) -> dict:
    """Measure target tokens per second in bfloat16 autocast by the size of an update, and the share of the peak."""
    tokenizer, device = bench.gpu.tokenizer, bench.gpu.device
    language = parse_direction(bench.gpu.directions[0])[1]
    pairs = captions(LARGEST) if language == "en" else [(b, a) for a, b in captions(LARGEST)]
    examples = Examples.encode(pairs * REPEATED, tokenizer, language, max_length=128)
    rows = []
    for tokens in UPDATES:
        model = Transformer(bench.gpu.config).to(device).train()
        plan = plan_batches(examples, tokens, seed=1, epoch=0)
        batches = [make_batch(examples, rows_, tokenizer).to(device) for rows_ in plan[:6]]
        step = training_step(model)
        seconds = [bench.seconds(partial(step, batch), repeats=3) for batch in batches[1:]]
        real = sum(batch.tokens for batch in batches[1:])
        rate = real / sum(seconds)
        operations = sum(update_operations(model, batch) for batch in batches[1:]) / sum(seconds)
        peak = next((value for name, value in PEAKS.items() if name in device_facts(device)["name"]), None)
        rows.append(
            {
                "tokens_an_update": tokens,
                "tokens_a_second": round(rate),
                "operations_a_second": operations,
                "mfu": round(operations / peak, 4) if peak else None,
            }
        )
        if bench.left < 30:
            break
    return {"bfloat16": rows}


def training_step(model: Transformer) -> Callable[[Batch], None]:
    """Return a training update as model.train does it, in bfloat16 autocast."""
    config = TrainConfig()
    summed_loss = SummedLoss(model, config.label_smoothing)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step(batch: Batch) -> None:
        with torch.autocast(batch.source.device.type, torch.bfloat16):
            loss = summed_loss(batch.source, batch.inputs, batch.outputs)
        (loss / batch.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def update_operations(model: Transformer, batch: Batch) -> float:
    """Return the operations of the matrix products of an update: two for each weight and token forward, four backward.

    Padding counts in the layers, but not in the projection onto the vocabulary. Attention's own products are left out.
    """
    encoder, decoder = (
        sum(p.numel() for p in stack.parameters() if p.ndim > 1) for stack in (model.encoder, model.decoder)
    )
    return 6.0 * (
        encoder * batch.source.numel() + decoder * batch.inputs.numel() + model.embedding.weight.numel() * batch.tokens
    )


def memory(bench: Bench) -> dict:
    """Measure the peak MiB on the device: the weights, and a translation with every map by batch size."""
    if bench.gpu.device.type != "cuda":
        return {"failed": "no CUDA device"}
    rows = []
    for batch in BATCHES:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        _milliseconds(bench, bench.gpu, 32, batch, 1)
        rows.append({"tokens": 32, "batch": batch, "peak_mib": round(torch.cuda.max_memory_allocated() / 2**20, 1)})
    return {
        "weights_mib": round(sum(p.numel() * p.element_size() for p in bench.gpu.model.parameters()) / 2**20, 1),
        "with_all_maps": rows,
    }


PARTS: dict[str, Callable[[Bench], dict]] = {
    "same_as_cpu": same_as_cpu,
    "half_precision": half_precision,
    "training": training,
    "memory": memory,
    "translation": translation,
    "marian": marian,
}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.cuda", __doc__)
    add = parser.add_argument
    add("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT, help=f"default {DEFAULT_CHECKPOINT}")
    add("--device", default="cuda", help="cuda; cpu tries the program out")
    add("--minutes", type=float, default=MINUTES, help="no part begins later")
    add_json(parser, "write the results here after every part")
    return parse_args(parser, argv)


if __name__ == "__main__":
    run_program(main)

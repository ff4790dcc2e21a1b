"""What a GPU has to prove, in one command of at most nine minutes: python -m bench.cuda --json FILE

The CPU's ids and maps on 200 sentences, half precision against float32, translation with every attention map beside the
CPU and MarianMTModel, training with its share of the device's peak, and memory. Needs torch and sentencepiece alone;
a peer that is not installed is left out. A part that fails is reported, and the rest goes on.
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
from statistics import median

import numpy as np
import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.decode.recorded import greedy_with_records
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import CHECKPOINT, add_json, command_line, parse_args, program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.training.batches import Examples, make_batch, plan_batches
from attention_atlas.model.translator import Translator
from bench.made.captions import LARGEST, captions, texts
from bench.made.updates import training_step, update_operations

MINUTES = 9.0
SENTENCES = 200
TOLERANCE = 1e-3  # of maps, between devices
LENGTHS, BATCHES = (8, 32, 128, 256), (1, 8, 64, 512)
MAX_CELLS = 512 * 32 * 32  # batch x tokens x tokens: beyond, the maps of one pass no longer fit on common cards
CPU_CELLS = 8 * 64 * 64  # and the CPU would take minutes
UPDATES = (2048, 8192, 32768)  # training: tokens each
REPEATED = 5  # so often all captions, which makes six of the largest updates
NO_END = -1  # no token has this id: decoding goes on to its limit
# Dense matrix products in bfloat16, operations a second, by a part of the device's name (manufacturers' data sheets).
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12, "T4": 65e12, "A10": 125e12}


@dataclass(frozen=True, eq=False)
class Bench:
    """What the parts share: the checkpoint on both devices, and when the time is over."""

    cpu: Translator
    gpu: Translator
    ends: float

    @property
    def left(self) -> float:
        """Seconds."""
        return self.ends - time.monotonic()

    def seconds(self, run: Callable[[], object], *, repeats: int = 5) -> float:
        """The median, after one run to warm up."""

        def once() -> float:
            torch.cuda.synchronize() if self.gpu.device.type == "cuda" else None
            started = time.perf_counter()
            run()
            torch.cuda.synchronize() if self.gpu.device.type == "cuda" else None
            return time.perf_counter() - started

        once()
        return median(once() for _ in range(repeats))


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    cpu, gpu = (Translator.load(args.checkpoint, device) for device in ("cpu", args.device))
    bench = Bench(cpu, gpu, time.monotonic() + 60 * args.minutes)
    results: dict[str, object] = {"device": device_facts(gpu.device), "checkpoint": gpu.name, "digest": gpu.digest}
    for name, part in PARTS.items():
        results[name] = carried_out(part, bench)
        print(json.dumps({name: results[name]}), flush=True)
        if args.json:
            args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def carried_out(part: Callable[[Bench], dict], bench: Bench) -> dict:
    """A part's result, with its seconds. Whatever goes wrong in it is its result: the others are still wanted."""
    if bench.left <= 0:
        return {"failed": "the time was over"}
    started = time.monotonic()
    try:
        result = part(bench)
    except Exception as error:
        traceback.print_exc()
        result = {"failed": f"{type(error).__name__}: {error}"[:300]}
    return {**result, "seconds": round(time.monotonic() - started, 1)}


def device_facts(device: torch.device) -> dict:
    facts = {"torch": torch.__version__, "python": platform.python_version(), "name": str(device)}
    if device.type == "cuda":
        found = torch.cuda.get_device_properties(device)
        facts |= {
            "name": found.name,
            "memory_gib": round(found.total_memory / 2**30, 1),
            "cuda": torch.version.cuda,
            "capability": f"{found.major}.{found.minor}",
        }
    return facts


def same_as_cpu(bench: Bench) -> dict:
    """Greedy and beam ids of both devices, and the largest difference of any attention weight."""
    language = parse_direction(bench.cpu.directions[0])[0]
    sentences = texts(SENTENCES, language)
    sources = [bench.cpu.encode(sentence) for sentence in sentences]
    unlike = sum(a != b for a, b in zip(bench.cpu.generate(sources), bench.gpu.generate(sources)))
    wide = sum(
        a != b
        for a, b in zip(
            bench.cpu.generate(sources[:40], beam=5, length_penalty=1.0),
            bench.gpu.generate(sources[:40], beam=5, length_penalty=1.0),
        )
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
        "other_greedy_ids": unlike,
        "other_beam_ids_of_40": wide,
        "largest_map_difference": largest,
        "passed": unlike == wide == 0 and largest <= TOLERANCE,
    }


def half_precision(bench: Bench) -> dict:
    """How many translations change when the device computes in half precision."""
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
    """Milliseconds to decode so many tokens and bring every attention map to the CPU, by length and batch size."""
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
        _, found = greedy_with_records(
            translator.model, memory, [length] * batch, begin_id=translator.tokenizer.begin_id, end_id=NO_END
        )
        for kind in found.output.kinds:
            for row in range(batch):
                found.output.maps(kind, row).cpu()

    return round(1000 * bench.seconds(run, repeats=repeats), 2)


def _source(translator: Translator, length: int, batch: int) -> torch.Tensor:
    ids = translator.tokenizer.encode_source("", parse_direction(translator.directions[0])[1])  # symbol and </s>
    row = [ids[0], *[ordinary_id(translator)] * max(1, length - 2), ids[-1]]
    return torch.tensor([row] * batch, device=translator.device)


def ordinary_id(translator: Translator) -> int:
    """A piece that is no symbol."""
    return next(i for i in range(len(translator.tokenizer)) if i not in translator.tokenizer.special_ids)


def marian(bench: Bench) -> dict:
    """The same with transformers' MarianMTModel, random weights and forced lengths, where it is installed."""
    from bench.made.peers import Marian

    peer = Marian(bench.gpu.config, bench.gpu.tokenizer, bench.gpu.device, maps=True)
    rows = []
    for length in LENGTHS[:3]:
        for batch in BATCHES:
            if batch * length * length > MAX_CELLS or bench.left < 60:
                continue
            source = _source(bench.gpu, length, batch).cpu()
            rows.append(
                {
                    "tokens": length,
                    "batch": batch,
                    "marian_ms": round(
                        1000 * bench.seconds(lambda source=source, length=length: peer(source, length), repeats=2), 2
                    ),
                }
            )
    return {"with_all_maps": rows}


def training(bench: Bench) -> dict:
    """Target tokens a second in bfloat16 autocast by tokens an update, and the share of the device's peak."""
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


def memory(bench: Bench) -> dict:
    """Peak MiB on the device: the weights, and a translation with every map by batch size."""
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
    add("--checkpoint", type=Path, default=CHECKPOINT, help=f"default {CHECKPOINT}")
    add("--device", default="cuda", help="cuda; cpu tries the program out")
    add("--minutes", type=float, default=MINUTES, help="no part begins after so many")
    add_json(parser, "write the results here after every part")
    return parse_args(parser, argv)


if __name__ == "__main__":
    program(main)

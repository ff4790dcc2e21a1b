"""Check and measure a GPU in one command of at most nine minutes: python -m bench.cuda --json FILE

The CPU's ids and maps on 200 sentences, half precision against float32, translation with every attention map compared
with the CPU and MarianMTModel, training with its share of the device's peak, and memory. Needs only torch and
sentencepiece, training tqdm, and MarianMTModel transformers. If a part fails, the report says so and goes on.
"""

from __future__ import annotations

import json
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.decode.recorded import greedy_with_records
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import CommandLine, parse_args, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.training.batches import Batch
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.translator import Translator
from bench.common import NO_END, median_seconds, write_json
from bench.made.captions import LARGEST, encode_examples, source_texts

if TYPE_CHECKING:
    from attention_atlas.model.train import Trainer

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
    parser = CommandLine("python -m bench.cuda", __doc__)
    parser.add_checkpoint()
    parser.set_defaults(device="cuda")
    parser.add_argument("--minutes", type=float, default=9.0, help="no part begins later, default 9")
    parser.add_json("write the results here after every part")
    args = parse_args(parser, argv)
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
    sentences = source_texts(bench.cpu, SENTENCES)
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
    sources = [bench.gpu.encode(sentence) for sentence in source_texts(bench.gpu, SENTENCES)]
    exact = bench.gpu.generate(sources)
    changed = {}
    for dtype in (torch.float16, torch.bfloat16):
        model = deepcopy(bench.gpu.model).to(dtype)
        half = Translator(Checkpoint("", model, bench.gpu.tokenizer, bench.gpu.directions, {}, ""), bench.gpu.device)
        changed[str(dtype).removeprefix("torch.")] = sum(a != b for a, b in zip(half.generate(sources), exact))
    return {"sentences": SENTENCES, "changed": changed}


def sizes(bench: Bench, lengths: Sequence[int], least: float) -> Iterator[tuple[int, int]]:
    """Yield lengths with batch sizes whose maps are not too large, while at least so many seconds are left."""
    for length, batch in product(lengths, BATCHES):
        if batch * length * length <= MAX_CELLS and bench.left >= least:
            yield length, batch


def translation(bench: Bench) -> dict:
    """Measure the milliseconds to decode with every attention map, by length and batch size.

    With the maps copied to the CPU, gpu_ms, and left on the GPU, left_on_gpu_ms.
    """
    rows = []
    for length, batch in sizes(bench, [min(length, bench.gpu.config.max_length - 1) for length in LENGTHS], 90):
        repeats = 5 if batch * length <= 4096 else 2
        row = {"tokens": length, "batch": batch, "gpu_ms": _milliseconds(bench, bench.gpu, length, batch, repeats)}
        row["left_on_gpu_ms"] = _milliseconds(bench, bench.gpu, length, batch, repeats, copy=False)
        if batch * length * length <= CPU_CELLS:
            row["cpu_ms"] = _milliseconds(bench, bench.cpu, length, batch, 2)
        rows.append(row)
    return {"with_all_maps": rows}


def _milliseconds(
    bench: Bench, translator: Translator, length: int, batch: int, repeats: int, *, copy: bool = True
) -> float:
    source = _source(translator, length, batch)

    @torch.inference_mode()
    def run() -> None:
        memory = translator.model.encode(source, record=True)
        _, recorded = greedy_with_records(
            translator.model, memory, [length] * batch, begin_id=translator.tokenizer.begin_id, end_id=NO_END
        )
        if copy:
            maps = recorded.output
            readers = [
                maps.reader(kind, row, *maps.maps(kind, row).shape[2:])
                for kind, row in product(maps.kinds, range(batch))
            ]
            for read in readers:
                read()

    return round(1000 * bench.seconds(run, repeats=repeats), 2)


def _source(translator: Translator, length: int, batch: int) -> torch.Tensor:
    """Return sources of an ordinary piece, between the symbols of a sentence."""
    tokenizer = translator.tokenizer
    ids = tokenizer.encode_source("", parse_direction(translator.directions[0])[1])  # symbol and </s>
    ordinary = next(i for i in range(len(tokenizer)) if i not in tokenizer.special_ids)
    return torch.tensor([[ids[0], *[ordinary] * max(1, length - 2), ids[-1]]] * batch, device=translator.device)


def marian(bench: Bench) -> dict:
    """Measure transformers' MarianMTModel with random weights and forced lengths."""
    from bench.made.peers import Marian

    peer = Marian(bench.gpu.config, bench.gpu.tokenizer, bench.gpu.device, maps=True)
    rows = []
    for length, batch in sizes(bench, LENGTHS[:3], 60):
        seconds = bench.seconds(partial(peer, _source(bench.gpu, length, batch), length), repeats=2)
        rows.append({"tokens": length, "batch": batch, "marian_ms": round(1000 * seconds, 2)})
    return {"with_all_maps": rows}


def training(bench: Bench) -> dict:
    """Measure target tokens per second in bfloat16 autocast by the size of an update, and the share of the peak.

    On CUDA the largest size is measured again with the network compiled.
    """
    from attention_atlas.model.train import Trainer  # which needs tqdm

    tokenizer, device = bench.gpu.tokenizer, bench.gpu.device
    longest = min(TrainConfig().max_pair_length, bench.gpu.config.max_length)
    examples = encode_examples(bench.gpu, LARGEST, repeats=REPEATED, max_length=longest)
    peak = next((value for name, value in PEAKS.items() if name in device_facts(device)["name"]), None)
    rows = []
    runs = [(tokens, False) for tokens in UPDATES]
    if device.type == "cuda":
        runs.append((UPDATES[-1], True))
    for tokens, compiled in runs:
        model = Transformer(bench.gpu.config).train()
        config = TrainConfig(bf16=True, tokens_per_batch=tokens, compile=compiled)
        trainer = Trainer(config, model, tokenizer, examples, device)
        batches = [trainer.next_batch().to(device) for _ in range(5)]
        seconds = bench.seconds(partial(run_updates, trainer, batches), repeats=3)
        operations = sum(update_operations(model, batch, tokenizer.pad_id) for batch in batches) / seconds
        rows.append(
            {
                "tokens_an_update": tokens,
                "compiled": compiled,
                "tokens_a_second": round(sum(batch.tokens for batch in batches) / seconds),
                "operations_a_second": operations,
                "mfu": round(operations / peak, 4) if peak else None,
            }
        )
        if bench.left < 30:
            break
    return {"bfloat16": rows}


def run_updates(trainer: Trainer, batches: Sequence[Batch]) -> None:
    """Make an update on each batch, without waiting for the device in between."""
    for batch in batches:
        trainer.step_on(batch)


def update_operations(model: Transformer, batch: Batch, pad_id: int) -> float:
    """Return the operations of the matrix products of an update: two for each weight and token forward, four backward.

    Padding and attention's own products are left out.
    """
    encoder, decoder = (
        sum(p.numel() for p in stack.parameters() if p.ndim > 1) for stack in (model.encoder, model.decoder)
    )
    source_tokens = int((batch.source != pad_id).sum())
    return 6.0 * (encoder * source_tokens + (decoder + model.embedding.weight.numel()) * batch.tokens)


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


if __name__ == "__main__":
    run_program(main)

"""How time and memory grow with length and batch size: a model with random weights and room for long texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.decode.trace_builder import Request
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.train import SummedLoss
from attention_atlas.model.translator import Translator
from attention_atlas.viz.figures import paper
from bench.speed import Measurement, decode_cached, take_turns, translate_with_maps

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
LENGTH_IN_BATCH = 32  # tokens of source and target where the batch size grows
# What the mathematics allows, as exponents: attention is quadratic in length, and nothing is above linear in sentences.
ALLOWED = {"length": 2.0, "batch": 1.0}
NAMES = {"maps": "translation with every map", "decode": "decoding alone", "update": "loss and gradient"}


@dataclass(frozen=True)
class Point:
    """One measurement. way: a key of NAMES; against: "length" (source = target, one sentence) or "batch";
    memory: bytes of tensors and of the traces' arrays at their peak, weights not counted."""

    way: str
    against: str
    size: int
    seconds: float
    memory: int


def measure(translator: Translator, *, lengths: Sequence[int], batches: Sequence[int], repeats: int) -> list[Point]:
    """Every way at every size; medians of `repeats` runs, and one more for memory."""
    roomy = with_room(translator, max([*lengths, LENGTH_IN_BATCH]) + 1)
    found = []
    for against, sizes in (("length", lengths), ("batch", batches)):
        for size in sizes:
            batch, length = (1, size) if against == "length" else (size, LENGTH_IN_BATCH)
            work = ways(roomy, batch, length)
            memory = {way: peak_memory(work[way], translator.device) for way in work}  # which warms up
            seconds = take_turns(work, repeats, translator.device, warm=True)
            found += [Point(way, against, size, seconds[way], memory[way]) for way in work]
    return found


def with_room(translator: Translator, max_length: int) -> Translator:
    """A translator of the same sizes with random weights, for texts of up to max_length tokens."""
    model = Transformer(replace(translator.config, max_length=max_length)).eval()
    return Translator(Checkpoint("", model, translator.tokenizer, translator.directions, {}, ""), translator.device)


def ways(translator: Translator, batch: int, length: int) -> dict[str, Callable[[], object]]:
    """What is measured, on `batch` sentences of `length` source tokens, to as many target tokens."""
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(
        len(translator.tokenizer) - 300, len(translator.tokenizer), (batch, length + 1), generator=generator
    )  # pieces, no symbols
    sources = ids[:, :length].tolist()
    requests = [Request("", tuple(row), translator.directions[0], NO_INTERVENTIONS) for row in sources]
    loss = SummedLoss(translator.model, 0.1)

    def update() -> None:
        inputs = ids.to(translator.device)
        loss(inputs[:, :length], inputs[:, :length], inputs[:, 1:]).backward()
        translator.model.zero_grad(set_to_none=True)

    return {
        "maps": lambda: translate_with_maps(translator, requests, length),
        "decode": lambda: decode_cached(translator, sources, length),
        "update": update,
    }


def peak_memory(work: Callable[[], object], device: torch.device) -> int:
    """Bytes that the work's tensors held at most together, and the numpy arrays of the traces that it returns."""
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        result = work()
        peak = torch.cuda.max_memory_allocated(device) - before
    else:
        with TensorMemory() as memory:
            result = work()
        peak = memory.peak
    traces = result if isinstance(result, list) and result and isinstance(result[0], TranslationTrace) else []
    maps = [m.weights for trace in traces for m in (trace.encoder_self, trace.decoder_self, trace.cross)]
    return peak + sum(array.nbytes for array in maps if array.base is None)  # the others are a tensor's memory


class TensorMemory(TorchDispatchMode):
    """Adds up the storage of tensors that operations make, for as long as anything holds them. peak: bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[int, tuple[StorageWeakRef, int]] = {}
        self.total = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in given:
                self._add(tensor)
        return result

    def _add(self, tensor: Tensor) -> None:
        reference = StorageWeakRef(tensor.untyped_storage())
        if reference.cdata in self.held:
            return
        size = tensor.untyped_storage().nbytes()
        self.held[reference.cdata] = (reference, size)
        self.total += size
        if self.total > self.peak:  # perhaps: some may be gone
            self.held = {key: entry for key, entry in self.held.items() if not entry[0].expired()}
            self.total = sum(size for _, size in self.held.values())
            self.peak = max(self.peak, self.total)


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of log y over log x in the upper half of the sizes, where constant costs no longer hide the growth."""
    upper = sorted(points)[len(points) // 2 :] if len(points) > 3 else points
    x, y = np.log(np.array(upper, float)).T
    return float(np.polyfit(x, y, 1)[0])


def lines(points: Sequence[Point]) -> dict[tuple[str, str, str], list[tuple[float, float]]]:
    """(against, what, way) -> [(size, value)], what: "seconds" or "memory"."""
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for point in points:
        for what, value in (("seconds", point.seconds), ("memory", float(point.memory))):
            found.setdefault((point.against, what, point.way), []).append((point.size, value))
    return found


def measurements(points: Sequence[Point]) -> list[Measurement]:
    """Every point in milliseconds and MiB, and the exponents."""
    found = []
    for (against, what, way), line in lines(points).items():
        scale, unit = (1e3, "ms") if what == "seconds" else (2**-20, "MiB")
        found += [Measurement(f"growth_{way}_{what}_{against}_{size}", scale * value, unit) for size, value in line]
        if len(line) > 1:
            found.append(Measurement(f"growth_{way}_{what}_{against}_exponent", exponent(line), "exponent"))
    return found


def draw(points: Sequence[Point], path: Path) -> None:
    """Four log-log panels: time and memory, against length and batch size, with the exponents and, dotted, what the
    mathematics allows."""
    all_lines = lines(points)
    names = {
        ("seconds", "length"): "time, one sentence",
        ("memory", "length"): "memory, one sentence",
        ("seconds", "batch"): f"time, sentences of {LENGTH_IN_BATCH} tokens",
        ("memory", "batch"): f"memory, sentences of {LENGTH_IN_BATCH} tokens",
    }

    def panel(axes: Axes, what: str, against: str) -> None:
        scale = 1e3 if what == "seconds" else 2**-20
        for colour, (way, words) in zip(paper.COLOURS, NAMES.items()):
            x, y = np.array(all_lines[against, what, way]).T
            slope = exponent(all_lines[against, what, way])
            axes.loglog(x, y * scale, color=colour, marker="o", markersize=3, label=f"{words}: {slope:.2f}")
        top = max(line[-1][1] for (a, w, _), line in all_lines.items() if (a, w) == (against, what)) * scale
        allowed = ALLOWED[against]
        axes.loglog(
            x, top * (x / x[-1]) ** allowed, color=paper.MUTED, linestyle=":", linewidth=1, label=f"slope {allowed:g}"
        )
        axes.set(
            title=names[what, against],
            ylabel="ms" if what == "seconds" else "MiB",
            xlabel="tokens of source and of target" if against == "length" else "sentences in a batch",
        )
        axes.set_xticks(x, [f"{size:g}" for size in x])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        paper.legend(axes)

    paper.write_png(paper.panels([lambda axes, key=key: panel(axes, *key) for key in names]), path)

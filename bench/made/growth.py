"""Growth of time and memory with length and batch size, measured on random weights that accept long texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from bench.common import Measurement, take_turns
from bench.speed import decode_cached, translate_with_maps

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
LENGTH_IN_BATCH = 32  # tokens of source and target where the batch size grows
# Expected exponents at most: attention is quadratic in length, and everything is linear in sentences.
ALLOWED = {"length": 2.0, "batch": 1.0}
UNITS = {"seconds": "ms", "memory": "MiB"}  # of each quantity
NAMES = {"maps": "translation with every map", "decode": "decoding alone", "update": "loss and gradient"}
# The (size, value) points of each (against, quantity, work): against "length" (of source and target of one sentence) or
# "batch", and quantity and work from UNITS and NAMES. Memory is the peak of tensors and of the traces' arrays, without
# the weights.
Series = dict[tuple[str, str, str], list[tuple[int, float]]]


def measure(translator: Translator, *, lengths: Sequence[int], batches: Sequence[int], repeats: int) -> Series:
    """Measure each work at each size: the median seconds of `repeats` runs, and the memory of another run."""
    translator = with_max_length(translator, max([*lengths, LENGTH_IN_BATCH]) + 1)
    series: Series = {}
    for against, sizes in (("length", lengths), ("batch", batches)):
        for size in sizes:
            batch, length = (1, size) if against == "length" else (size, LENGTH_IN_BATCH)
            works = make_works(translator, batch, length)
            memory = {name: peak_memory(work, translator.device) for name, work in works.items()}  # warms up, too
            seconds = take_turns(works, repeats, translator.device, warm=True)
            for name in works:
                series.setdefault((against, "seconds", name), []).append((size, 1e3 * seconds[name]))
                series.setdefault((against, "memory", name), []).append((size, memory[name] / 2**20))
    return series


def with_max_length(translator: Translator, max_length: int) -> Translator:
    """Return a translator of the same sizes with random weights, for texts of up to max_length tokens."""
    model = Transformer(replace(translator.config, max_length=max_length)).eval()
    return Translator(Checkpoint("", model, translator.tokenizer, translator.directions, {}, ""), translator.device)


def make_works(translator: Translator, batch: int, length: int) -> dict[str, Callable[[], object]]:
    """Return the works on `batch` sentences of `length` source tokens and as many target tokens."""
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(
        len(translator.tokenizer) - 300, len(translator.tokenizer), (batch, length + 1), generator=generator
    )  # pieces, and no special symbols
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
    """Return the peak bytes of the tensors of `work`, plus the numpy arrays of the traces that it returns."""
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
    return peak + sum(array.nbytes for array in maps if array.base is None)  # a view of a tensor was counted already


class TensorMemory(TorchDispatchMode):
    """Add up the storage of the tensors that operations create, while they are referenced. peak: bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.references: dict[int, tuple[StorageWeakRef, int]] = {}
        self.total = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        inputs = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in inputs:
                self._add(tensor)
        return result

    def _add(self, tensor: Tensor) -> None:
        reference = StorageWeakRef(tensor.untyped_storage())
        if reference.cdata in self.references:
            return
        size = tensor.untyped_storage().nbytes()
        self.references[reference.cdata] = (reference, size)
        self.total += size
        if self.total > self.peak:  # perhaps, as some storages may have been freed
            self.references = {key: entry for key, entry in self.references.items() if not entry[0].expired()}
            self.total = sum(size for _, size in self.references.values())
            self.peak = max(self.peak, self.total)


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of log y over log x for the upper half of the sizes, where constant costs matter less."""
    upper = sorted(points)[len(points) // 2 :] if len(points) > 3 else points
    x, y = np.log(np.array(upper, float)).T
    return float(np.polyfit(x, y, 1)[0])


def measurements(series: Series) -> list[Measurement]:
    """Return each point, and the exponents."""
    rows = []
    for (against, quantity, work), line in series.items():
        name = f"growth_{work}_{quantity}_{against}"
        rows += [Measurement(f"{name}_{size}", value, UNITS[quantity]) for size, value in line]
        if len(line) > 1:
            rows.append(Measurement(f"{name}_exponent", exponent(line), "exponent"))
    return rows


def draw(series: Series, path: Path) -> None:
    """Draw four log-log panels: time and memory by length and batch size, with exponents and the expected slope."""

    def panel(axes: Axes, quantity: str, against: str) -> None:
        for colour, (work, name) in zip(paper.COLOURS, NAMES.items()):
            x, y = np.array(series[against, quantity, work]).T
            label = f"{name}: {exponent(series[against, quantity, work]):.2f}"
            axes.loglog(x, y, color=colour, marker="o", markersize=3, label=label)
        top, allowed = max(series[against, quantity, work][-1][1] for work in NAMES), ALLOWED[against]
        expected, label = top * (x / x[-1]) ** allowed, f"slope {allowed:g}"
        axes.loglog(x, expected, color=paper.MUTED, linestyle=":", linewidth=1, label=label)
        title = "time" if quantity == "seconds" else "memory"
        if against == "length":
            axes.set(title=f"{title}, one sentence", xlabel="tokens of source and of target", ylabel=UNITS[quantity])
        else:
            title = f"{title}, sentences of {LENGTH_IN_BATCH} tokens"
            axes.set(title=title, xlabel="sentences in a batch", ylabel=UNITS[quantity])
        axes.set_xticks(x, [f"{size:g}" for size in x])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        paper.legend(axes)

    keys = [(quantity, against) for against in ALLOWED for quantity in UNITS]
    paper.write_png(paper.panels([lambda axes, key=key: panel(axes, *key) for key in keys]), path)

"""Weights that float16 holds without loss, read as float16 by a step: half the bytes, and the same product.

A step of decoding takes as long as its weights take to be read. Shipped checkpoints are float16 on disk, so each of
their numbers is one in memory, too. FBGEMM, which comes with PyTorch for x86 processors, multiplies such a matrix,
packed, by rows of float32 and sums in float32: only the order of the sums differs. A pass over many rows multiplies
by the same copies: it takes as long as its sums, of which FBGEMM does more at once (model.nets.linear).

A packed matrix is a copy, and has to notice that the model's own was changed. Whatever is done through PyTorch counts
up the tensor's version. What is written past it (`weight.data`, an array of NumPy's that shares the memory) is seen by
a product with a random row, taken anew for each text, or once for many that are asked for together (looking_once):
it reads the matrix once, as a step does, and a change that it does not show is as small as a rounding error in what the
model computes. Whoever alone holds a model, as a server does, can do without: trust().
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from threading import Lock
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

Result = TypeVar("Result")
SHARES = 2  # in which a matrix is probed: always as many, so that the sums are the same on any number of cores

_kept = WeakTensorKeyDictionary()  # by parameter: by rows, the version looked at and its Half, if it has one
_trusted = WeakTensorKeyDictionary()  # parameters that nobody writes to past PyTorch
_keeping = Lock()
_looked: ContextVar[set[Half] | None] = ContextVar("packed copies that were compared", default=None)


class Half:
    """A packed copy of some rows of a parameter, and the bias itself."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        """weight [out, in], each of its numbers one of float16's; bias [out] or None"""
        self.packed = torch.ops.quantized.linear_prepack_fp16(weight.contiguous(), bias)
        self.addresses, self.version, self.probe = _addresses(weight, bias), weight._version, _probe(weight)
        product = torch.ops.quantized.linear_dynamic_fp16.default
        self.multiply = getattr(product, "_op", product)  # what is called looks at arguments for what only exports have

    def is_still(self, weight: Tensor, bias: Tensor | None, *, trusted: bool) -> bool:
        same = self.addresses == _addresses(weight, bias)
        return same and (trusted or torch.equal(self.probe, _probe(weight)))

    def __call__(self, x: Tensor) -> Tensor:
        """x [batch, in] -> x W^T + b, [batch, out]"""
        return self.multiply(x, self.packed)


def _addresses(weight: Tensor, bias: Tensor | None) -> tuple[int, int]:
    return weight.data_ptr(), 0 if bias is None else bias.data_ptr()


def trust(model: nn.Module) -> None:
    """From now on nobody writes to this model's weights past PyTorch: its packed copies are compared with them no more,
    which saves each text 2 ms of 22 on one core."""
    for parameter in model.parameters():
        _trusted[parameter] = True


def looking_once(work: Callable[..., Result]) -> Callable[..., Result]:
    """work() as a piece of a whole: of all calls, in whatever threads, one compares a packed copy with its matrix."""
    looked: set[Half] = set()

    @wraps(work)
    def looking(*given: object, **named: object) -> Result:
        before = _looked.set(looked)
        try:
            return work(*given, **named)
        finally:
            _looked.reset(before)

    return looking


def half(parameter: Tensor, rows: slice, bias: Tensor | None = None) -> Half | None:
    """These rows of a parameter [out, in] and of its bias [out], packed now or before; None where float16 does not hold
    them, or nothing packs."""
    weight, bias = parameter.detach()[rows], None if bias is None else bias.detach()[rows]
    if not _can_be_packed(weight):
        return None
    version, of = weight._version, (rows.start, rows.stop)
    with _keeping:
        known, found = _kept.setdefault(parameter, {}).get(of, (None, None))
    looked = _looked.get()
    trusted = parameter in _trusted or (looked is not None and found in looked)
    if known != version or (found is not None and not found.is_still(weight, bias, trusted=trusted)):
        found = Half(weight, bias) if torch.equal(weight.half().float(), weight) else None
        with _keeping:
            _kept[parameter][of] = version, found
    if looked is not None and found is not None:
        looked.add(found)
    return found


def _can_be_packed(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.stride(0) == 1  # as a checkpoint is loaded, and as a probe reads
        and not weight.is_inference()  # whose versions are not counted
        and _packs()
    )


@cache
def _packs() -> bool:
    return torch.backends.quantized.engine in ("fbgemm", "x86") and torch.backends.cpu.get_cpu_capability() != "DEFAULT"


def _probe(weight: Tensor) -> Tensor:
    """A random row times weight [out, in], in parts: [SHARES, out]."""
    outputs, inputs = weight.shape
    apart = weight.stride(1)
    table = weight.as_strided((inputs, outputs), (apart, 1))
    rows, starts, by = _random(inputs)
    return torch.embedding_bag(table, rows, starts, False, 0, False, by)[0]


@lru_cache(maxsize=64)
def _random(inputs: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which inputs are summed, where each share begins, and by what each is multiplied."""
    drawn = torch.randn(inputs, generator=torch.Generator().manual_seed(inputs))
    return torch.arange(inputs, dtype=torch.int32), torch.arange(SHARES, dtype=torch.int32) * (inputs // SHARES), drawn

"""x W^T + b, by packed float16 copies of the weights where they are faster than PyTorch's float32 products.

Shipped checkpoints store float16, so each weight in memory is exactly a float16 number. FBGEMM, which comes with
PyTorch for x86 processors, multiplies float32 rows by such a matrix and sums in float32: half the bytes are read, and
only the order of the sums differs. A packed copy is replaced when its parameter changes, however it is written to.
"""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from threading import Lock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from attention_atlas.model import processor

ALL = slice(None)
MIN_NUMBERS = 1 << 17  # of a matrix that a decoding step packs: for smaller ones float32 is as fast with any rows
MANY_ROWS = 64  # from which a pass over whole sentences uses packed copies
MAX_NUMBERS = 1 << 22  # of a matrix that linear() packs: copies of larger ones would take too much memory

_copies = WeakTensorKeyDictionary()  # by parameter, then by rows: (version, PackedWeight or None)
_lock = Lock()


class PackedWeight:
    """A packed float16 copy of some rows of a parameter [out, in], with its bias [out] or None."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        """Pack a weight that float16 represents exactly."""
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight.contiguous(), bias)
        self.version, self._addresses, self._checksum = weight._version, _addresses(weight, bias), _checksum(weight)
        product = torch.ops.quantized.linear_dynamic_fp16.default
        self._multiply = getattr(product, "_op", product)  # skips checks that only exported programs need

    def is_current(self, weight: Tensor, bias: Tensor | None) -> bool:
        """Whether the weight still has the numbers that were packed.

        PyTorch counts its own writes in the tensor's version. Writes that it does not count (`weight.data`, a NumPy
        array that shares the memory) change the checksum.
        """
        return (
            self.version == weight._version
            and self._addresses == _addresses(weight, bias)
            and torch.equal(self._checksum, _checksum(weight))
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Return x W^T + b: [batch, in] -> [batch, out], both float32."""
        return self._multiply(x, self._packed)


def packed(parameter: Tensor, rows: slice = ALL, bias: Tensor | None = None) -> PackedWeight | None:
    """Return the packed copy of these rows of a parameter and of its bias, made now or before.

    None where float16 cannot represent the numbers, or where this PyTorch cannot pack them.
    """
    weight, bias = parameter.detach()[rows], None if bias is None else bias.detach()[rows]
    if not _can_pack(weight):
        return None
    key = rows.start, rows.stop
    with _lock:
        version, copy = _copies.setdefault(parameter, {}).get(key, (None, None))
    if version != weight._version or (copy is not None and not copy.is_current(weight, bias)):
        version = weight._version
        copy = PackedWeight(weight, bias) if torch.equal(weight.half().float(), weight) else None
        with _lock:
            _copies[parameter][key] = version, copy
    return copy


def _can_pack(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.stride(0) == 1  # the layout of loaded checkpoints, which the checksum reads
        and not weight.is_inference()  # inference tensors have no version
        and packing_is_supported()
    )


@cache
def packing_is_supported() -> bool:
    """Return whether this PyTorch multiplies by packed float16 matrices on this processor."""
    return torch.backends.quantized.engine in ("fbgemm", "x86") and torch.backends.cpu.get_cpu_capability() != "DEFAULT"


def _addresses(weight: Tensor, bias: Tensor | None) -> tuple[int, int]:
    return weight.data_ptr(), 0 if bias is None else bias.data_ptr()


def _checksum(weight: Tensor) -> Tensor:
    """Return a random row vector times the weight, summed in two halves: [2, out]."""
    outputs, inputs = weight.shape
    table = weight.as_strided((inputs, outputs), (weight.stride(1), 1))
    indices, offsets, numbers = _random_row(inputs)
    # Two bags use two cores, and each is summed in one order on any number of cores, unlike a matrix product.
    return torch.embedding_bag(table, indices, offsets, False, 0, False, numbers)[0]


@lru_cache(maxsize=64)
def _random_row(inputs: int) -> tuple[Tensor, Tensor, Tensor]:
    numbers = torch.randn(inputs, generator=torch.Generator().manual_seed(inputs))
    return torch.arange(inputs, dtype=torch.int32), torch.tensor([0, inputs // 2], dtype=torch.int32), numbers


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, rows: slice = ALL) -> Tensor:
    """Return x W^T + b for some rows of a parameter [out, in] and its bias [out]: x [.., in] -> [.., rows].

    In inference mode a pass over many rows multiplies by packed copies, except on Intel's processors, where MKL is as
    fast. Everything else is torch.nn.functional.linear.
    """
    if (
        not torch.is_grad_enabled()  # torch.compile cannot trace the next line: a pass of training stops here
        and torch.is_inference_mode_enabled()
        and x.shape[:-1].numel() >= MANY_ROWS
        and x.dtype is torch.float32
        and weight.numel() <= MAX_NUMBERS
        and not torch.is_autocast_enabled("cpu")
        and not processor.is_intels()
        and (copy := packed(weight, rows, bias)) is not None
    ):
        return copy(x)
    if rows != ALL:
        weight, bias = weight[rows], None if bias is None else bias[rows]
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """torch.nn.Linear, computed by linear()."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class StepProduct:
    """x W^T + b for the few rows x [batch, in] of a decoding step, in inference mode: no gradient flows back.

    A packed copy made at the start of a text is used as long as PyTorch counts no write to the parameter.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: slice = ALL, *, pack: bool = True) -> None:
        """weight [out, in] and bias [out] or None: parameters, of which `rows` are used."""
        self._parameter, self._weight = weight, weight[rows].t()
        self._bias = None if bias is None else bias[rows]
        self.packed = packed(weight, rows, bias) if pack and self._weight.numel() >= MIN_NUMBERS else None
        self._max_packed_rows = 8 if processor.is_intels() else sys.maxsize  # beyond, MKL's float32 products are faster

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Return the product [batch, out], plus a residual [batch, out] if there is one."""
        copy = self.packed
        if copy is not None and copy.version == self._parameter._version and x.size(0) <= self._max_packed_rows:
            product = copy(x)
        else:
            product = x @ self._weight if self._bias is None else torch.addmm(self._bias, x, self._weight)
        return product if residual is None else product.add_(residual)

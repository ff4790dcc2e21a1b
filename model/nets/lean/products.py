"""A matrix times a row or a few, on several cores: what a step of decoding spends most of its time on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, lru_cache, partial

import torch
from torch import Tensor

from attention_atlas.model import processor
from attention_atlas.model.nets.lean.attention import gains_by_bags
from attention_atlas.model.nets.lean.halves import Half, half
from attention_atlas.model.nets.transformer import Transformer

SMALL, LARGE, HUGE = 1 << 17, 2_000_000, 8_000_000  # numbers of a matrix
PACKED = 64_000_000  # numbers that a step reads; copies of more would take too much memory


class Products:
    """What a model's steps multiply by: each matrix is looked at once, however often a step is built anew."""

    def __init__(self, model: Transformer) -> None:
        self._packs, self._made = model.step_numbers <= PACKED, {}

    def __call__(self, weight: Tensor, bias: Tensor | None, rows: slice = slice(None)) -> Affine:
        """Of these rows of a parameter [out, in] and of its bias [out]."""
        of = weight.data_ptr(), rows.start, rows.stop
        if of not in self._made:
            pack = partial(half, weight, rows, bias) if self._packs else None
            self._made[of] = Affine(weight[rows], None if bias is None else bias[rows], pack)
        return self._made[of]

    def look_again(self) -> None:
        """At whether packed copies still are what the model's own matrices say, when they are next needed."""
        for one in self._made.values():
            one.__dict__.pop("half", None)


class Affine:
    """x W^T + b for rows x [batch, in], in inference mode: no gradient flows back. torch uses several cores badly for
    few rows, and of a single one not on all processors: where it has several, each gets a share of the matrix that lies
    in one piece of memory. What float16 holds is read as that, where it is faster (model.nets.lean.halves).

    A row's product is the sum of the matrix's rows, weighted by x: that is what an embedding bag computes, and its
    kernel fetches ahead, which MKL's matrix product does not on processors that are not Intel's. It needs the inputs to
    lie one after the other, as a checkpoint is loaded. On Intel's processors MKL itself shares out the product of a
    single row, and adds in passing: a step of the shipped model takes 1.00 ms in place of 1.11, one of T5-base's size
    20.8 in place of 22.3. Several rows take a share of the output's columns, or, of large matrices and of those whose
    columns cannot be shared out (a vocabulary may be odd), of the input's. A small matrix is read before a second core
    has begun.

    GB/s read on 2 cores as matrix products and as bags, from memory: on an AMD EPYC, where a sum reads 43, one row,
    [1536, 512] 29 and 38, [512, 2048] 29 and 38, [58101, 512] 42 and 46, [256, 256] 18 and 20, [1024, 256] 20 and 28,
    [8000, 256] 23 and 36; two rows, [1536, 512] 18 and 35, [58101, 512] 26 and 31; five, 17 and 22, and 17 and 14. On
    an Intel Xeon, where a sum reads 28, one row, [512, 2048] 26 and 24, [58101, 512] 29 and 26, [256, 256] 23 and 15,
    [8000, 256] 27 and 26; two rows, [512, 2048] 16 and 14, [58101, 512] 24 and 13; five, 15 and 9, and 16 and 16."""

    def __init__(self, weight: Tensor, bias: Tensor | None, pack: Callable[[], Half | None] | None = None) -> None:
        """weight [out, in], bias [out] or None; pack: gives the weight as float16, if that holds it, with the bias"""
        self.weight, self.bias, self.pack = weight.t(), bias, pack
        inputs, outputs = self.weight.shape
        numbers = inputs * outputs
        self.large = numbers >= LARGE
        self.shares = torch.get_num_threads() if numbers >= SMALL and weight.device.type == "cpu" else 1
        self.halved = range(0) if pack is None else _halved()
        self.few = 0  # rows up to which bags are faster
        self.whole = weight.device.type == "cpu" and processor.is_intels()  # of a single row
        if _fits_bags(self.weight):
            self.few = 5 if numbers < HUGE else 3
            apart = self.weight.stride(0) // outputs  # more than 1: some columns of a wider matrix
            self.table = self.weight.detach().as_strided((apart * (inputs - 1) + 1, outputs), (outputs, 1))
            self.bag_shares = next(count for count in range(self.shares, 0, -1) if inputs % count == 0)
            self.bags = partial(_bags, inputs, apart, self.bag_shares)
            self.one, self.all = self.bags(1), self.table.new_ones(1, self.bag_shares)

    def __call__(self, x: Tensor, onto: Tensor | None = None) -> Tensor:
        """onto: what is added besides, [batch, out]"""
        # A tensor's len() is Python, and this is called some fifty times a step.
        batch = x.size(0)
        if batch in self.halved and (half := self.half) is not None and half.version == self.weight._version:
            found = half(x)
            return found if onto is None else found.add_(onto)
        if batch == 1 and self.few:
            return self._as_bag(x, onto)
        if batch == 1 and self.whole:
            return self._added(x, self.weight, onto)
        found = self._as_bags(x) if batch <= self.few else self.product(x)
        return found if onto is None else found.add_(onto)

    @cached_property
    def half(self) -> Half | None:
        """Packed when several rows first come: a single one is not worth a copy."""
        return self.pack()

    def _as_bag(self, x: Tensor, onto: Tensor | None) -> Tensor:
        """Of a single row. Whatever is done between two matrices finds the processor's caches full of the first: an
        operation that takes 2 us by itself takes 10 us there. So what the shares found, the bias and onto are summed
        by as few as there can be."""
        found = torch.embedding_bag(self.table, *self.one, False, 0, False, x.reshape(-1))[0]  # [shares, out]
        if self.bag_shares == 1 and self.bias is None and onto is None:
            return found
        return self._added(self.all, found, onto)

    def _added(self, x: Tensor, weight: Tensor, onto: Tensor | None) -> Tensor:
        """x weight + bias + onto."""
        first = onto if self.bias is None else self.bias
        if first is None:
            return torch.mm(x, weight)
        found = torch.addmm(first, x, weight)
        return found if first is onto or onto is None else found.add_(onto)

    def _as_bags(self, x: Tensor) -> Tensor:
        batch = x.size(0)
        by = x.unflatten(1, (self.bag_shares, -1)).transpose(0, 1).reshape(-1)
        found = torch.embedding_bag(self.table, *self.bags(batch), False, 0, False, by)[0]  # [shares * batch, out]
        if self.bag_shares == 2:  # of two, adding takes less than a sum's reduction
            found, other = found.split(batch)
            found = found.add_(other)
        elif self.bag_shares > 2:
            found = found.view(self.bag_shares, batch, -1).sum(0)
        return found if self.bias is None else found.add_(self.bias)

    @cached_property
    def product(self) -> Callable[[Tensor], Tensor]:
        """x [batch, in] -> [batch, out] by matrix products, made when it is first needed."""
        (inputs, outputs), shares = self.weight.shape, self.shares
        by_input = (self.large and self.weight.stride(1) == 1) or outputs % shares != 0
        if shares > 1 and by_input and inputs % shares == 0:
            self.split = self.weight.unflatten(0, (shares, -1))  # [shares, in / shares, out]
            return self._by_input
        if shares > 1 and outputs % shares == 0:
            self.split = self.weight.unflatten(1, (shares, -1)).transpose(0, 1)  # [shares, in, out / shares]
            self.split_bias = None if self.bias is None else self.bias.view(shares, 1, -1)
            return self._by_output
        return self._whole

    def _whole(self, x: Tensor) -> Tensor:
        return x @ self.weight if self.bias is None else torch.addmm(self.bias, x, self.weight)

    def _by_input(self, x: Tensor) -> Tensor:
        shares = len(self.split)
        rows = x.unflatten(1, (shares, -1)).transpose(0, 1)
        found = torch.bmm(rows, self.split).sum(0)  # [batch, out]
        return found if self.bias is None else found.add_(self.bias)

    def _by_output(self, x: Tensor) -> Tensor:
        rows, batch = x.expand(len(self.split), -1, -1), x.size(0)
        found = (
            torch.bmm(rows, self.split) if self.split_bias is None else torch.baddbmm(self.split_bias, rows, self.split)
        )  # [shares, batch, out / shares]
        return found.view(1, -1) if batch == 1 else found.transpose(0, 1).reshape(batch, -1)


def _fits_bags(weight: Tensor) -> bool:
    """Whether a product with weight [in, out] is to be an embedding bag's: float32, on a processor that its kernel is
    written for and the fastest on, and the inputs one after the other, or as many outputs apart."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and gains_by_bags()
        and weight.stride(1) == 1
        and weight.stride(0) % weight.shape[1] == 0
    )


def _halved() -> range:
    """How many rows a packed matrix is faster for. Of a single one, several cores are as fast without; on Intel's
    processors, where this was not measured, MKL gains sooner.

    ms of a step of the shipped model on an AMD EPYC, as float32 and as float16: on two cores 2 rows 1.70 and 1.21, 8
    rows 3.13 and 1.82, 32 rows 7.03 and 4.73, 128 rows 18.3 and 15.3; on one core 1 row 2.37 and 1.15, 8 rows 4.52 and
    2.31, 32 rows 8.73 and 6.53, 128 rows 25.9 and 22.6."""
    return range(1 if torch.get_num_threads() == 1 else 2, 9 if processor.is_intels() else sys.maxsize)


@lru_cache(maxsize=1024)
def _bags(inputs: int, apart: int, shares: int, batch: int) -> tuple[Tensor, Tensor]:
    """Which rows of a table [inputs * apart, out] are summed, share by share and in each for every row of the batch:
    rows [shares * batch * inputs / shares], starts [shares * batch], where each sum's begin."""
    rows = torch.arange(0, apart * inputs, apart, dtype=torch.int32).view(shares, 1, -1).expand(-1, batch, -1)
    return rows.reshape(-1), torch.arange(shares * batch, dtype=torch.int32) * (inputs // shares)

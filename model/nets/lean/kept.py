"""A model's steps, kept from text to text: looking everything up anew takes as long as a token of a short text."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import repeat
from operator import is_
from weakref import WeakKeyDictionary

import torch
from torch import nn

from attention_atlas.model.nets.lean.products import Products
from attention_atlas.model.nets.lean.step import DecoderStep
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS

_kept: WeakKeyDictionary[Transformer, dict[int, Kept]] = WeakKeyDictionary()  # by number of threads
EVERY = frozenset(vars(nn.Module()))  # what every module has


class Kept:
    """What a model's steps are made of, as long as the model consists of the same parts."""

    def __init__(self, model: Transformer) -> None:
        self.products = Products(model)
        self.plain = DecoderStep(model, products=self.products)
        # Last: what a module works out once, and then has, it has by now.
        self.parts = Parts(each for name, each in model.named_modules() if name.split(".")[0] != "encoder")

    def step(self, model: Transformer, changes: Changes = NO_INTERVENTIONS) -> DecoderStep:
        """ValueError for what a step does not support."""
        return self.plain if changes == NO_INTERVENTIONS else DecoderStep(model, changes, self.products)


def kept(model: Transformer) -> Kept:
    """To be asked for with each text: by then the model may have other parts, and its numbers may be others."""
    known, threads = _kept.setdefault(model, {}), torch.get_num_threads()
    found = known.get(threads)
    if found is None or not found.parts.are_the_same():
        found = known[threads] = Kept(model)
    found.products.look_again()
    return found


class Parts:
    """What modules consist of: their own attributes, modules within and parameters, and where those lie in memory. What
    is written into a parameter makes it no other."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        # Side by side, not in pairs: objects by the hundred set off a walk through all that importing torch has left.
        self._owners: list[dict] = []
        self._names: list[str] = []
        self._registers: list[dict] = []
        for module in modules:
            own = vars(module)
            self._add(own, own.keys() - EVERY)
            for register in (own["_modules"], own["_parameters"]):
                self._registers.append(register)
                self._add(register, register)
        self._found, self._counts = self._now()
        self._parameters = [part for part in self._found if isinstance(part, nn.Parameter)]
        self._places = [parameter.data_ptr() for parameter in self._parameters]

    def are_the_same(self) -> bool:
        found, counts = self._now()
        if counts != self._counts or not all(map(is_, found, self._found)):
            return False
        return [parameter.data_ptr() for parameter in self._parameters] == self._places

    def _add(self, owner: dict, names: Collection[str]) -> None:
        self._owners += repeat(owner, len(names))
        self._names += names

    def _now(self) -> tuple[list[object], list[int]]:
        return list(map(dict.get, self._owners, self._names)), list(map(len, self._registers))

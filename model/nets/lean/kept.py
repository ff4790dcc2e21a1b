"""A model's steps, kept from text to text: looking everything up anew takes as long as a token of a short text."""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from weakref import WeakKeyDictionary

import torch
from torch import nn

from model.nets.lean.products import Products
from model.nets.lean.step import DecoderStep
from model.nets.sweep import Changes
from model.nets.transformer import Transformer
from model.trace.interventions import NO_INTERVENTIONS

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
        self._owners = [(vars(module), sorted(vars(module).keys() - EVERY)) for module in modules]
        self._found = self._now()
        self._parameters = [part for part in self._found if isinstance(part, nn.Parameter)]
        self._places = [parameter.data_ptr() for parameter in self._parameters]

    def are_the_same(self) -> bool:
        now = self._now()
        if len(now) != len(self._found) or not all(map(is_, now, self._found)):
            return False
        return [parameter.data_ptr() for parameter in self._parameters] == self._places

    def _now(self) -> list[object]:
        found: list[object] = []
        for owner, names in self._owners:
            found += map(owner.get, names)
            found += owner["_modules"].values()
            found += owner["_parameters"].values()
        return found

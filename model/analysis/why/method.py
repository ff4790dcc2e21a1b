"""The description that every attribution method gives of itself. Methods are in methods/, one file each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import nn

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.language import Words
from attention_atlas.model.trace.why.attribution import Row
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit


@dataclass(frozen=True, eq=False)
class Attribution:
    """A method's values, float64 [column], NaN where it has none; sum and notes as in Row."""

    values: np.ndarray
    sum: Sum | None = None
    notes: tuple[Words, ...] = ()


def is_transformer(model: nn.Module) -> bool:
    return isinstance(model, Transformer)


def any_network(model: nn.Module) -> bool:
    return True


@dataclass(frozen=True)
class Method:
    """An attribution method; calling it with a Case returns its Row.

    slug            its name in files and answers; title: its name for people
    description     what is done, in one line
    caveat          where it misleads, in one line
    compute         the function that computes it
    class_agnostic  whether it ignores which token was written, so that its values are the same for any contrast
    slow            whether it takes many passes; the page shows the other rows first
    by_layer        whether it is about one layer of cross-attention, or the mean over layers
    applies         whether it can be computed for a network
    """

    slug: str
    title: Words
    evidence: Evidence
    unit: Unit
    description: Words
    caveat: Words
    compute: Callable[[Case], Attribution]
    class_agnostic: bool = False
    slow: bool = False
    by_layer: bool = False
    applies: Callable[[nn.Module], bool] = is_transformer

    def __call__(self, case: Case) -> Row:
        attribution = self.compute(case)
        assert attribution.values.shape == (len(case.columns),)
        return Row(
            self.slug,
            self.evidence,
            self.unit,
            attribution.values,
            self.class_agnostic,
            attribution.sum,
            attribution.notes,
            self.title,
        )

"""Direct logit attribution: a token's logit as a sum of what each part of the decoder wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.why.attribution import Question
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit

TOLERANCE = 1e-4  # nats: float32 rounding of a pass


@dataclass(frozen=True, eq=False)
class Parts(Result):
    """The part of each component of the decoder in the question's logit difference, in nats, float64.

    Without a contrast the difference is the token's logit less the vocabulary's mean logit. The norms' scales are held
    fixed, so a part is not the effect of removing it. Encoder heads have no direct path to a logit: they are missing,
    which does not mean 0.

    token, position  the decoder's input at this row
    keys             kind -> [layers, heads, key]: each head split by the key it read; the sum over keys is the head
    feed_forward     [layers]
    output_biases    kind -> [layers]: biases of the attentions' output projections
    norm_biases      [norms]: biases of the norms, in the order of the pass
    constant         bias of the output projection
    expected         the logit difference that the model computed
    """

    question: Question
    token: float
    position: float
    keys: dict[AttentionKind, np.ndarray]
    feed_forward: np.ndarray
    output_biases: dict[AttentionKind, np.ndarray]
    norm_biases: np.ndarray
    constant: float
    expected: float
    evidence: Evidence = Evidence.EXACT_SPLIT
    unit: Unit = Unit.NATS

    def as_plain(self) -> dict[str, Any]:
        """Return the fields that to_jsonable() writes: heads without their split by key, which the NPZ archive has."""
        names = ("evidence", "unit", "token", "position", "feed_forward", "output_biases", "norm_biases", "constant")
        heads = {kind: self.heads(kind) for kind in self.keys}
        return {**{name: getattr(self, name) for name in names}, "heads": heads, "sum": self.sum}

    def columns_of_table(self) -> dict[str, Any]:
        """Return a table with a line for each part: `part`, `kind`, `layer`, `head`, and `nats`, which sum to
        `expected`."""
        lines: list[tuple] = [("token", None, None, None, self.token), ("position", None, None, None, self.position)]
        for kind in self.keys:
            heads = self.heads(kind)
            lines += [("head", kind.value, *place, heads[place]) for place in np.ndindex(heads.shape)]
            lines += [("output bias", kind.value, i, None, nats) for i, nats in enumerate(self.output_biases[kind])]
        lines += [("feed-forward", None, i, None, nats) for i, nats in enumerate(self.feed_forward)]
        lines += [("norm bias", None, i, None, nats) for i, nats in enumerate(self.norm_biases)]
        lines += [("constant", None, None, None, self.constant)]
        return dict(zip(("part", "kind", "layer", "head", "nats"), map(list, zip(*lines))))

    def about(self) -> str:
        return f"{self.question.in_words}: {self.sum.found:.3f} of {self.expected:.3f} nats"

    def heads(self, kind: AttentionKind) -> np.ndarray:
        """Return each head's part, [layers, heads]. Raises ValueError for encoder heads."""
        if kind not in self.keys:
            raise ValueError(f"{AttentionKind(kind).value} heads have no direct path to a logit")
        return self.keys[kind].sum(-1)

    @property
    def sum(self) -> Sum:
        """The sum of all parts, and the logit difference that it should equal."""
        arrays = (*self.keys.values(), self.feed_forward, *self.output_biases.values(), self.norm_biases)
        total = sum(float(array.sum()) for array in arrays) + self.token + self.position + self.constant
        return Sum(self.expected, total, TOLERANCE)

"""The answer to "why this token?": a `Question`, the `Columns` of words that were read, and a `Row` for each method.

`Why` holds all three; `model.analysis.why.attribute` returns it. `Parts` is the token's logit as a sum of what each
part of the decoder wrote (direct logit attribution).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal, Words
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit, to_jsonable
from attention_atlas.model.trace.words import SPACE, word_groups

TOLERANCE = 1e-4  # nats, of the sum of Parts: float32 rounding of a pass
FORMER_NAMES = {  # of methods, in files and answers written before methods had slugs
    "occlusion by mask": "occlusion_by_mask",
    "occlusion by mean": "occlusion_by_mean",
    "integrated gradients": "integrated_gradients",
    "gradient x input": "gradient_x_input",
    "ALTI+": "alti",
    "norm-based attention": "norm_based_attention",
    "cross-attention": "cross_attention",
    "attention rollout": "attention_rollout",
}


class Against(Enum):
    """The contrast of a question that names no token: the most probable other token, or none."""

    RUNNER_UP = "runner-up"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Question:
    """Why did row `step` of the decoder write this token, and not the contrast?

    With a contrast the metric is log p(token) - log p(contrast), in nats. The normaliser cancels, so it is a difference
    of two logits and can be split exactly. Without a contrast the metric is log p(token); what is split exactly is then
    the token's logit less the vocabulary's mean logit.

    note: how a typed contrast of several pieces was read; otherwise empty.
    """

    step: int
    token_id: int
    token: str
    contrast_id: int | None = None
    contrast: str | None = None
    note: str = ""

    @property
    def in_words(self) -> str:
        """The question as a short text."""
        return self.token if self.contrast is None else f"{self.token} rather than {self.contrast}"

    def __post_init__(self) -> None:
        if self.token_id == self.contrast_id:
            raise Refusal("{token} cannot be compared with itself: choose another contrast", token=repr(self.token))


@dataclass(frozen=True)
class Columns:
    """The columns of an attribution: words of the source, then words of the prefix.

    source, prefix  groups of positions, in order; each position is in one group
    source_tokens   `<2en> x1 .. </s>`
    prefix_tokens   `<s> y1 .. yt`, which the decoder had read when it wrote y(t+1)
    """

    source: Groups
    prefix: Groups
    source_tokens: tuple[str, ...]
    prefix_tokens: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.source) + len(self.prefix)

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of each column: its pieces joined, without the space mark."""
        return tuple(
            "".join(tokens[i] for i in group).replace(SPACE, " ").strip() or SPACE
            for tokens, groups in self._sides
            for group in groups
        )

    @property
    def special(self) -> np.ndarray:
        """Which columns are begin, end or language symbols, bool [column]."""
        return np.array([is_symbol(tokens[group[0]]) for tokens, groups in self._sides for group in groups], bool)

    @property
    def _sides(self) -> tuple:
        return (self.source_tokens, self.source), (self.prefix_tokens, self.prefix)

    def gather(self, source: np.ndarray, prefix: np.ndarray) -> np.ndarray:
        """Sum values of positions, source [source] and prefix [prefix], over each column: float64 [column]."""
        sides = ((source, self.source), (prefix, self.prefix))
        return np.array([values[list(group)].sum() for values, groups in sides for group in groups], np.float64)

    def masks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of each column, bool [column, source] and [column, prefix]."""
        source = np.zeros((len(self), len(self.source_tokens)), bool)
        prefix = np.zeros((len(self), len(self.prefix_tokens)), bool)
        for column, group in enumerate(self.source):
            source[column, list(group)] = True
        for column, group in enumerate(self.prefix, start=len(self.source)):
            prefix[column, list(group)] = True
        return source, prefix


def make_columns(trace: TranslationTrace, step: int, *, words: bool = True) -> Columns:
    """Return the columns for row `step` of a trace: whole words, or single pieces."""

    def group(tokens: tuple[str, ...]) -> Groups:
        return word_groups(tokens) if words else tuple((i,) for i in range(len(tokens)))

    source, prefix = trace.source_tokens, trace.decoder_inputs[: step + 1]
    return Columns(group(source), group(prefix), source, prefix)


@dataclass(frozen=True, eq=False)
class Row:
    """One method's values over the columns.

    method          the method's slug; title: its name for people
    values          float64 [column]; positive if the column speaks for the token, NaN if the method has no value there
    class_agnostic  whether the method ignores which token was written, so that its values are the same for any contrast
    sum             what the values should add up to, and what they do; None if nothing is claimed
    notes           texts that a reader needs to judge the values
    """

    method: str
    evidence: Evidence
    unit: Unit
    values: np.ndarray
    class_agnostic: bool = False
    sum: Sum | None = None
    notes: tuple[Words, ...] = ()
    title: str = ""


@dataclass(frozen=True, eq=False)
class Why(Result):
    """The values of several methods for one question.

    metric     the question's measured metric, in nats
    agreement  method -> rank correlation with the occlusion that takes words away by another replacement, over columns
               that are no symbols; None if that occlusion is missing or there is nothing to rank (see spearman())
    """

    question: Question
    columns: Columns
    metric: float
    rows: tuple[Row, ...]
    agreement: dict[str, float | None]

    def as_plain(self) -> dict[str, Any]:
        """Return the fields that to_jsonable() writes; the first `source_columns` columns are the source's."""
        return {
            "question": self.question,
            "metric": self.metric,
            "unit": Unit.NATS,
            "columns": self.columns.labels,
            "source_columns": len(self.columns.source),
            "special": self.columns.special,
            "rows": [{**to_jsonable(row), "agreement": self.agreement[row.method]} for row in self.rows],
        }

    def row(self, method: str) -> Row:
        """Return the row of a method. Raises ValueError if there is none."""
        for row in self.rows:
            if row.method == slug_of(method):
                return row
        raise ValueError(f"no row {method!r}: there are {', '.join(row.method for row in self.rows)}")

    def columns_of_table(self) -> dict[str, Any]:
        """Return a table with a line for each column, in order, so that a repeated word has several.

        `side` is "source" or "prefix", `special` says whether `word` is a symbol, and each method has a column.
        """
        sides = ["source"] * len(self.columns.source) + ["prefix"] * len(self.columns.prefix)
        words = {"side": sides, "word": self.columns.labels, "special": self.columns.special}
        return {**words, **{row.method: row.values for row in self.rows}}

    def about(self) -> str:
        return f"{self.question.in_words}: {self.metric:.3f} nats"


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


def slug_of(name: str) -> str:
    """Return the slug of a method, also for a name that older files use."""
    return FORMER_NAMES.get(name, name)


def rows_by_layer(values: np.ndarray, evidence: Evidence, unit: Unit | str, **names: object) -> list[dict]:
    """Return a row for each layer of values [layers, column], for to_jsonable(). names: further fields, put first."""
    return [
        {**names, "layer": layer, "evidence": evidence, "unit": unit, "values": row} for layer, row in enumerate(values)
    ]

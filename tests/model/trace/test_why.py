"""Tests of results as JSON-ready values, and of rank correlation against scipy."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest
from scipy import stats

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.attribution import rows_by_layer
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit, to_jsonable
from attention_atlas.model.trace.why.faithfulness import average_ranks, spearman


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    colour: Colour
    values: np.ndarray


@dataclass(frozen=True)
class Outer:
    inner: Inner
    by_kind: dict[AttentionKind, np.ndarray]
    heads: frozenset
    missing: float | None = None


def test_to_jsonable_writes_dataclasses_field_by_field():
    outer = Outer(
        Inner(Colour.RED, np.array([1.5, np.nan])),
        {AttentionKind.CROSS: np.array([[True, False]])},
        frozenset({(AttentionKind.CROSS, 1, 0), (AttentionKind.CROSS, 0, 3)}),
    )
    assert json.loads(json.dumps(to_jsonable(outer), allow_nan=False)) == {
        "inner": {"colour": "red", "values": [1.5, None]},
        "by_kind": {"cross": [[True, False]]},
        "heads": [["cross", 0, 3], ["cross", 1, 0]],
        "missing": None,
    }


def test_to_jsonable_keeps_every_digit_and_translatable_texts():
    values = np.random.default_rng(0).normal(size=20)
    assert to_jsonable(values) == values.tolist() and to_jsonable(np.float64(math.pi)) == math.pi
    words = say("{n} tokens", n=3)
    assert to_jsonable({"words": [words]})["words"][0] is words


def test_to_jsonable_uses_as_plain():
    expected = {"expected": 1.0, "found": 1.25, "error": 0.25, "holds": False}
    assert to_jsonable([Sum(1.0, 1.25, 0.1)]) == [expected]


def test_rows_by_layer_puts_names_first():
    rows = to_jsonable(rows_by_layer(np.array([[1.0, np.nan], [2.0, 3.0]]), Evidence.MEASURED, Unit.NATS, order=1))
    assert [list(row) for row in rows] == [["order", "layer", "evidence", "unit", "values"]] * 2
    assert rows[0] == {"order": 1, "layer": 0, "evidence": "measured", "unit": "nats", "values": [1.0, None]}


@pytest.mark.parametrize("seed", range(5))
def test_spearman_matches_scipy_with_ties_and_nan(seed):
    random = np.random.default_rng(seed)
    a, b = random.integers(0, 6, 20).astype(float), random.normal(size=20)
    np.testing.assert_allclose(average_ranks(a), stats.rankdata(a))
    a[seed:3] = np.nan  # for two seeds none
    known = ~np.isnan(a)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a[known], b[known]).statistic)


def test_spearman_is_none_for_too_few_or_equal_values():
    assert spearman(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert spearman(np.ones(5), np.arange(5.0)) is None

"""Values as JSON has them: nothing is lost, and nothing needs a word of its own."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import say
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit
from attention_atlas.model.trace.why.plain import plain
from attention_atlas.model.trace.why.rows import by_layer


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
    nothing: float | None = None


def test_a_dataclass_is_its_fields_down_to_numbers() -> None:
    outer = Outer(
        Inner(Colour.RED, np.array([1.5, np.nan])),
        {AttentionKind.CROSS: np.array([[True, False]])},
        frozenset({(AttentionKind.CROSS, 1, 0), (AttentionKind.CROSS, 0, 3)}),
    )
    assert json.loads(json.dumps(plain(outer), allow_nan=False)) == {
        "inner": {"colour": "red", "values": [1.5, None]},
        "by_kind": {"cross": [[True, False]]},
        "heads": [["cross", 0, 3], ["cross", 1, 0]],
        "nothing": None,
    }


def test_numbers_keep_every_digit_and_words_stay_words() -> None:
    values = np.random.default_rng(0).normal(size=20)
    assert plain(values) == values.tolist() and plain(np.float64(math.pi)) == math.pi
    words = say("{n} tokens", n=3)
    assert plain({"words": [words]})["words"][0] is words


def test_a_file_may_say_it_otherwise() -> None:
    assert plain([Sum(1.0, 1.25, 0.1)]) == [{"expected": 1.0, "found": 1.25, "error": 0.25, "holds": False}]


def test_a_row_a_layer_with_what_names_it_first() -> None:
    found = plain(by_layer(np.array([[1.0, np.nan], [2.0, 3.0]]), Evidence.MEASURED, Unit.NATS, order=1))
    assert [list(row) for row in found] == [["order", "layer", "evidence", "unit", "values"]] * 2
    assert found[0] == {"order": 1, "layer": 0, "evidence": "measured", "unit": "nats", "values": [1.0, None]}

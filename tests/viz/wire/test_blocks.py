"""Tables that are built by columns, and facts."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.viz.wire import blocks


def test_columns_make_the_rows_of_a_table():
    by_columns = blocks.columns(("a", map(str, range(2))), ("b", ["x", "y"]), foot=["Σ", ""], marked=(1,))
    assert by_columns == blocks.table(["a", "b"], [["0", "x"], ["1", "y"]], foot=["Σ", ""], marked=(1,))
    with pytest.raises(ValueError, match="shorter"):
        blocks.columns(("a", ["0", "1"]), ("b", ["x"]))


def test_strips_of_a_column_share_their_scale():
    first, second = blocks.strips(np.array([[1.0, -4.0], [2.0, 0.0]]), ["a", "b"])
    assert (first["limit"], second["limit"], second["name"]) == (4.0, 4.0, "b")
    assert [strip["name"] for strip in blocks.strips(np.ones((2, 3)))] == ["", ""]


def test_a_fact_formats_its_number_and_fills_in_its_remark():
    assert blocks.fact("Error", np.float32(0.25), "of {n} heads", n=3) == ("Error", "0.250", "of 3 heads")
    assert blocks.fact("Time", "7 ms", "a step")[1] == "7 ms"


def test_panels_show_pictures_before_numbers_and_the_method_last():
    text, formula, facts = blocks.text("why"), blocks.formula("a + b"), blocks.facts()
    maps, table = blocks.maps(), blocks.table(["a"], [["0"]])
    titled = blocks.stack(blocks.text("of this map"), maps)
    assert blocks.arrange([text, formula, facts, titled, table, maps]) == [titled, maps, facts, table, text, formula]
    assert blocks.arrange([text, blocks.stack(text, table), blocks.work("key", "Begin", "slow")])[-1] == text

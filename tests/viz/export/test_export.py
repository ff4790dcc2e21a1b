"""Files of traces and maps read back equal; damaged and foreign files are refused."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from itertools import product

import numpy as np
import pytest

from attention_atlas.model.trace import storage
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.export import explained, standalone, table
from attention_atlas.viz.maps.reduce import View, score_map
from tests.conftest import score_map_of


def assert_equal(a: TranslationTrace, b: TranslationTrace) -> None:
    for field in dataclasses.fields(TranslationTrace):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype and np.array_equal(x, y), field.name
        elif field.name in {kind.value for kind in TRANSFORMER_KINDS}:
            assert np.array_equal(x.weights, y.weights) and x.weights.dtype == y.weights.dtype
            assert (x.query_tokens, x.key_tokens) == (y.query_tokens, y.key_tokens)
        else:
            assert x == y, field.name


def test_json_and_npz_read_back_equal(hand_made_trace, tiny_translator):
    for trace in (hand_made_trace, tiny_translator.translate("Der kleine Hund schläft.")):
        assert_equal(storage.from_json(storage.to_json(trace)), trace)
        assert_equal(storage.from_npz(storage.to_npz(trace)), trace)
    fields = json.loads(storage.to_json(hand_made_trace))
    assert fields["schema"] == "attention-atlas-trace" and fields["version"] == 2
    assert np.shape(fields["cross"]["weights"]) == hand_made_trace.cross.weights.shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a trace"),
        ('{"schema": "other"}', "not a trace"),
        ('{"schema": "attention-atlas-trace", "version": 9}', "version 9"),
        ('{"schema": "attention-atlas-trace", "version": 1}', "lacks"),
    ],
)
def test_from_json_refuses_invalid_text(text, message):
    with pytest.raises(ValueError, match=message):
        storage.from_json(text)


def test_weights_that_do_not_sum_to_one_are_refused(hand_made_trace):
    fields = json.loads(storage.to_json(hand_made_trace))
    fields["cross"]["weights"][0][0][0][0] += 0.5
    with pytest.raises(ValueError, match="sums to 1"):
        storage.from_json(json.dumps(fields))


def test_csv_reads_back_as_the_same_float32(hand_made_trace):
    for kind, special, words in product(TRANSFORMER_KINDS, ("show", "hide", "renormalise"), (False, True)):
        scores = score_map(hand_made_trace, View(kind, 1, 2, special=special, words=words, predicted=True))
        rows, columns, values = table.from_csv(table.to_csv(scores))
        assert (rows, columns) == (scores.rows, scores.columns)
        assert np.array_equal(values, scores.values, equal_nan=True)


FORMULAS = ("=HYPERLINK(1)", "+1+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "＝1", "'=1", "''-", "'s", "a=1", "")


def test_csv_labels_are_no_formulas_and_read_back():
    scores = score_map_of(FORMULAS, -0.5)
    text = table.to_csv(scores)
    rows, columns, values = table.from_csv(text)
    assert (rows, columns) == (FORMULAS, FORMULAS) and np.array_equal(values, scores.values)
    row = {"method": "=1", "evidence": "measured", "unit": "nats", "values": [-0.5] * len(FORMULAS)}
    answer = explained.to_csv(explained.Explained({"columns": FORMULAS, "rows": [row]})).decode()
    numbers = {"-0.5"}
    for cells in csv.reader(io.StringIO(text + answer, newline="")):
        assert not [cell for cell in set(cells) - numbers if cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝"))]


def test_html_is_one_file_without_external_urls(hand_made_trace):
    page = standalone.to_html(hand_made_trace)
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)\s*=\s*["']""", own)
    assert "<img src=x" not in page and "${alert(1)}" in page
    data = re.search(r'<script type="application/json" class="payload">(.*?)</script>', page, re.DOTALL)[1]
    packed = json.loads(data)
    source = packed["tokens"]["source"]
    assert tuple(source["raw"]) == hand_made_trace.source_tokens and source["special"] == [1, 0, 0, 0, 0, 0, 0, 1]
    assert len(packed["blocks"]) == 3 and all(block["codec"] == "float32" for block in packed["blocks"])

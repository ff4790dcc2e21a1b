"""The page's maps (viz/web/explorer/model.js) equal those of Python (viz/maps/reduce.py, viz/figures/attention.py).

The scripts run on an empty page; both sides start from the same payload.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest

from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.viz.export import table
from attention_atlas.viz.figures.attention import ColourScale, Transform, strongest_edges
from attention_atlas.viz.maps import reduce
from attention_atlas.viz.maps.reduce import Combine, Special, View, score_map
from attention_atlas.viz.wire import payload
from attention_atlas.viz.wire.codecs import CODECS, HALF, ROOT, SMALL
from bench.made.synthetic import random_trace
from tests.conftest import score_map_of

TOLERANCE = 1e-4  # of sums in float32 on weights sent with 16 bits
SOME_HEADS = ((0, 1), (1, 0), (1, 3))


@pytest.fixture()
def script_page(open_modules):
    """Return an empty page with the explorer's scripts that compute maps."""
    return open_modules(*(f"explorer/{name}.js" for name in ("trace", "model", "state", "views/scale")))


def load(page, trace, **options) -> None:
    data = json.loads(json.dumps(payload.payload(trace, **options)))
    page.evaluate("async (data) => { window.trace = await atlas.Trace.from(data); }", data)


def all_views():
    """Yield a view for each combination of options."""
    for kind, combine, words, special, predicted in product(
        TRANSFORMER_KINDS, Combine, (False, True), Special, (False, True)
    ):
        selections = ((), SOME_HEADS) if combine in (Combine.MEAN, Combine.MAX) else ((),)
        for heads in selections:
            yield View(kind, 1, 2, heads, combine, words, special, predicted)


MAPS = """(options) => options.map((view) => {
  const map = atlas.scoreMap(trace, view);
  return { values: Array.from(map.values, (v) => (Number.isNaN(v) ? null : v)), rows: map.rows.map((r) => r.label),
    columns: map.columns.map((c) => c.label), rowPositions: map.rows.map((r) => r.positions),
    columnPositions: map.columns.map((c) => c.positions), unit: map.unit, attention: map.attention,
    hidden: map.hidden };
})"""


def assert_same(drawn: dict, expected) -> None:
    assert (drawn["rows"], drawn["columns"]) == (list(expected.rows), list(expected.columns))
    assert drawn["rowPositions"] == [list(p) for p in expected.row_positions]
    assert drawn["columnPositions"] == [list(p) for p in expected.column_positions]
    values = np.array([np.nan if v is None else v for v in drawn["values"]]).reshape(expected.values.shape)
    assert np.allclose(values, expected.values, atol=TOLERANCE, equal_nan=True)
    assert (drawn["unit"], drawn["attention"]) == (expected.unit, expected.attention)
    assert drawn["hidden"] == (None if expected.hidden is None else pytest.approx(expected.hidden, abs=TOLERANCE))


def test_every_view_gives_the_same_map_as_python(script_page, hand_made_trace):
    load(script_page, hand_made_trace)
    views = list(all_views())
    for view, drawn in zip(views, script_page.evaluate(MAPS, [asdict(view) for view in views])):
        assert_same(drawn, score_map(hand_made_trace, view))


def test_the_page_decodes_every_codec_as_python_does(script_page):
    random = np.random.default_rng(5)
    values = np.concatenate([random.normal(0, 3, 50), [0.0, -7.25, np.nan], np.logspace(-9, -1, 9)]).astype(np.float32)
    for codec in CODECS.values():
        in_range = np.abs(np.nan_to_num(values)) / 10 if codec in (ROOT, SMALL, HALF) else values
        data = codec.encode(in_range)
        decoded = script_page.evaluate(
            """async ([name, data]) => { const { CODECS, unpack } = atlas;
               return Array.from(CODECS[name](await unpack(data)), (v) => (Number.isNaN(v) ? null : v)); }""",
            [codec.name, data],
        )
        decoded = np.array([np.nan if v is None else v for v in decoded], np.float32)
        assert np.allclose(decoded, codec.decode(data, values.shape), rtol=1e-6, atol=0, equal_nan=True)


def test_exact_payloads_are_exact(script_page, hand_made_trace):
    load(script_page, hand_made_trace, exact=True)
    weights = script_page.evaluate("Array.from(trace.head('cross', 2, 3))")
    assert np.array_equal(np.array(weights, np.float32), hand_made_trace.cross.weights[2, 3].ravel())


def test_csv_of_the_page_equals_pythons(script_page, hand_made_trace):
    load(script_page, hand_made_trace, exact=True)
    for view in (
        View("cross", 1, 2),
        View("decoder_self", 1, 1, special="renormalise", predicted=True),
        View("encoder_self", 0, 0, words=True),
    ):
        text = script_page.evaluate(
            "(view) => { const m = atlas; return m.toCsv(m.scoreMap(trace, view)); }",
            asdict(view),
        )
        expected = score_map(hand_made_trace, view)
        rows, columns, values = table.from_csv(text)
        assert (rows, columns) == (expected.rows, expected.columns)
        assert np.allclose(values, expected.values, rtol=1e-6, atol=0, equal_nan=True)
        if not view.words and view.special == Special.SHOW:
            assert np.array_equal(values, expected.values)


def test_csv_of_the_page_escapes_formulas(script_page):
    labels = ("=1", "+1", "-1", "@a", "\t1", "＝1", "'=1", "'s", "a")
    text = script_page.evaluate(
        """(labels) => { const named = labels.map((label) => ({ label }));
           return atlas.toCsv({ rows: named, columns: named, values: new Float32Array(labels.length ** 2) }); }""",
        labels,
    )
    assert text == table.to_csv(score_map_of(labels, 0)).replace("0.0", "0")
    assert table.from_csv(text)[:2] == (labels, labels)


def test_the_strongest_edges_are_the_same(script_page, hand_made_trace):
    load(script_page, hand_made_trace, exact=True)
    for coverage, kind in product((0.05, 0.5, 0.9, 1.0), TRANSFORMER_KINDS):
        view = View(kind, 1, 3)
        edges = script_page.evaluate(
            """([view, coverage]) => { const m = atlas;
               return m.strongestEdges(m.scoreMap(trace, view), coverage).map((e) => [e.row, e.column, e.value]); }""",
            [asdict(view), coverage],
        )
        expected = strongest_edges(score_map(hand_made_trace, view), coverage)
        assert [(r, c) for r, c, _ in edges] == [(r, c) for r, c, _ in expected]


def test_colours_and_legends_agree(script_page):
    weights = [0.0, 1e-9, 1e-5, 1e-4, 0.003, 0.05, 0.37, 0.9, 1.0]
    for transform, maximum in product(Transform, (1.0, 0.37)):
        scale = ColourScale(transform=transform, maximum=maximum)
        scaled = script_page.evaluate(
            """([transform, maximum, weights]) => { const m = atlas;
               return [weights.map(m.createPlacer(transform, maximum)), m.scaleTicks(transform, maximum)]; }""",
            [transform.value, maximum, weights],
        )
        assert np.allclose(scaled[0], scale.apply(np.array(weights)), atol=1e-9)
        places, texts = scale.ticks()
        assert np.allclose(scaled[1]["places"], places, atol=1e-9)
        assert [float(t.removeprefix("≤ ")) for t in scaled[1]["texts"]] == [float(t.removeprefix("≤ ")) for t in texts]


def test_a_signed_scale_has_zero_in_its_middle(script_page):
    values = [-9.0, -3.0, -0.3, -1e-9, 0.0, 2e-4, 0.03, 3.0]
    for transform, maximum in product(Transform, (1.0, 3.0)):
        place, (places, texts) = script_page.evaluate(
            """([transform, maximum, values]) => { const m = atlas;
               const ticks = m.scaleTicks(transform, maximum, true);
               return [values.map(m.createPlacer(transform, maximum, true)), [ticks.places, ticks.texts]]; }""",
            [transform.value, maximum, values],
        )
        above = ColourScale(transform=transform, maximum=maximum).apply(np.abs(values))
        assert np.allclose(place, 0.5 + np.sign(values) * above / 2, atol=1e-9)
        assert places == sorted(places) and (places[0], places[2], places[4]) == (0, 0.5, 1)
        assert texts[0] == f"−{maximum:g}" and texts[4] == f"{maximum:g}" and texts[2].lstrip("≈ ") == "0"


def test_long_inputs_are_completed_layer_by_layer(script_page):
    trace = random_trace(64, 70, layers=3)
    load(script_page, trace, max_bytes=200_000)
    view = asdict(View("cross", 1, 2, combine="rollout"))
    missing = script_page.evaluate("(view) => atlas.missingLayers(trace, view)", view)
    assert sorted(map(tuple, missing)) == sorted(
        [("encoder_self", i) for i in range(3)] + [("decoder_self", 0), ("decoder_self", 1), ("cross", 1)]
    )
    assert [script_page.evaluate("(kind) => trace.lacks(kind)", kind.value) for kind in TRANSFORMER_KINDS] == [
        kind is not AttentionKind.CROSS for kind in TRANSFORMER_KINDS
    ]
    assert script_page.evaluate("trace.thumbnail('encoder_self', 2, 7, 40)") is None
    script_page.evaluate(
        "(thumbnails) => trace.add({ thumbnails: [thumbnails] })", payload.thumbnails(trace, AttentionKind.ENCODER_SELF)
    )
    pooled = script_page.evaluate(
        "(() => { const t = trace.thumbnail('encoder_self', 2, 7, 40);"
        " return [t.rows, t.columns, Array.from(t.values)]; })()"
    )
    expected = reduce.pool(trace.encoder_self.weights[2, 7], 40)
    values = np.array(pooled[2]).reshape(pooled[:2])
    assert np.abs(values**0.25 - expected**0.25).max() < 0.51 / 255
    for kind, layer in missing:
        block = payload.block(trace, AttentionKind(kind), layer, layer + 1)
        script_page.evaluate("(block) => trace.add({ layers: [block] })", block)
    assert script_page.evaluate("(view) => atlas.missingLayers(trace, view)", view) == []
    assert_same(script_page.evaluate(MAPS, [view])[0], score_map(trace, View("cross", 1, 2, combine="rollout")))
    thumbnail = script_page.evaluate("Array.from(trace.thumbnail('cross', 0, 3, 32).values)")
    assert np.allclose(np.array(thumbnail), reduce.pool(trace.cross.weights[0, 3], 32).ravel(), atol=1e-4)


def test_links_restore_the_state_and_ignore_invalid_fields(script_page):
    state = {
        "kind": "decoder_self",
        "layer": 2,
        "head": 3,
        "view": "lines",
        "combine": "max",
        "words": True,
        "glosses": "all",
        "heads": [[0, 1], [2, 3]],
        "special": "renormalise",
        "predicted": {"cross": False, "decoder_self": True, "alignment": False},
        "transform": "log",
        "colours": "greys",
        "range": "own",
        "coverage": 85,
        "query": 4,
        "key": 0,
        "compare": "grid",
        "overlay": "a_score",
        "beside": "Der Hund & die Katze?",
        "lines": "alignment",
    }
    text = "Größe & <b>x</b> #1 = 100 % ${y} שלום 😀\nzweite Zeile"
    fragment = script_page.evaluate(
        "([s, t]) => atlas.toFragment(s, { text: t, direction: 'de-en', checkpoint: 'b' })",
        [state, text],
    )
    parsed = script_page.evaluate("(f) => atlas.parseFragment('#' + f)", fragment)
    plain = {"text": text, "direction": "de-en", "checkpoint": "b", "interventions": ""}
    assert parsed == {**plain, "state": state}
    read = "(f) => atlas.parseFragment(f)"
    assert script_page.evaluate(read, "#top") is None and script_page.evaluate(read, "") is None
    initial = script_page.evaluate("atlas.initialState()")
    nonsense = (
        "#v=2&text=x&overlay=%3Cb%3E&kind=sideways&layer=-3&head=1e9&view=%3Cscript%3E&heads=a.b 1.2.3&coverage=0"
    )
    assert script_page.evaluate(read, nonsense)["state"] == initial

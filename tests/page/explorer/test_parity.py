"""What the page computes (viz/web/explorer/model.js) equals what Python computes (viz/maps/reduce.py and
viz/figures/attention.py).

The scripts run in the tests' browser on an empty page; both sides start from the same payload.
"""

from __future__ import annotations

import json
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
from tests.page.browser import load_modules

TOLERANCE = 1e-4  # float32 arithmetic on weights that travelled exactly
SOME_HEADS = ((0, 1), (1, 0), (1, 3))


@pytest.fixture()
def script_page(open_page):
    """An empty page with the explorer's computing scripts."""
    page = open_page("about:blank")
    load_modules(page, *(f"explorer/{name}.js" for name in ("trace", "model", "state", "views/scale")))
    return page


def load(page, trace, **options) -> None:
    data = json.loads(json.dumps(payload.payload(trace, **options)))
    page.evaluate("async (data) => { window.trace = await atlas.Trace.from(data); }", data)


def views():
    for kind, combine, words, special, predicted in product(
        TRANSFORMER_KINDS, Combine, (False, True), Special, (False, True)
    ):
        heads = ((), SOME_HEADS) if combine in (Combine.MEAN, Combine.MAX) else ((),)
        for chosen in heads:
            yield View(kind, 1, 2, chosen, combine, words, special, predicted)


def as_options(view: View) -> dict:
    return {
        "kind": view.kind.value,
        "layer": view.layer,
        "head": view.head,
        "heads": [list(h) for h in view.heads],
        "combine": view.combine.value,
        "words": view.words,
        "special": view.special.value,
        "predicted": view.predicted,
    }


MAPS = """(options) => options.map((view) => {
  const map = atlas.scoreMap(trace, view);
  return { values: Array.from(map.values, (v) => (Number.isNaN(v) ? null : v)), rows: map.rows.map((r) => r.label),
    columns: map.columns.map((c) => c.label), rowPositions: map.rows.map((r) => r.positions),
    columnPositions: map.columns.map((c) => c.positions), unit: map.unit, attention: map.attention,
    hidden: map.hidden };
})"""


def assert_same(found: dict, expected) -> None:
    assert (found["rows"], found["columns"]) == (list(expected.rows), list(expected.columns))
    assert found["rowPositions"] == [list(p) for p in expected.row_positions]
    assert found["columnPositions"] == [list(p) for p in expected.column_positions]
    values = np.array([np.nan if v is None else v for v in found["values"]]).reshape(expected.values.shape)
    assert np.allclose(values, expected.values, atol=TOLERANCE, equal_nan=True)
    assert (found["unit"], found["attention"]) == (expected.unit, expected.attention)
    assert found["hidden"] == (None if expected.hidden is None else pytest.approx(expected.hidden, abs=TOLERANCE))


def test_every_option_gives_pythons_map(script_page, hand_made_trace):
    load(script_page, hand_made_trace)
    chosen = list(views())
    for view, found in zip(chosen, script_page.evaluate(MAPS, [as_options(view) for view in chosen])):
        assert_same(found, score_map(hand_made_trace, view))


def test_every_head_arrives_right_to_three_decimals(script_page, hand_made_trace):
    load(script_page, hand_made_trace)
    for kind in TRANSFORMER_KINDS:
        weights = hand_made_trace.maps(kind).weights
        layers, heads = weights.shape[:2]
        chosen = [View(kind, layer, head) for layer, head in product(range(layers), range(heads))]
        for view, found in zip(chosen, script_page.evaluate(MAPS, [as_options(view) for view in chosen])):
            values = np.array(found["values"]).reshape(weights.shape[2:])
            assert np.abs(values - weights[view.layer, view.head]).max() < 3.1e-5


def test_the_page_reads_what_python_reads(script_page):
    random = np.random.default_rng(5)
    values = np.concatenate([random.normal(0, 3, 50), [0.0, -7.25, np.nan], np.logspace(-9, -1, 9)]).astype(np.float32)
    for codec in CODECS.values():
        given_values = np.abs(np.nan_to_num(values)) / 10 if codec in (ROOT, SMALL, HALF) else values
        data = codec.encode(given_values)
        found = script_page.evaluate(
            """async ([name, data]) => { const { CODECS, unpack } = atlas;
               return Array.from(CODECS[name](await unpack(data)), (v) => (Number.isNaN(v) ? null : v)); }""",
            [codec.name, data],
        )
        read = np.array([np.nan if v is None else v for v in found], np.float32)
        assert np.allclose(read, codec.decode(data, values.shape), rtol=1e-6, atol=0, equal_nan=True)


def test_exact_payloads_are_exact(script_page, hand_made_trace):
    load(script_page, hand_made_trace, exact=True)
    found = script_page.evaluate("Array.from(trace.head('cross', 2, 3))")
    assert np.array_equal(np.array(found, np.float32), hand_made_trace.cross.weights[2, 3].ravel())


def test_csv_of_the_page_is_the_same_table(script_page, hand_made_trace):
    load(script_page, hand_made_trace, exact=True)
    for view in (
        View("cross", 1, 2),
        View("decoder_self", 1, 1, special="renormalise", predicted=True),
        View("encoder_self", 0, 0, words=True),
    ):
        text = script_page.evaluate(
            "(view) => { const m = atlas; return m.toCsv(m.scoreMap(trace, view)); }",
            as_options(view),
        )
        expected = score_map(hand_made_trace, view)
        rows, columns, values = table.from_csv(text)
        assert (rows, columns) == (expected.rows, expected.columns)
        assert np.allclose(values, expected.values, rtol=1e-6, atol=0, equal_nan=True)
        if not view.words and view.special == Special.SHOW:
            assert np.array_equal(values, expected.values)


def test_csv_of_the_page_has_no_formula(script_page):
    labels = ("=1", "+1", "-1", "@a", "\t1", "＝1", "'=1", "'s", "a")
    text = script_page.evaluate(
        """(labels) => { const named = labels.map((label) => ({ label }));
           return atlas.toCsv({ rows: named, columns: named, values: new Float32Array(labels.length ** 2) }); }""",
        labels,
    )
    assert text == table.to_csv(score_map_of(labels, 0)).replace("0.0", "0")
    assert table.from_csv(text)[:2] == (labels, labels)


def test_lines_choose_the_same_edges(script_page, hand_made_trace):
    load(script_page, hand_made_trace, exact=True)
    for coverage, kind in product((0.05, 0.5, 0.9, 1.0), TRANSFORMER_KINDS):
        view = View(kind, 1, 3)
        found = script_page.evaluate(
            """([view, coverage]) => { const m = atlas;
               return m.strongestEdges(m.scoreMap(trace, view), coverage).map((e) => [e.row, e.column, e.value]); }""",
            [as_options(view), coverage],
        )
        expected = strongest_edges(score_map(hand_made_trace, view), coverage)
        assert [(r, c) for r, c, _ in found] == [(r, c) for r, c, _ in expected]


def test_colours_and_legends_agree(script_page):
    weights = [0.0, 1e-9, 1e-5, 1e-4, 0.003, 0.05, 0.37, 0.9, 1.0]
    for transform, maximum in product(Transform, (1.0, 0.37)):
        scale = ColourScale(transform=transform, maximum=maximum)
        found = script_page.evaluate(
            """([transform, maximum, weights]) => { const m = atlas;
               return [weights.map(m.createPlacer(transform, maximum)), m.scaleTicks(transform, maximum)]; }""",
            [transform.value, maximum, weights],
        )
        assert np.allclose(found[0], scale.apply(np.array(weights)), atol=1e-9)
        places, texts = scale.ticks()
        assert np.allclose(found[1]["places"], places, atol=1e-9)
        assert [float(t.removeprefix("≤ ")) for t in found[1]["texts"]] == [float(t.removeprefix("≤ ")) for t in texts]


def test_a_signed_scale_has_zero_in_its_middle(script_page):
    values = [-9.0, -3.0, -0.3, -1e-9, 0.0, 2e-4, 0.03, 3.0]
    for transform, maximum in product(Transform, (1.0, 3.0)):
        place, (places, texts) = script_page.evaluate(
            """([transform, maximum, values]) => { const m = atlas;
               const found = m.scaleTicks(transform, maximum, true);
               return [values.map(m.createPlacer(transform, maximum, true)), [found.places, found.texts]]; }""",
            [transform.value, maximum, values],
        )
        above = ColourScale(transform=transform, maximum=maximum).apply(np.abs(values))
        assert np.allclose(place, 0.5 + np.sign(values) * above / 2, atol=1e-9)
        assert places == sorted(places) and (places[0], places[2], places[4]) == (0, 0.5, 1)
        assert texts[0] == f"−{maximum:g}" and texts[4] == f"{maximum:g}" and texts[2].lstrip("≈ ") == "0"


def test_long_inputs_are_completed_layer_by_layer(script_page):
    trace = random_trace(64, 70, layers=3)
    load(script_page, trace, max_bytes=200_000)
    view = as_options(View("cross", 1, 2, combine="rollout"))
    missing = script_page.evaluate("(view) => atlas.missingLayers(trace, view)", view)
    assert sorted(map(tuple, missing)) == sorted(
        [("encoder_self", i) for i in range(3)] + [("decoder_self", 0), ("decoder_self", 1), ("cross", 1)]
    )
    assert [script_page.evaluate("(kind) => trace.lacks(kind)", kind.value) for kind in TRANSFORMER_KINDS] == [
        kind is not AttentionKind.CROSS for kind in TRANSFORMER_KINDS
    ]
    assert script_page.evaluate("trace.thumbnail('encoder_self', 2, 7, 40)") is None
    script_page.evaluate("(one) => trace.addThumbnails(one)", payload.thumbnails(trace, AttentionKind.ENCODER_SELF))
    pooled = script_page.evaluate(
        "(() => { const t = trace.thumbnail('encoder_self', 2, 7, 40);"
        " return [t.rows, t.columns, Array.from(t.values)]; })()"
    )
    expected = reduce.pool(trace.encoder_self.weights[2, 7], 40)
    found = np.array(pooled[2]).reshape(pooled[:2])
    assert np.abs(found**0.25 - expected**0.25).max() < 0.51 / 255
    for kind, layer in missing:
        block = payload.block(trace, AttentionKind(kind), layer, layer + 1)
        script_page.evaluate("(block) => trace.add(block)", block)
    assert script_page.evaluate("(view) => atlas.missingLayers(trace, view)", view) == []
    assert_same(script_page.evaluate(MAPS, [view])[0], score_map(trace, View("cross", 1, 2, combine="rollout")))
    own = script_page.evaluate("Array.from(trace.thumbnail('cross', 0, 3, 32).values)")
    assert np.allclose(np.array(own), reduce.pool(trace.cross.weights[0, 3], 32).ravel(), atol=1e-4)


def test_links_bring_back_the_state_and_survive_nonsense(script_page):
    state = {
        "kind": "decoder_self",
        "layer": 2,
        "head": 3,
        "view": "lines",
        "combine": "max",
        "words": True,
        "glosses": True,
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
    }
    text = "Größe & <b>x</b> #1 = 100 % ${y} שלום 😀\nzweite Zeile"
    fragment = script_page.evaluate(
        "([s, t]) => atlas.toFragment(s, { text: t, direction: 'de-en', checkpoint: 'b' })",
        [state, text],
    )
    found = script_page.evaluate("(f) => atlas.parseFragment('#' + f)", fragment)
    plain = {"text": text, "direction": "de-en", "checkpoint": "b", "interventions": ""}
    assert found == {**plain, "state": state}
    read = "(f) => atlas.parseFragment(f)"
    assert script_page.evaluate(read, "#top") is None and script_page.evaluate(read, "") is None
    initial = script_page.evaluate("atlas.initialState()")
    nonsense = (
        "#text=x&overlay=%3Cb%3E&kind=sideways&layer=-3&head=1e9&view=%3Cscript%3E&heads=a.b 1.2.3&coverage=NaN&query=0"
    )
    assert script_page.evaluate(read, nonsense)["state"] == initial

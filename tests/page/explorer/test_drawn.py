"""The page reports the weights that it draws, and the panel Verify compares them with the trace."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.panels.verify.checks import drawn_error
from attention_atlas.viz.wire import payload
from attention_atlas.viz.wire.codecs import ROOT
from attention_atlas.viz.wire.readback import PAYLOAD_TOLERANCE
from bench.made.synthetic import random_trace
from tests.page.browser import open_more, submit, use_modules

pytestmark = pytest.mark.browser
CHECK = "#panel-verify tr:has-text('Drawn on the page = trace')"


def test_the_page_encodes_what_it_draws_as_python_encodes_it(open_modules):
    page = open_modules("explorer/trace.js")
    for seed in range(3):
        encoded = ROOT.encode(np.random.default_rng(seed).dirichlet(np.full(9, 0.2), size=(4, 7)).astype(np.float32))
        decode_and_encode = "async (data) => atlas.encodeWeights(atlas.decodeWeights(await atlas.unpack(data)))"
        assert page.evaluate(decode_and_encode, encoded) == encoded


def test_a_changed_weight_is_reported_and_rounding_is_not():
    trace = random_trace(6, 5, layers=2, heads=2)

    def report(change: float) -> dict:
        layers = {kind.value: [ROOT.encode(layer) for layer in trace.maps(kind).weights] for kind in trace.kinds}
        weights = trace.cross.weights[1].copy()
        weights[1, 2, 3] = min(1.0, weights[1, 2, 3] + change)
        layers["cross"][1] = ROOT.encode(weights)
        return {"key": trace.key, "layers": layers}

    assert drawn_error(trace, report(0.0))[0] <= PAYLOAD_TOLERANCE and drawn_error(trace, report(0.0))[1] == 6
    assert drawn_error(trace, report(2e-6))[0] <= PAYLOAD_TOLERANCE, "another process may round differently"
    assert drawn_error(trace, report(1e-3))[0] > PAYLOAD_TOLERANCE


def test_invalid_reports_are_refused():
    trace = random_trace(6, 5, layers=2, heads=2)
    reports = [None, "x", {}, {"key": 7, "layers": {}}]
    for layers in ("", "=", "=????", 5, [], "H4sIAAAA", "=" + "A" * 10**6):
        reports.append({"key": trace.key, "layers": {kind.value: [None, layers] for kind in trace.kinds}})
    for report in (*reports, {"key": trace.key, "layers": None}, {"key": trace.key, "layers": {"cross": ["0"]}}):
        with pytest.raises(Refusal, match="has not drawn"):
            drawn_error(trace, report)


@pytest.mark.long
def test_what_the_page_draws_is_verified_layer_by_layer(tiny_url, open_page):
    page = open_page(tiny_url)
    page.wait_for_selector(".atlas-explorer .thumbnail")
    open_more(page, "Verify")
    row = page.locator(CHECK)
    expect(row).to_contain_text("8 of 8 layers", timeout=60_000)
    expect(row.locator(".verdict")).to_have_class("verdict yes")
    page.locator("#verify-again").click()
    page.wait_for_function("Number(document.querySelector('#panel-verify .atlas-panel').dataset.drawn) > 2")
    expect(row).to_contain_text("8 of 8 layers", timeout=60_000)
    expect(row.locator(".verdict")).to_have_class("verdict yes")


@pytest.mark.long
def test_drawing_other_weights_fails_verification(tiny_url, open_page, monkeypatch):
    block = payload.block

    def swapped(trace, kind, first, last, **options):
        original = block(trace, kind, first, last, **options)
        if options.get("exact"):  # for a file, not for the page
            return original
        weights = trace.maps(kind).weights[first:last].copy()
        weights[-1, [0, 1]] = weights[-1, [1, 0]]  # two heads of the last layer change places
        return {**original, "data": ROOT.encode(weights)}

    monkeypatch.setattr(payload, "block", swapped)
    page = open_page(tiny_url)
    page.wait_for_selector(".atlas-explorer .thumbnail")
    use_modules(page, "core/links.js")
    before = page.evaluate("atlas.explorerMaps.weights().key")
    submit(page, "Zwei Kinder bauen eine Burg.")
    page.wait_for_function("before => atlas.explorerMaps.weights().key !== before", arg=before)
    open_more(page, "Verify")
    expect(page.locator(f"{CHECK} .verdict")).to_have_class("verdict no")


def test_pinning_a_word_selects_its_least_certain_token(open_modules):
    page = open_modules("explorer/state.js")
    trace = {"tokens": {"predicted": {"log_probability": [-0.1, -0.9, -0.1, -2.0]}}}
    word = {"rows": [{"positions": [0, 1, 2]}, {"positions": [3]}], "columns": [{"positions": [0, 1]}]}

    def pinned(kind: str, trace: dict) -> int:
        state = {"kind": kind, "query": None, "key": None}
        cell = {"row": 0, "column": None}
        return page.evaluate("arguments => atlas.togglePin(...arguments).query", [state, word, trace, cell])

    assert pinned("cross", trace) == pinned("decoder_self", trace) == 1
    assert pinned("encoder_self", trace) == 0
    assert pinned("cross", {"tokens": {"predicted": {}}}) == 0, "files of earlier versions have no probabilities"


def test_another_kind_clears_selected_heads_and_a_layer_mean_is_paged_by_layer(open_modules):
    page = open_modules("explorer/state.js")
    state = page.evaluate("atlas.initialState()") | {"kind": "cross", "layer": 1, "head": 6}
    several = state | {"heads": [[0, 1], [1, 6]], "combine": "mean"}
    other = page.evaluate("state => atlas.changeState(state, { kind: 'encoder_self' })", several)
    assert other["heads"] == [] and other["combine"] == "single"
    assert page.evaluate("state => atlas.changeState(state, { combine: 'mean' }).combine", other) == "mean"
    paged = "([state, by]) => atlas.pageHead(state, { layers: 4, heads: 8 }, by)"
    assert page.evaluate(paged, [state, 2]) == {"layer": 2, "head": 0}
    assert page.evaluate(paged, [state | {"combine": "mean"}, 1]) == {"layer": 2, "head": 6}

"""Visitors' state: apart from one another, bounded, and not crowded out by callers of the API."""

from __future__ import annotations

import gradio as gr
import numpy as np
import pytest
from gradio_client import Client

import app
from bench.load import Caller
from bench.synthetic import random_trace
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.maps.branches import Tree
from viz.ui.server import visitors


@pytest.fixture()
def demo(serve, tiny_translator) -> gr.Blocks:
    page = app.build_demo(Translators([tiny_translator]))
    page.url = serve(page)
    return page


def remembered(demo: gr.Blocks) -> list[TranslationTrace]:
    """The translation that each visitor's page shows, the longest idle visitor's first."""
    header = next(block._id for block in demo.blocks.values()
                  if isinstance(block, gr.State) and isinstance(block.value, TranslationTrace))
    return [session.state_data[header] for session in demo.app.state_holder.session_data.values()
            if header in session.state_data]


def test_each_visitor_has_a_state_of_their_own_and_only_so_many_are_kept(demo):
    port = int(demo.url.rsplit(":", 1)[1].strip("/"))
    demo.app.state_holder.capacity = 4
    texts = [f"Ein Hund und {number} Katzen." for number in range(9)]
    for text in texts:
        Caller(port).visit(text)
    assert [trace.source_text for trace in remembered(demo)] == texts[-4:]
    assert len(demo.app.state_holder.session_data) == 4
    configs = [session.config_values for session in demo.app.state_holder.session_data.values()]
    shared = [key for key in configs[0] if configs[0][key] and configs[0][key] is configs[1][key]
              and "props" in configs[0][key]]
    assert not shared, "visitors share what their pages show"


def test_callers_of_the_api_take_no_visitor_s_place(demo):
    port = int(demo.url.rsplit(":", 1)[1].strip("/"))
    Caller(port).visit("Ein Hund.")
    before = dict(demo.app.state_holder.session_data)
    caller = Caller(port)
    for _ in range(5):
        assert caller.call("translate", ["Eine Katze.", ""])["status"] == "ok"
    assert dict(demo.app.state_holder.session_data) == before
    assert [trace.source_text for trace in remembered(demo)] == ["Ein Hund."]
    client = Client(demo.url, verbose=False, analytics_enabled=False)
    assert client.predict("Eine Katze.", api_name="/translate")["status"] == "ok"


def test_beyond_their_bytes_the_one_longest_idle_is_forgotten_first(demo):
    """Traces of arrays that weigh something: three fit, whoever they are of; the one who comes back is not the next."""
    store = visitors.Visitors(demo, limit=3_500_000)
    key = next(block._id for block in demo.blocks.values() if isinstance(block, gr.State))

    def trace(seed: int) -> TranslationTrace:
        return random_trace(64, 64, layers=4, heads=4, seed=seed)  # 0.8 MB of maps

    size = visitors.held_bytes(trace(0))
    assert 700_000 < size < 1_000_000
    for number, name in enumerate("abcd"):
        store[name][key] = trace(number)
    assert list(store.session_data) == ["a", "b", "c", "d"]
    assert store["a"][key] is not None  # comes back
    store["e"][key] = trace(4)
    assert list(store.session_data) == ["c", "d", "a", "e"]
    store["e"][key] = (trace(5), trace(6), trace(7), trace(8))  # one who needs all of it
    assert list(store.session_data) == ["e"]
    assert sum(visitor.held for visitor in store.session_data.values()) == pytest.approx(4 * size, rel=0.05)


def test_what_stands_in_two_states_counts_once(demo):
    one = random_trace(20, 20)
    assert visitors.held_bytes([one, (one,), one]) < visitors.held_bytes([one]) + 500
    view = np.zeros((100, 1000), np.float32)[:2]
    assert visitors.held_bytes([view]) > 400_000  # it keeps the whole alive
    tree = Tree.of(one)
    assert visitors.held_bytes([tree]) > 20 * 8

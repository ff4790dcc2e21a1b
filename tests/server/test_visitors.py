"""Visitors' state: apart from one another, bounded, and not crowded out by callers of the API."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from math import isqrt

import gradio as gr
import numpy as np
import pytest
import torch
from gradio_client import Client

from bench.load import Caller
from bench.made.synthetic import random_trace
from model.checkpoint import Checkpoint
from model.serve.limits import BatchLimits
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.translator import Translator
from model.translators import Translators
from tests.conftest import build_tiny_model
from viz import shell
from viz.maps.branches import Origin, Tree
from viz.questions.maps import layers
from viz.ui.gradio6 import visitors


@pytest.fixture()
def demo(tiny_translator) -> gr.Blocks:
    return shell.build(Translators([tiny_translator]))


@pytest.fixture()
def served(serve, demo) -> gr.Blocks:
    demo.url = serve(demo)
    return demo


def remembered(demo: gr.Blocks) -> list[TranslationTrace]:
    """The translation that each visitor's page shows, the longest idle visitor's first."""
    header = next(
        block._id
        for block in demo.blocks.values()
        if isinstance(block, gr.State) and isinstance(block.value, TranslationTrace)
    )
    return [
        session.state_data[header]
        for session in demo.app.state_holder.session_data.values()
        if header in session.state_data
    ]


def test_each_visitor_has_a_state_of_their_own_and_only_so_many_are_kept(served):
    demo, port = served, int(served.url.rsplit(":", 1)[1].strip("/"))
    demo.app.state_holder.capacity = 4
    texts = [f"Ein Hund und {number} Katzen." for number in range(9)]
    for text in texts:
        Caller(port).visit(text)
    assert [trace.source_text for trace in remembered(demo)] == texts[-4:]
    assert len(demo.app.state_holder.session_data) == 4
    configs = [session.config_values for session in demo.app.state_holder.session_data.values()]
    shared = [
        key
        for key in configs[0]
        if configs[0][key] and configs[0][key] is configs[1][key] and "props" in configs[0][key]
    ]
    assert not shared, "visitors share what their pages show"


def test_of_what_the_page_says_a_session_copies_only_what_it_is_told_anew(served):
    session = served.app.state_holder._new()
    own, page = session.config_values.maps
    assert not own
    key = next(key for key, config in page.items() if config and "value" in config["props"])
    before = page[key]["props"]["value"]
    session._update_value_in_config(key, "of this session")
    assert list(own) == [key] and page[key]["props"]["value"] == before
    assert own[key]["props"] == {**page[key]["props"], "value": "of this session"}
    assert [config["id"] for config in session.components] == [config["id"] for config in page.values() if config]


def test_callers_of_the_api_take_no_visitor_s_place(served):
    demo, port = served, int(served.url.rsplit(":", 1)[1].strip("/"))
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


def test_what_stands_in_two_states_counts_once():
    one = random_trace(20, 20)
    assert visitors.held_bytes([one, (one,), one]) < visitors.held_bytes([one]) + 500
    view = np.zeros((100, 1000), np.float32)[:2]
    assert visitors.held_bytes([view]) > 400_000  # it keeps the whole alive
    tree = Tree.of(one)
    assert visitors.held_bytes([tree]) > 20 * 8


# What a model of NLLB's size is held to, three hundred times smaller: a trace, and all visitors' together.
TRACE_BYTES = BatchLimits().trace_bytes // 320
ALL_BYTES = visitors.REMEMBERED_BYTES // 320
VISITORS, WORDS = 50, 400
FORGOTTEN = "This translation is no longer remembered: translate the sentence again."


@pytest.fixture(scope="module")
def scaled(tokenizer) -> Translator:
    """A model of which a text of all the tokens that it may have takes a trace as large as may be."""
    model = build_tiny_model(tokenizer, num_heads=8, num_encoder_layers=4, num_decoder_layers=4, max_length=96)
    return Translator(
        Checkpoint("scaled", model, tokenizer, ("de-en",), {}, "7" * 16),
        torch.device("cpu"),
        limits=BatchLimits(trace_bytes=TRACE_BYTES, tokens=isqrt(TRACE_BYTES // (4 * 8 * 12))),
    )


def longest(translator: Translator, number: int) -> str:
    """A text of a visitor's own, of as many words as fit."""
    words = [f"{number:02}"]
    while translator.fits(" ".join([*words, "Hund"]), "de-en"):
        words.append("Hund")
    return " ".join(words)


def held(store: visitors.Visitors) -> int:
    return sum(visitors.held_bytes(list(visitor.state_data.values())) for visitor in store.session_data.values())


@pytest.mark.long
def test_fifty_visitors_of_a_large_model_stay_within_its_bounds_or_are_refused_in_words(scaled):
    """With traces and branches of their own: of the longest text that is allowed, and of one that is not."""
    demo = shell.build(Translators([scaled]))
    store = visitors.Visitors(demo, limit=ALL_BYTES)
    shown, history, tree_key = [block._id for block in demo.blocks.values() if isinstance(block, gr.State)][:3]
    traces, most = [], 0
    for number in range(VISITORS):
        with pytest.raises(Refusal, match=f"the limit is {scaled.max_tokens} tokens"):
            scaled.translate(" ".join(["Hund"] * WORDS))
        trace = scaled.translate(longest(scaled, number))
        tree, _ = Tree.of(trace).add(
            scaled.trace(trace.source_text, prefix=[*trace.target_ids[:1], int(trace.top_ids[1, 3])]), Origin.FORCED
        )
        maps = sum(trace.maps(kind).weights.nbytes for kind in trace.kinds)
        assert 0.4 * TRACE_BYTES < maps <= TRACE_BYTES
        for key, value in ((shown, trace), (history, (trace,)), (tree_key, tree)):
            store[str(number)][key] = value
            assert held(store) <= ALL_BYTES
        traces.append(trace)
        most = max(most, held(store))
    kept = [int(name) for name in store.session_data]
    assert most > 0.8 * ALL_BYTES and kept == list(range(VISITORS - len(kept), VISITORS)) and len(kept) > 8
    for number in range(len(traces)):
        remembered = store[str(number)].state_data.get(history, ()) if number in kept else ()
        if number in kept:
            assert layers(remembered[-1], {"wanted": [["cross", 0]]})["layers"]
        else:
            assert not remembered


@pytest.mark.long
def test_fifty_visitors_at_once_are_all_answered_and_what_is_held_is_bounded(serve, scaled):
    demo = shell.build(Translators([scaled]))
    port = int(serve(demo).rsplit(":", 1)[1].strip("/"))
    store = demo.app.state_holder
    store.limit = ALL_BYTES
    texts = [longest(scaled, number) for number in range(VISITORS)] + [" ".join(["Hund"] * WORDS)] * 3
    with ThreadPoolExecutor(len(texts)) as pool:
        list(pool.map(lambda text: Caller(port).visit(text), texts))  # raises where a function of the page failed
    assert held(store) <= ALL_BYTES
    kept = [
        visitor
        for visitor in store.session_data.values()
        if visitors.held_bytes(list(visitor.state_data.values())) > 0.4 * TRACE_BYTES
    ]
    assert 8 < len(kept) < 25, "as many as there is room for, and the others begin anew"
    answer = Caller(port).call("translate", [texts[-1], "", 1])
    assert answer["status"] == "error" and f"the limit is {scaled.max_tokens} tokens" in json.dumps(answer)

"""Visitors' state: apart from one another, bounded, and not crowded out by callers of the API."""

from __future__ import annotations

import gradio as gr
import pytest
from gradio_client import Client

import app
from bench.load import Caller
from model.trace.translation import TranslationTrace
from model.translators import Translators


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

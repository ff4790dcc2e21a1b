"""What rests on Gradio's internals: each part finds what it needs, says what it misses, and can be left out."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import gradio as gr
import pytest

from bench.load import Caller
from model.translators import Translators
from tests import ROOT
from viz import shell
from viz.ui.gradio6 import edited_scripts, part, parts, wakeful_queue
from viz.ui.gradio6.part import Part
from viz.ui.server.endpoints import ENDPOINTS, Endpoint, Served

FOLDER = Path(parts.__file__).parent


@pytest.mark.parametrize("module", parts.MODULES, ids=lambda module: Path(module.__file__).stem)
def test_the_installed_gradio_is_as_it_was_read(module) -> None:
    assert module.PART.missing == ()


def test_every_file_of_the_room_is_checked_and_listed_where_gradio_is_raised() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "part", "parts"}
    assert {Path(module.__file__).stem for module in parts.MODULES} == files - {"frame"}  # preloads puts it there
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = text[text.index("## How to raise Gradio") :]
    assert set(re.findall(r"^- `(\w+)`", told[: told.index("\n## ", 4)], re.MULTILINE)) == files


def test_nothing_else_touches_what_gradio_keeps_to_itself() -> None:
    """Modules of Gradio's that its documentation does not name; the types of labels and events are no workings."""
    inside = re.compile(r"^\s*(?:from|import) gradio\.(?!i18n|events|context|themes)", re.MULTILINE)
    elsewhere = [path for path in (ROOT / "app.py", *ROOT.glob("viz/**/*.py")) if path.parent != FOLDER]
    assert [str(path) for path in elsewhere if inside.search(path.read_text(encoding="utf-8"))] == []


def test_what_is_missing_is_named_and_what_there_must_be_is_refused(caplog) -> None:
    with caplog.at_level(logging.WARNING):
        parts.check([Part("the tabs", lambda: ["A.b", "A.c"], "the page is slow"), Part("the rest", lambda: [], None)])
    assert "the tabs: left out, since Gradio" in caplog.text and "has no A.b, no A.c; the page is slow" in caplog.text
    with pytest.raises(ValueError, match=r"has no A\.b, which the log needs: install the version"):
        parts.check([Part("the log", lambda: ["A.b"], None)])


def test_looking_for_what_is_not_there_names_it() -> None:
    assert list(part.lacking(gr.Blocks, "launch", "rocket")) == ["Blocks.rocket"]
    assert list(part.unlike(gr.Blocks.launch, "share", "fuel")) == ["parameter fuel of Blocks.launch"]
    assert list(part.unsaid("queueing.py", "class Queue", "class Rocket")) == ["'class Rocket' in queueing.py"]


def test_without_all_that_can_be_left_out_the_page_is_served(tiny_translator, serve, monkeypatch) -> None:
    for one in parts.PARTS:
        if one.without is not None:
            monkeypatch.setitem(one.__dict__, "missing", ("anything",))
    demo = shell.build(Translators([tiny_translator]))
    assert type(demo.default_config) is gr.blocks.BlocksConfig
    port = int(serve(demo).rsplit(":", 1)[1].strip("/"))
    assert type(demo._queue) is gr.queueing.Queue
    Caller(port).visit("Ein Hund.")
    assert Caller(port).call("translate", ["Ein Hund.", ""])["status"] == "ok"


@pytest.fixture()
def queue(serve, monkeypatch) -> wakeful_queue.WakefulQueue:
    """Of a page with an endpoint that waits as long as it is told, two at once."""

    def wait(served: None, seconds: float) -> dict:
        """Wait."""
        time.sleep(seconds)
        return {}

    monkeypatch.setitem(ENDPOINTS, "wait", Endpoint(wait, "nothing", {"concurrency_limit": 2}))
    with gr.Blocks(analytics_enabled=False) as demo:
        gr.api(ENDPOINTS["wait"].bound(Served(None)), api_name="wait", **ENDPOINTS["wait"].options)
    demo.port = int(serve(demo).rsplit(":", 1)[1].strip("/"))
    assert type(demo._queue) is wakeful_queue.WakefulQueue
    return demo._queue


def wait_until(so: Callable[[], bool]) -> None:
    for _ in range(500):
        if so():
            return
        time.sleep(0.01)
    raise AssertionError("it is never so")


def test_an_idle_queue_looks_for_nothing_and_a_busy_one_serves_all(queue, monkeypatch) -> None:
    looks, known = [], queue.get_events
    monkeypatch.setattr(queue, "get_events", lambda: looks.append(1) or known())
    time.sleep(0.5)
    assert looks == []
    port, answers = queue.blocks.port, []

    def call(seconds: float) -> None:
        answers.append(Caller(port).call("wait", [seconds])["status"])

    threads = [threading.Thread(target=call, args=(0.05 * (i % 3),)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == ["ok"] * 20
    assert len(looks) <= 3 * 20 + 3, "about one look at an arrival, and one at an end"


def test_what_is_asked_to_end_ends_alone(queue) -> None:
    """Though the one after it has begun: the request to end may come late."""
    (function,), (session, caller) = queue.blocks.fns, ("left", Caller(queue.blocks.port))

    def ask() -> str:
        body = {"data": [1.5, None], "fn_index": function, "session_hash": session}
        return json.loads(caller.post("/gradio_api/queue/join", body)[1])["event_id"]

    first, second = ask(), ask()
    wait_until(lambda: sum(map(bool, queue.active_jobs)) == 2)
    end = {"event_id": first, "session_hash": session, "fn_index": function}
    assert caller.post("/gradio_api/cancel", end) == (200, b'{"success":true}')
    caller.connection.request("GET", f"/gradio_api/queue/data?session_hash={session}")
    told = (json.loads(line[5:]) for line in caller.connection.getresponse() if line.startswith(b"data:"))
    told = list(itertools.takewhile(lambda one: one["msg"] not in ("close_stream", "heartbeat"), told))
    ended = {one["event_id"]: one["output"] for one in told if one["msg"] == "process_completed"}
    assert list(ended) == [first, second]
    assert ended[first] == {} and ended[second]["data"][0]["status"] == "ok"


def test_no_table_is_made_of_what_was_asked(queue, monkeypatch) -> None:
    made = []
    monkeypatch.setattr(queue, "_get_df", made.append)
    assert Caller(queue.blocks.port).call("wait", [0.0])["status"] == "ok"
    assert not made and queue.cached_event_analytics_summary == {"functions": {}}


def test_a_queue_that_is_closed_ends(queue) -> None:
    queue.close()
    wait_until(lambda: not any("start_processing" in repr(task.get_coro()) for task in asyncio.all_tasks(queue.loop)))


@pytest.mark.parametrize("edit", edited_scripts.EDITS, ids=lambda edit: edit.script)
def test_a_script_is_sent_with_one_place_of_it_edited(edit) -> None:
    (path,) = edited_scripts.scripts(edit)
    before = path.read_bytes()
    after = edited_scripts.edited(path, before)
    assert edit.was.encode() not in after and edit.sent.encode() in after and edit.sent.encode() not in before
    assert edited_scripts.edited(path.with_name("other.js"), before) == before

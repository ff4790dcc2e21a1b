"""Tests of POST /ask/NAME, at which any server process answers the page's questions."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import unquote

import numpy as np
import pytest

from attention_atlas.model.analysis.units.units import Units
from attention_atlas.model.serve.cancellation import raise_if_cancelled
from attention_atlas.model.serve.work import Work
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.address import Address
from attention_atlas.model.training.toy.run import ToyRun
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.panels.registry import PANELS
from attention_atlas.viz.questions.registry import QUESTIONS, Question
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.wire.file import File
from bench.load import JSON, Caller, running_app

TEXT = "Ein kleiner Hund schläft."
TOY = {"corpus": "a b | x y\nb a | y x", "settings": {"layers": 1, "heads": 2, "d_model": 16}, "updates": 12}
PANEL = {"address": {"text": TEXT, "direction": "de-en"}, "fields": {"panel": "position-table"}}


def ask(port: int, name: str, **question: object) -> dict:
    """Ask a question and return the answer."""
    status, body = Caller(port).post(f"/ask/{name}", question)
    assert status == 200, body[:500]
    return json.loads(body)


@contextmanager
def stream(port: int, path: str, **question: object) -> Iterator[http.client.HTTPResponse]:
    """Open the stream of a question, and close the connection at the end as a page that is left does."""
    connection = Caller(port).connection
    connection.request("POST", path, json.dumps(question).encode(), JSON)
    with closing(connection), connection.getresponse() as response:
        yield response


@pytest.fixture
def registered() -> Iterator[dict[str, Question]]:
    """The registry of questions. Questions that a test adds are removed after it."""
    before = dict(QUESTIONS)
    yield QUESTIONS
    QUESTIONS.clear()
    QUESTIONS.update(before)


def test_a_panel_is_answered_by_one_request(port):
    answer = ask(port, "page_panel", **PANEL)
    assert answer["blocks"] and answer["controls"] and answer["lacks"] is False
    assert answer["about"]["with"]["source"] == TEXT


def test_every_panel_is_answered(port):
    for name in (panel.name for tab in PANELS.values() for panel in tab):
        status, body = Caller(port).post("/ask/page_panel", {**PANEL, "fields": {"panel": name}})
        answers = list(map(json.loads, body.splitlines()))
        assert status == 200 and not [answer for answer in answers if answer.get("error") == "internal"], (
            name,
            body,
        )


@pytest.mark.long
def test_two_servers_answer_alike_about_a_translation(tiny_checkpoint, port, tiny_translator):
    trace = tiny_translator.translate(TEXT, beam=3)
    question = {"address": Address.of(trace).to_plain(), "fields": {"panel": "logits"}}
    with running_app(["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"]) as (other, _):
        first, second = (ask(at, "page_panel", **question) for at in (port, other))
    assert first["about"] == second["about"] and first["about"]["with"]["how"]["with"] == {"width": 3}
    numbers, expected = (list(_numbers(answer["blocks"])) for answer in (first, second))
    assert len(numbers) >= 20
    np.testing.assert_allclose(numbers, expected, atol=1e-4)


def test_a_toy_is_trained_and_opened(port):
    first, *turns = Caller(port).ask("page_train", fields=TOY)
    assert first["run"]["pairs"] and [turn["turn"]["update"] for turn in turns][-1] == TOY["updates"]
    (opened,) = Caller(port).ask("page_toy", fields={"recipe": TOY})  # cached: no training
    (translated,) = Caller(port).ask("page_translate", address=opened["opens"])
    assert translated["map"]["address"] == opened["opens"] and opened["opens"]["recipe"]["updates"] == TOY["updates"]


@pytest.mark.long
@pytest.mark.parametrize("changes", [pytest.param({}, marks=pytest.mark.endure), {"heads_off": [["cross", 0, 1]]}])
def test_two_servers_answer_alike_about_a_toy(tiny_checkpoint, port, changes):
    opened = Caller(port).ask("page_toy", fields={"recipe": TOY})[-1]["opens"]
    plain = {**opened, "target_ids": None, "interventions": changes}
    address = Caller(port).ask("page_translate", address=plain)[-1]["map"]["address"]
    selection = {"kind": "cross", "layer": 0, "head": 0}
    questions = [
        ("page_panel", {"panel": "logits", "selection": selection}),
        ("page_panel", {"panel": "batch", "selection": selection}),
        ("page_layers", {"wanted": [["cross", 0], ["encoder_self", 0]]}),
        ("page_step", {"action": "start"}),
        ("page_doubts", {}),
    ]
    with running_app(["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"]) as (other, _):
        for number, (name, fields) in enumerate(questions):
            first, *more = Caller(port).ask(name, address=address, fields=fields)
            *training, second = Caller(other).ask(name, address=address, fields=fields)
            assert not more and bool(training) == (number == 0), "trained once"
            if training:
                assert training[-1] == {"training": {"update": TOY["updates"], "of": TOY["updates"]}}
            assert "retrained" not in second and first.keys() == second.keys(), name
            assert first.get("key") == second.get("key"), name
            numbers, expected = (list(_numbers(answer)) for answer in (first, second))
            np.testing.assert_allclose(numbers, expected, atol=1e-4)


UNITS = {"panel": "heads-units", "controls": {"layer": 1, "units": "neurons", "unit": 1, "strength": 0}}


def test_any_server_does_the_work_that_another_offered(port, monkeypatch):
    results = {}
    monkeypatch.setattr(Work, "_results", property(lambda work: results))
    question = {"address": PANEL["address"], "fields": UNITS}
    take = ask(port, "page_panel", **question)["blocks"][0]
    begun = {**UNITS, "begun": [take["work"]]}
    *work, first = Caller(port).ask("page_panel", address=PANEL["address"], fields=begun)
    assert [part["work"]["done"] for part in work] == list(range(1, 9)) and len(first["blocks"]) == 2
    (second,) = Caller(port).ask("page_panel", address=PANEL["address"], fields=begun)
    results.clear()  # as in another process
    *work, third = Caller(port).ask("page_panel", address=PANEL["address"], fields=begun)
    assert len(work) == 8 and first == second == third
    results.clear()
    assert ask(port, "page_panel", **question)["blocks"][0] == take


def test_closing_a_stream_ends_its_work(port, monkeypatch):
    parts_done, ended = [], threading.Event()

    def compute(units):
        try:
            for done in range(200):
                parts_done.append(done)
                time.sleep(0.05)
                yield done, 200
        finally:
            ended.set()

    monkeypatch.setattr(Units, "_compute_peaks", compute)
    monkeypatch.setattr(Work, "_results", property(lambda work: {}))
    take = ask(port, "page_panel", address=PANEL["address"], fields=UNITS)["blocks"][0]
    begun = {"address": PANEL["address"], "fields": {**UNITS, "begun": [take["work"]]}}
    with stream(port, "/ask/page_panel", **begun) as response:
        assert json.loads(response.readline())["work"] == {"done": 0, "of": 200}
        panel = ask(port, "page_panel", **PANEL)  # another question is answered meanwhile
        assert panel["blocks"] and not ended.is_set()
    assert ended.wait(1) and len(parts_done) < 60


def test_closing_a_stream_ends_its_training(port, monkeypatch):
    turns = []
    monkeypatch.setattr(ToyRun, "turn", lambda run, _was=ToyRun.turn, **how: turns.append(1) or _was(run, **how))
    with stream(port, "/ask/page_train", fields={**TOY, "updates": 2000, "settings": {"seed": 7}}) as response:
        assert "run" in json.loads(response.readline())
    time.sleep(1.5)
    done = len(turns)
    time.sleep(1)
    assert len(turns) == done < 20


def _numbers(value: object) -> Iterator[float]:
    """Yield all floats in a JSON value, in order."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
    elif isinstance(value, float):
        yield value


def test_a_streamed_answer_is_one_line_a_part(port):
    question = {**PANEL, "fields": {"panel": "verify"}}
    _, body, headers = Caller(port).send("POST", "/ask/page_panel", json.dumps(question).encode(), JSON)
    parts = [json.loads(line) for line in body.splitlines()]
    assert headers["Content-Type"].startswith("application/x-ndjson") and len(parts) > 2
    assert all(part["more"] and part["blocks"] for part in parts[:-1]) and parts[-1] == {"more": False}
    assert headers["X-Accel-Buffering"] == "no"


def test_a_file_is_sent_as_an_attachment(port, tiny_translator):
    trace = tiny_translator.translate(TEXT)
    question = {"address": Address.of(trace).to_plain(), "fields": {"format": "npz"}}
    _, body, headers = Caller(port).send("POST", "/ask/page_export", json.dumps(question).encode(), JSON)
    assert headers["Content-Type"] == FORMATS["npz"].media_type
    assert headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''attention-")
    np.testing.assert_array_equal(storage.from_npz(body).target_ids, trace.target_ids)
    refused = ask(port, "page_export", **{**question, "fields": {"format": "exe"}})
    assert refused["error"] == "invalid"


def test_a_file_may_have_any_name_and_64_megabytes(port, registered):
    names = {"small": 3, "the most": 64_000_000, "too much": 64_000_001}

    def page_file(context, address, fields):
        return File(f"Größe “1”; {fields['name']}.bin", "application/octet-stream", bytes(names[fields["name"]]))

    def page_parts(context, address, fields):
        yield {"more": True}
        yield page_file(context, address, fields)

    registered["page_file"] = Question(page_file, "page")
    registered["page_parts"] = Question(page_parts, "page")
    for name in ("small", "the most"):
        question = json.dumps({"fields": {"name": name}}).encode()
        _, body, headers = Caller(port).send("POST", "/ask/page_file", question, JSON)
        saved_as = headers["Content-Disposition"].removeprefix("attachment; filename*=UTF-8''")
        assert (unquote(saved_as), len(body)) == (f"Größe “1”; {name}.bin", names[name])
    assert ask(port, "page_file", fields={"name": "too much"})["message"]["with"] == {"n": 64, "limit": 64}
    _, part = Caller(port).ask("page_parts", fields={"name": "small"})
    assert part["file"] == {"name": "Größe “1”; small.bin", "type": "application/octet-stream", "data": "AAAA"}


def test_a_large_answer_is_compressed_on_request(port):
    body = json.dumps({**PANEL, "fields": {"panel": "projections"}}).encode()
    _, content, packed = Caller(port).send("POST", "/ask/page_panel", body, {**JSON, "Accept-Encoding": "gzip"})
    _, whole, plain = Caller(port).send("POST", "/ask/page_panel", body, JSON)
    assert packed["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain
    assert len(content) < 0.6 * len(whole) and json.loads(gzip.decompress(content)) == json.loads(whole)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({**PANEL, "address": {"text": TEXT, "direction": "xx-yy"}}, "No model on this server translates"),
        ({**PANEL, "address": {"text": TEXT, "digest": "0" * 16}}, "translate again"),
        ({**PANEL, "address": {"text": "x " * 20_000}}, "characters; the limit is"),
        ({**PANEL, "address": [TEXT]}, "An address is an object"),
        ({**PANEL, "fields": {"panel": "nothing"}}, "something unknown"),
        ({**PANEL, "fields": ["panel"]}, "fields of a question"),
        ({**PANEL, "fields": {**PANEL["fields"], "selection": {"kind": "no"}}}, "something unknown"),
    ],
)
def test_a_refused_question_is_answered_in_words(port, question, words):
    answer = ask(port, "page_panel", **question)
    assert (answer["api_version"], answer["status"], answer["error"]) == (1, "error", "invalid")
    assert words in json.dumps(answer["message"])


@pytest.mark.parametrize("value", [None, 7, "x", [], {"step": -1}, {"step": 1, "about": 3, "contrast": []}])
def test_malformed_fields_count_as_missing(port, value):
    fields = {"panel": "why-tokens", "asked": value, "controls": value, "data": value, "drawn": value}
    assert ask(port, "page_panel", address=PANEL["address"], fields=fields)["blocks"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/ask/page_nothing", b"{}", JSON, 404),
        ("/ask/", b"{}", JSON, 404),
        ("/ask/page_panel", b"{}", {"Content-Type": "text/plain"}, 415),
        ("/ask/page_panel", b"{}", {}, 415),
        ("/ask/page_panel", b"[]", JSON, 422),
        ("/ask/page_panel", b"[" * 100_000, JSON, 422),
        ("/ask/page_panel", b'{"address": ' + b"1" * 9_000_000 + b"}", JSON, 413),
        ("/ask/page_panel", b"{}", {**JSON, "Sec-Fetch-Site": "cross-site"}, 403),
        ("/ask/page_panel", b"{}", {**JSON, "Origin": "https://other.example"}, 403),
        *((f"/ask/{name}", b"{}", JSON, 404) for name in ENDPOINTS),
    ],
)
def test_a_malformed_request_has_an_error_status(port, path, body, headers, status):
    answered, answer, _ = Caller(port).send("POST", path, body, headers)
    assert answered == status and json.loads(answer)["status"] == "error"


def test_names_of_questions_differ_from_those_of_endpoints():
    assert {name.split("_")[0] for name in QUESTIONS} == {"page"} and not set(QUESTIONS) & set(ENDPOINTS)


def test_disconnecting_cancels_the_computation(port, registered):
    begun, cancelled = threading.Event(), threading.Event()

    def page_work(context, address, fields):
        begun.set()
        for _ in range(200):
            time.sleep(0.02)
            try:
                raise_if_cancelled()
            except Exception:
                cancelled.set()
                raise
        return {}

    registered["page_work"] = Question(page_work, "model")
    connection = Caller(port).connection
    connection.request("POST", "/ask/page_work", b"{}", JSON)
    assert begun.wait(5)
    connection.close()
    assert cancelled.wait(2)


def test_an_unexpected_error_is_answered_and_logged_without_text(port, registered, caplog):
    def page_fault(context, address, fields):
        raise RuntimeError(fields["text"])

    registered["page_fault"] = Question(page_fault, "page")
    answer = ask(port, "page_fault", fields={"text": TEXT})
    assert answer["error"] == "internal" and "RuntimeError" in json.dumps(answer["message"])
    assert "page_fault" in caplog.text and TEXT not in caplog.text


def test_nan_is_not_sent(port, registered):
    registered["page_nan"] = Question(lambda context, address, fields: {"value": float("nan")}, "page")
    status, body = Caller(port).post("/ask/page_nan", {})
    assert status == 500 and json.loads(body)["error"] == "internal"


def test_a_translation_is_computed_once(tiny_translator, monkeypatch):
    context, calls = shell.build(Translators([tiny_translator])).context, []
    monkeypatch.setattr(
        type(tiny_translator),
        "trace",
        lambda *given, _trace=tiny_translator.trace, **o: calls.append(1) or _trace(*given[1:], **o),
    )
    trace = context.trace(Address("Der Hund schläft im Haus.", "de-en"))
    for _ in range(3):
        assert context.trace(Address.of(trace)) is trace
    assert len(calls) == 1

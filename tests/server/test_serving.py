"""Tests of the app as a process of its own: its command line, the routes it refuses, its log and its end."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import sys
import time
from pathlib import Path

import pytest

from attention_atlas import app
from bench.load import JSON, Caller, memory
from tests import ROOT

SECRET = "Geheimnisvollerweise"  # a word that no file and no message of the project contains


def test_sources_checkpoints_and_system_files_are_not_served(served, tiny_checkpoint):
    for path in (
        *(ROOT / name for name in ("app.py", "requirements.txt", "viz/theme.py", "viz/server/api.py")),
        tiny_checkpoint / "model.safetensors",
        tiny_checkpoint / "tokenizer.model",
        tiny_checkpoint / "config.json",
        Path("/etc/passwd"),
        Path("/proc/self/environ"),
        served.log,
    ):
        assert path.exists()
        for route in (
            f"/gradio_api/file={path}",
            f"/gradio_api/file=/{path}",
            f"/gradio_api/file=file://{path}",
            f"/gradio_api/file={ROOT}/viz/web/{'../' * 12}{str(path)[1:]}",
        ):
            status, body = Caller(served.port).get(route)
            assert status in (400, 403, 404), (route, status, body[:100])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/gradio_api/upload"),
        ("GET", "/gradio_api/upload_progress?upload_id=1"),
        ("GET", "/gradio_api/proxy=https://example.org/"),
        ("HEAD", "/gradio_api/proxy=https://example.org/"),
        ("POST", "/gradio_api/process_recording"),
        ("POST", "/gradio_api/vibe-edit/"),
        ("GET", "/monitoring"),
        ("GET", "/gradio_api/dev/reload"),
        ("POST", "/gradio_api/stream/1"),
        ("GET", "/gradio_api/deep_link"),
        ("POST", "/login"),
        ("POST", "//gradio_api/upload"),
    ],
)
def test_uploads_and_other_unused_routes_are_refused(served, method, path):
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nhi\r\n--x--'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert Caller(served.port).send(method, path, body if method == "POST" else None, headers)[0] == 404


def test_call_counts_are_empty(served):
    """Gradio's API page requests them, and would log a refusal as an error."""
    caller = Caller(served.port)
    assert caller.call("translate", ["Ein Hund."])["status"] == "ok"
    assert caller.get("/monitoring/summary") == (200, b'{"functions": {}}')


def test_a_body_that_is_too_large_is_refused(served):
    status, body = Caller(served.port).post("/gradio_api/call/v2/translate", {"text": "x" * 8_100_000})
    assert status == 413 and "8,000,000 bytes" in json.loads(body)["message"]


@pytest.mark.parametrize("name", ["cancel", "reset"])
@pytest.mark.parametrize("event", [None, [1], 7, "\ud800", "0" * 32])
def test_cancelling_an_unknown_event_does_nothing(served, name, event):
    body = {"session_hash": "a", "fn_index": 1, "event_id": event}
    assert Caller(served.port).post(f"/gradio_api/{name}", body)[0] in (200, 422)


NONSENSE = (
    b"",
    b"{",
    b"[]",
    b'{"data": 1}',
    b"\xff\xfe",
    b"null",
    b'{"text": {"a": []}}',
    b"[" * 50_000,
    b'{"fn_index": 1, "data": [], "session_hash": "a"}',
)


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/call/translate",
        "/gradio_api/call/v2/translate",
        "/gradio_api/queue/join",
        "/gradio_api/run/predict",
    ],
)
def test_a_malformed_body_is_refused_and_the_next_request_answered(served, path):
    for body in NONSENSE:
        status, answer, _ = Caller(served.port).send("POST", path, body, JSON)
        assert status < 600 and b"Traceback" not in answer and b"site-packages" not in answer, body[:80]
        assert served.process.poll() is None, body[:80]
        assert Caller(served.port).get("/gradio_api/info")[0] == 200, body[:80]
    assert Caller(served.port).call("translate", ["Ein Hund.", ""])["status"] == "ok"


@pytest.mark.long
def test_visits_leave_no_memory_behind(served):
    visits = 20
    for _ in range(10):
        Caller(served.port).visit("Ein Hund.")
    before = memory(served.process.pid)
    for number in range(visits):
        Caller(served.port).visit(f"Ein Hund und {number} Katzen.")
    assert memory(served.process.pid) - before < 60


def test_typed_text_is_not_logged_and_no_host_is_contacted(served):
    caller = Caller(served.port)
    assert caller.call("translate", [SECRET, ""])["status"] == "ok"
    assert caller.call("translate", [SECRET, SECRET])["status"] == "error"
    assert caller.call("score", [SECRET, SECRET, ""])["status"] == "ok"
    caller.visit(f"Ein {SECRET} Hund")
    listeners = json.loads(caller.get("/config")[1])["dependencies"]
    score = next(listener["id"] for listener in listeners if listener["api_name"] == "score")
    # With too few values Gradio raises an error whose message quotes them all.
    body = {"data": [SECRET], "fn_index": score, "session_hash": SECRET}
    assert caller.post("/gradio_api/queue/join", body)[0] == 200
    assert b'"success":false' in caller.get(f"/gradio_api/queue/data?session_hash={SECRET}")[1]
    with pytest.raises(ValueError, match="something unknown"):
        caller.ask("page_panel", address={"text": SECRET}, fields={"panel": SECRET})
    with pytest.raises(ValueError, match="HTTP 404"):
        caller.call(f"nowhere-{SECRET}", [SECRET])
    caller.get(f"/?text={SECRET}")
    log = served.log.read_text()
    assert f"served on http://127.0.0.1:{served.port}" in log and "ValueError (message left out)" in log
    assert SECRET not in log
    for line in served.audit.read_text().splitlines():
        assert re.search(r"'(127\.0\.0\.1|0\.0\.0\.0|localhost|::1)'|AF_UNIX|\('/|b'\\x00", line), line


def test_a_port_in_use_is_reported(served, tiny_checkpoint, monkeypatch, capsys):
    options = ["--port", str(served.port), "--checkpoints", str(tiny_checkpoint.parent)]
    monkeypatch.setattr(sys, "argv", ["app.py", *options])
    monkeypatch.setenv("GRADIO_SERVER_NAME", "127.0.0.1")
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
    assert end.value.code == (
        f"error: port {served.port} of 127.0.0.1 is already in use: stop what runs there, or choose another with --port"
    )
    assert capsys.readouterr() == ("", "")


def test_sigterm_ends_the_app_within_five_seconds_with_open_streams(served):  # the last test of this process
    listeners = [Caller(served.port).connection for _ in range(3)]
    for number, connection in enumerate(listeners):
        connection.request("GET", f"/gradio_api/heartbeat/abc{number}")
        assert connection.getresponse().status == 200
    started = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(5) == 0
    assert time.monotonic() - started < 5
    assert not list(served.log.parent.glob("attention-atlas-*"))
    assert "Traceback" not in served.log.read_text().partition("ended")[2]


def test_options_come_from_the_command_line_then_the_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("GRADIO_SERVER", "ATTENTION_ATLAS", "SPACE_ID"))]:
        monkeypatch.delenv(name)
    assert (app.parse([]).host, app.parse([]).port, app.parse([]).device) == ("127.0.0.1", 7860, None)
    monkeypatch.setenv("SPACE_ID", "someone/atlas")
    assert app.parse([]).host == "0.0.0.0"
    for variable, value, option, expected in (
        ("GRADIO_SERVER_NAME", "10.0.0.1", "host", "10.0.0.1"),
        ("GRADIO_SERVER_PORT", "8000", "port", 8000),
        ("ATTENTION_ATLAS_DEVICE", "cpu", "device", "cpu"),
        ("ATTENTION_ATLAS_CONCURRENCY", "3", "concurrency", 3),
        ("ATTENTION_ATLAS_CHECKPOINTS", "/weights", "checkpoints", Path("/weights")),
    ):
        monkeypatch.setenv(variable, value)
        assert getattr(app.parse([]), option) == expected
    assert app.parse(["--port", "9000"]).port == 9000
    assert app.parse([]).model == []
    monkeypatch.setenv("ATTENTION_ATLAS_MODELS", "one/model  other/model")
    assert app.parse([]).model == ["one/model", "other/model"]
    assert app.parse(["--model", "mine", "--model", "yours"]).model == ["mine", "yours"]


def test_max_sessions_is_accepted_with_a_warning(monkeypatch, caplog):
    monkeypatch.delenv("ATTENTION_ATLAS_MAX_SESSIONS", raising=False)
    app.parse([])
    assert not caplog.records
    app.parse(["--max-sessions", "7"])
    assert "--max-sessions" in caplog.text and "no effect" in caplog.text
    caplog.clear()
    monkeypatch.setenv("ATTENTION_ATLAS_MAX_SESSIONS", "7")
    app.parse([])
    assert "ATTENTION_ATLAS_MAX_SESSIONS" in caplog.text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "x"],
        ["--port", "0"],
        ["--port", "65536"],
        ["--concurrency", "-1"],
        ["--max-sessions", "0"],
        ["--queue", "1.5"],
        ["--nonsense"],
    ],
)
def test_an_invalid_option_is_named(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        app.parse(arguments)
    assert exit.value.code == 2 and arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [("256.0.0.1", 7861, "cannot serve on 256.0.0.1"), ("192.0.2.1", 7861, "cannot serve on 192.0.2.1")],
)
def test_an_unusable_address_is_named(host, port, words):
    with pytest.raises(ValueError, match=words):
        app.check_port(host, port)

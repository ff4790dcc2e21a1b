"""Attacks on a running server: no file of the machine is served, other requests are answered, the log quotes
nothing."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from attention_atlas.viz.questions import registry
from attention_atlas.viz.questions.registry import QUESTIONS
from attention_atlas.viz.server.api import ENDPOINTS
from bench.load import Caller, memory
from tests import ROOT
from tests.server.conftest import Served

MARK = "Geheimnisvollerweise"


@pytest.fixture(autouse=True)
def healthy(served: Served) -> Iterator[None]:
    yield
    assert Caller(served.port).get("/healthz")[0] == 200
    assert Caller(served.port).call("translate", ["Ein Hund.", ""])["status"] == "ok"
    assert MARK not in served.log.read_text()


UPWARDS = ("..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "..%00", "....", "..;", "%c0%ae%c0%ae", "%u002e%u002e")
SLASHES = ("/", "//", "%2f", "%5c", "\\", "%252f", "/./", "%c0%af")
ROUTES = (
    "/static/", "/assets/", "/svelte/", "/atlas/", "/gradio_api/file=", "/gradio_api/file/", "/file=", "/favicon.ico/",
    f"/gradio_api/file={ROOT}/viz/web/", "/gradio_api/file=viz/web/", "/gradio_api/file=file://", "/theme.css/",
    "/pwa_icon/", "/gradio_api/custom_component/", "/", "//", "/gradio_api/stream/", "/gradio_api/call/translate/",
)  # fmt: skip


@pytest.mark.parametrize("route", ["/assets/", "/static/", "/gradio_api/file="])
def test_a_name_too_long_for_the_file_system_is_refused(served, route):
    assert Caller(served.port).get(route + 300 * "a")[0] in (403, 404)


@pytest.mark.parametrize("count", [600, pytest.param(12_000, marks=pytest.mark.endure)])
def test_no_path_leads_outside_the_pages_files(served, count, tiny_checkpoint):
    pick = random.Random(5)
    targets = {
        "/etc/passwd": b"root:",
        str(ROOT / "attention_atlas" / "app.py"): b"FINISHING_SECONDS",
        str(tiny_checkpoint / "config.json"): b"num_heads",
        str(served.log): b"is served on",
    }
    caller = Caller(served.port)
    for _ in range(count):
        target, content = pick.choice(list(targets.items()))
        slash = pick.choice(SLASHES)
        way_up = slash.join([pick.choice(UPWARDS)] * pick.randrange(13))
        end = pick.choice([target, target[1:], quote(target, safe=""), target.replace("/", slash)])
        path = (
            pick.choice(ROUTES)
            + way_up
            + pick.choice(["", slash])
            + end
            + pick.choice(["", "", "%00.png", "?v=1", "/"])
        )
        status, body = caller.get(path)
        assert content not in body, path
        assert status < 500, (path, status)


SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b"5\r\nabcde\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4",
        b"Content-Length: 4\r\nContent-Length: 15",
        b"Content-Length: 4, 15",
        b"Content-Length: +4",
        b"Content-Length: -1",
        b"Content-Length: 0x4",
        b"Content-Length : 4\r\nTransfer-Encoding : chunked",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: identity, chunked\r\nContent-Length: 4",
        b"Transfer-Encoding:\x0bchunked\r\nContent-Length: 4",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 4",
        b"X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 4",
        b"Content-Length: 99999999999999999999",
    ],
)
def test_an_ambiguous_length_ends_the_connection(served, headers):
    """Request smuggling: a proxy that sees another end of the request would send the rest as the next visitor's."""
    request = b"POST /gradio_api/call/v2/translate HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as connection:
        connection.sendall(request + BODY + SMUGGLED)
        answer = b""
        try:
            while part := connection.recv(65_536):
                answer += part
        except (TimeoutError, ConnectionResetError):
            pass
    assert b"alive" not in answer, answer


def test_a_chunked_body_over_the_limit_is_refused(served):
    before = memory(served.process.pid)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            connection.sendall(
                b"POST /gradio_api/call/v2/translate HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            answer = b""
            try:
                for _ in range(60):
                    connection.sendall(b"f4240\r\n" + b"[" * 1_000_000 + b"\r\n")
                connection.sendall(b"0\r\n\r\n")
                answer = connection.recv(65_536)
            except (ConnectionResetError, BrokenPipeError):
                continue
        assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
    assert memory(served.process.pid) - before < 40  # MB


VALUES = (
    None, True, -1, 10**30, 1e308, "", MARK, "<script>", [], [[[]]], {}, {"id": 2**64}, {"id": 1, "text": MARK},
    {"__proto__": {"a": 1}}, [MARK] * 50, {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
)  # fmt: skip


@pytest.mark.parametrize("tries", [pytest.param(1, marks=pytest.mark.long), pytest.param(12, marks=pytest.mark.endure)])
def test_every_endpoint_answers_arbitrary_values(served, tries):
    """Calls by name, and by number as gradio_client sends them."""
    pick = random.Random(7)
    dependencies = json.loads(Caller(served.port).get("/config")[1])["dependencies"]
    listeners = [listener for listener in dependencies if listener["backend_fn"]]
    assert {listener["api_name"] for listener in listeners} == set(ENDPOINTS)
    for listener in listeners:
        for number in range(tries):
            values, session = [pick.choice(VALUES) for _ in listener["inputs"]], f"{MARK}-{listener['id']}-{number}"
            status, body = Caller(served.port).post(f"/gradio_api/run/{listener['api_name']}", {"data": values})
            assert status in (200, 422), (status, body[:500])
            body = {
                "data": values,
                "fn_index": listener["id"],
                "session_hash": session,
                "event_data": pick.choice(VALUES),
            }
            if Caller(served.port).post("/gradio_api/queue/join", body)[0] == 200:
                status, stream = Caller(served.port).get(f"/gradio_api/queue/data?session_hash={quote(session)}")
                assert status == 200 and b"process_completed" in stream and b'"error":"internal"' not in stream
    assert served.process.poll() is None


NAMES = (
    "panel", "controls", "selection", "asked", "drawn", "act", "data", "action", "state", "holds", "wanted", "head",
    "row", "overlay", "view", "format", "other", "text", "tour", "stop", "ask", "entry", "pair", "corpus", "settings",
    "updates", "from", "recipe",
)  # fmt: skip


@pytest.mark.parametrize(
    "tries", [pytest.param(20, marks=pytest.mark.long), pytest.param(500, marks=pytest.mark.endure)]
)
def test_every_question_answers_arbitrary_fields(served, tries):
    pick, known = random.Random(8), {"panel": "why-tokens", "action": "force", "overlay": "effect_if_cut", "act": "row"}
    registry.load_all()
    for name in QUESTIONS:
        for number in range(tries):
            fields = {field: pick.choice(VALUES) for field in NAMES}
            fields |= {field: value for field, value in known.items() if pick.random() < 0.7}
            address = pick.choice([{"text": f"{MARK} Hund {number}"}, {"text": "Hund"}, *VALUES])
            status, body = Caller(served.port).post(f"/ask/{name}", {"address": address, "fields": fields})
            assert status == 200, (name, fields, body[:500])
            for line in body.splitlines():
                assert json.loads(line).get("error") != "internal", (name, fields, line[:500])
    assert served.process.poll() is None

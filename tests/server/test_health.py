"""What a proxy and a monitor ask: is it alive, can it take another visitor, what has it counted."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import anyio
import pytest
from starlette.datastructures import State

from attention_atlas.viz.server import health
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.server.line import Line


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def awaited(function: Callable) -> None:
    """In a thread of its own: a browser's loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(anyio.run, function).result(30)


def asked(path: str, *, waiting: int, most: int, app=None, about_to_end=False) -> tuple[int, str]:
    """The answer of the middleware alone, before a line that is so long."""

    class Waiting(Line):
        def __len__(self) -> int:
            return waiting

    sent = []

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "app": SimpleNamespace(state=State())}
    scope["app"].state.leaving, scope["app"].state.complete = about_to_end, True
    awaited(lambda: health.Health(app, Waiting({}, most))(scope, None, send))
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent).decode()


def test_a_served_app_is_alive_and_ready(tiny_url) -> None:
    assert get(f"{tiny_url}healthz") == (200, "alive\n")
    status, said = get(f"{tiny_url}readyz")
    assert status == 200 and json.loads(said)["ready"] and json.loads(said)["waiting"] == 0


@pytest.mark.parametrize(("waiting", "most", "status"), [(0, 3, 200), (2, 3, 200), (3, 3, 503)])
def test_it_is_ready_while_there_is_room_in_the_line(waiting, most, status) -> None:
    found, said = asked(health.READY, waiting=waiting, most=most)
    numbers = {"ready": status == 200, "waiting": waiting, "most": most}
    assert found == status and json.loads(said).items() >= numbers.items()


def test_who_is_about_to_end_is_not_ready() -> None:
    assert asked(health.READY, waiting=0, most=3, about_to_end=True)[0] == 503


def test_who_leaves_takes_no_question_and_waits_for_answers() -> None:
    asked_for, answers = [], []
    app = SimpleNamespace(state=State())

    async def inner(scope, receive, send) -> None:
        asked_for.append(scope["path"])

    async def send(message: dict) -> None:
        answers.append(message)

    def ask(method: str, path: str) -> None:
        scope = {"type": "http", "method": method, "path": path, "app": app}
        awaited(lambda: health.Leaving(inner)(scope, None, send))

    app.state.under_way = 1  # an answer
    with ThreadPoolExecutor(1) as pool:
        finished = pool.submit(health.leave, app, 20)
        while not health.leaving(app):
            pass
        ask("POST", "/gradio_api/queue/join")
        assert answers[0]["status"] == 503 and not asked_for
        ask("GET", "/gradio_api/call/translate/1")
        ask("GET", "/")
        app.state.under_way = 0
        assert finished.result(20) and asked_for == ["/gradio_api/call/translate/1", "/"]
    app.state.under_way = 1
    assert not health.leave(app, 0.1)


def test_metrics_count_requests_and_hold_no_text(tiny_url) -> None:
    def counted(text: str, route: str) -> float:
        lines = [line for line in text.splitlines() if line.startswith(f'atlas_requests_total{{route="{route}"')]
        return sum(float(line.split()[-1]) for line in lines)

    name, before = next(iter(ENDPOINTS)), get(f"{tiny_url}metrics")[1]
    secret = "Ein Geheimnis"
    body = json.dumps({"data": [secret]}).encode()
    request = urllib.request.Request(f"{tiny_url}gradio_api/call/{name}", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()
    get(f"{tiny_url}nothing/here/{secret.split()[1]}")
    status, after = get(f"{tiny_url}metrics")
    assert status == 200 and counted(after, name) == counted(before, name) + 1
    assert counted(after, "page") > counted(before, "page")
    assert "process_resident_memory_bytes" in after and "atlas_waiting 0.0" in after
    assert "atlas_request_seconds_bucket" in after and secret.split()[1] not in after


def test_without_the_extra_it_says_so(monkeypatch) -> None:
    monkeypatch.setattr(health, "prometheus_client", None)
    assert asked(health.METRICS, waiting=0, most=1) == (404, health.WITHOUT)


def test_a_request_that_fails_is_counted_as_such() -> None:
    async def broken(scope, receive, send) -> None:
        raise RuntimeError("broken")

    one = health.Health(broken, Line({}, 1))
    with pytest.raises(RuntimeError):
        awaited(lambda: one({"type": "http", "path": "/x"}, None, None))
    assert 'atlas_requests_total{route="page",status="500"} 1.0' in one.counts.written(0, 1).decode()

"""Tests of health checks, metrics and the graceful shutdown."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import anyio
import pytest
from starlette.datastructures import State

from attention_atlas.viz.server import health
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.server.request_queue import RequestQueue
from bench.load import Caller


def run_async(function: Callable) -> None:
    """Run a coroutine function in another thread: a browser's event loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(anyio.run, function).result(30)


def ask_middleware(path: str, *, waiting: int, limit: int, is_shutting_down=False) -> tuple[int, str]:
    """Return the middleware's answer when so many requests wait."""

    class FilledQueue(RequestQueue):
        def __len__(self) -> int:
            return waiting

    sent = []

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "app": SimpleNamespace(state=State())}
    scope["app"].state.is_shutting_down, scope["app"].state.complete = is_shutting_down, True
    run_async(lambda: health.Health(None, FilledQueue({}, limit))(scope, None, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()


def test_a_served_app_is_alive_and_ready(port) -> None:
    assert Caller(port).get("/healthz") == (200, b"alive\n")
    status, body = Caller(port).get("/readyz")
    assert status == 200 and json.loads(body)["ready"] and json.loads(body)["waiting"] == 0


@pytest.mark.parametrize(("waiting", "limit", "expected"), [(0, 3, 200), (2, 3, 200), (3, 3, 503)])
def test_ready_until_the_queue_is_full(waiting, limit, expected) -> None:
    status, body = ask_middleware(health.READY, waiting=waiting, limit=limit)
    assert status == expected
    assert json.loads(body) == {"ready": expected == 200, "waiting": waiting, "most": limit}


def test_not_ready_during_shutdown() -> None:
    assert ask_middleware(health.READY, waiting=0, limit=3, is_shutting_down=True)[0] == 503


def test_shutdown_refuses_questions_and_waits_for_answers_under_way() -> None:
    paths, answers = [], []
    app = SimpleNamespace(state=State())

    async def inner(scope, receive, send) -> None:
        paths.append(scope["path"])

    async def send(message: dict) -> None:
        answers.append(message)

    def ask(method: str, path: str) -> None:
        scope = {"type": "http", "method": method, "path": path, "app": app}
        run_async(lambda: health.Shutdown(inner)(scope, None, send))

    app.state.under_way = 1  # an answer
    with ThreadPoolExecutor(1) as pool:
        finished = pool.submit(health.shut_down, app, 20)
        while not health.is_shutting_down(app):
            pass
        ask("POST", "/gradio_api/queue/join")
        assert answers[0]["status"] == 503 and not paths
        ask("GET", "/gradio_api/call/translate/1")
        ask("GET", "/")
        app.state.under_way = 0
        assert finished.result(20) and paths == ["/gradio_api/call/translate/1", "/"]
    app.state.under_way = 1
    assert not health.shut_down(app, 0.1)


def test_metrics_count_requests_without_their_text(port) -> None:
    def count(text: str, route: str) -> float:
        lines = [line for line in text.splitlines() if line.startswith(f'atlas_requests_total{{route="{route}"')]
        return sum(float(line.split()[-1]) for line in lines)

    name, before = next(iter(ENDPOINTS)), Caller(port).get("/metrics")[1].decode()
    secret = "Ein Geheimnis"
    assert Caller(port).post(f"/gradio_api/call/{name}", {"data": [secret]})[0] == 200
    Caller(port).get(f"/nothing/here/{secret.split()[1]}")
    status, after = Caller(port).get("/metrics")
    after = after.decode()
    assert status == 200 and count(after, name) == count(before, name) + 1
    assert count(after, "page") > count(before, "page")
    assert "process_resident_memory_bytes" in after and "atlas_waiting 0.0" in after
    assert "atlas_request_seconds_bucket" in after and secret.split()[1] not in after


def test_metrics_without_the_extra_name_it(monkeypatch) -> None:
    monkeypatch.setattr(health, "prometheus_client", None)
    assert ask_middleware(health.METRICS, waiting=0, limit=1) == (404, health.NO_METRICS)


def test_a_failed_request_counts_as_status_500() -> None:
    async def broken(scope, receive, send) -> None:
        raise RuntimeError("broken")

    middleware = health.Health(broken, RequestQueue({}, 1))
    with pytest.raises(RuntimeError):
        run_async(lambda: middleware({"type": "http", "path": "/x"}, None, None))
    requests = {"route": "page", "status": "500"}
    assert middleware.metrics.registry.get_sample_value("atlas_requests_total", requests) == 1

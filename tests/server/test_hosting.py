"""Tests of the files of docs/hosting: nginx runs in front of two stand-ins for replicas; the others are parsed."""

from __future__ import annotations

import shutil
import threading
import time
import urllib.request
from collections.abc import Iterator
from configparser import ConfigParser
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from attention_atlas.viz.server.health import ALIVE, READY
from bench.hosting.fleet import proxy

FOLDER = Path("docs/hosting")
EVENTS, PAUSE = 4, 0.3
pytestmark = pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed: make proxy")


class Replica(BaseHTTPRequestHandler):
    """Answers with its port, and at /events with a slow stream. HTTP/1.0, so that no connection outlives its server."""

    def do_GET(self) -> None:
        name = str(self.server.server_port).encode()
        self.send_response(200)
        if self.path != "/events":
            self.send_header("Content-Length", str(len(name)))
            self.end_headers()
            self.wfile.write(name)
            return
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for _ in range(EVENTS):
            self.wfile.write(b"data: x\n\n")
            self.wfile.flush()
            time.sleep(PAUSE)

    def log_message(self, *args: object) -> None: ...


def start_replica() -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Replica)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


@pytest.fixture()
def replicas(tmp_path) -> Iterator[tuple[int, list[ThreadingHTTPServer]]]:
    """Start two replicas behind nginx; yield nginx's port and the replicas."""
    servers = [start_replica(), start_replica()]
    with proxy(tmp_path, [server.server_port for server in servers]) as port:
        yield port, servers
    for server in servers:
        server.shutdown()  # otherwise its thread polls a closed socket in a busy loop
        server.server_close()


def ask(port: int, path: str = "/") -> str:
    """Return which replica answered."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        assert "Set-Cookie" not in answer.headers
        return answer.read().decode()


def test_requests_go_to_all_running_replicas(replicas):
    port, servers = replicas
    assert {ask(port) for _ in range(32)} == {str(server.server_port) for server in servers}
    servers[0].shutdown()
    servers[0].server_close()
    assert {ask(port) for _ in range(12)} == {str(servers[1].server_port)}


def test_a_program_reaches_the_replica_that_it_called(replicas):
    assert len({ask(replicas[0], path="/gradio_api/call/translate/1") for _ in range(8)}) == 1


def test_streams_are_not_buffered_and_metrics_are_private(replicas):
    connection = HTTPConnection("127.0.0.1", replicas[0], timeout=20)
    connection.request("GET", "/events")
    answer, times = connection.getresponse(), []
    while line := answer.readline():
        if line.strip():
            times.append(time.monotonic())
    assert len(times) == EVENTS and times[-1] - times[0] > PAUSE * (EVENTS - 1.5)
    connection.request("GET", "/metrics")
    assert connection.getresponse().status == 404


def test_the_files_for_compose_kubernetes_and_systemd_are_valid():
    texts = {name: (FOLDER / name).read_text(encoding="utf-8") for name in ("compose.yaml", "kubernetes.yaml")}
    services = yaml.safe_load(texts["compose.yaml"])["services"]
    assert {"atlas-1", "atlas-2", "proxy"} == set(services)
    deployment, service, ingress = yaml.safe_load_all(texts["kubernetes.yaml"])
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    paths = {probe: container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")}
    assert paths == {"startup": ALIVE, "liveness": ALIVE, "readiness": READY}
    assert ingress["kind"] == "Ingress" and service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read_string((FOLDER / "attention-atlas@.service").read_text(encoding="utf-8"))
    assert "attention-atlas serve" in unit["Service"]["ExecStart"] and "%i" in unit["Service"]["ExecStart"]

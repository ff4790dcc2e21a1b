"""Tests of a running app under attack: server-side request forgery, held memory, floods, requests of other sites."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_atlas.viz import assets
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.server.options import allowed_hosts
from bench.load import JSON, Caller, Server, memory, running_app
from bench.ports import free_port
from tests import ROOT, run

TEXT = "Ein kleiner Hund schläft."
WAYS = ("/gradio_api/file={url}", "/gradio_api/file/{url}", "/gradio_api/proxy={url}", "/file={url}")

# Questions for which the model needs seconds.
FLOODS = [  # the path and the body of a call
    ("/gradio_api/run/why_smallest", {"data": [TEXT]}),
    pytest.param(
        "/ask/page_panel",
        {"address": {"text": TEXT}, "fields": {"panel": "why-holds"}},
        marks=pytest.mark.endure,
    ),
]

# Run in a network namespace in which 100.100.100.200 is this machine: does the app fetch from there what a caller
# names?
NETWORK = """
import json, subprocess, sys, threading, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from bench.load import running_app

ADDRESS = "100.100.100.200"
for command in ("link set lo up", f"address add {ADDRESS}/32 dev lo"):
    subprocess.run(["ip", *command.split()], check=True)
paths = []

class Host(BaseHTTPRequestHandler):
    def do_GET(self):
        paths.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<script>fetched</script>")

    def log_message(self, *_): ...

host = HTTPServer((ADDRESS, 0), Host)
threading.Thread(target=host.serve_forever, daemon=True).start()
urllib.request.urlopen(f"http://{ADDRESS}:{host.server_port}/first").read()
checkpoints, *ways = json.loads(sys.argv[1])
statuses = []
with running_app(["--checkpoints", checkpoints, "--device", "cpu"]) as (port, _):
    for way in ways:
        url = way.format(url=f"http://{ADDRESS}:{host.server_port}/picture.png")
        try:
            statuses.append(urllib.request.urlopen(f"http://127.0.0.1:{port}{url}").status)
        except urllib.error.HTTPError as error:
            statuses.append(error.code)
print(json.dumps({"paths": paths, "statuses": statuses}))
"""


@pytest.fixture(scope="module")
def shipped(shipped_checkpoints: Path) -> Iterator[tuple[int, int]]:
    """Serve the shipped models, whose experiments take seconds; yield the app's port and process."""
    with running_app(["--checkpoints", str(shipped_checkpoints), "--device", "cpu"]) as (port, pid):
        Caller(port).call("translate", [TEXT])
        yield port, pid


@pytest.mark.long
def test_no_request_makes_the_app_fetch_another_address(tiny_checkpoint):
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    options = json.dumps([str(tiny_checkpoint.parent), *WAYS])
    printed = run([*unshare, sys.executable, "-c", NETWORK, options], timeout=120)
    assert json.loads(printed.splitlines()[-1]) == {"paths": ["/first"], "statuses": [404] * len(WAYS)}


@pytest.mark.long
@pytest.mark.parametrize(
    "path", ["/gradio_api/call/translate", pytest.param("/ask/page_panel", marks=pytest.mark.endure)]
)
def test_cut_off_bodies_leave_no_memory_behind(served, path):
    Caller(served.port).call("translate", [TEXT])
    before = memory(served.process.pid)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = b'{"data": ["' + b"x" * 7_900_000

    def send() -> None:
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            try:
                connection.sendall(head.encode() + b"Content-Length: 8000000\r\n\r\n" + body)
                time.sleep(0.2)
            except OSError:
                pass  # refused while it was being sent

    senders = [threading.Thread(target=send) for _ in range(50)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    time.sleep(8)
    assert memory(served.process.pid) - before <= 50
    assert Caller(served.port).call("translate", [TEXT])["status"] == "ok"


@pytest.mark.long
def test_an_incomplete_request_ends_the_connection_after_a_while(served):
    """A body with status 408, headers without an answer; both wait at the same time."""
    start = b"POST /gradio_api/call/translate HTTP/1.1\r\nHost: localhost\r\n"
    rest = b'Content-Length: 100\r\nContent-Type: application/json\r\n\r\n{"data": '
    with (
        socket.create_connection(("127.0.0.1", served.port), timeout=40) as body,
        socket.create_connection(("127.0.0.1", served.port), timeout=40) as headers,
    ):
        body.sendall(start + rest)
        headers.sendall(start)
        assert body.recv(1000).startswith(b"HTTP/1.1 408")
        assert headers.recv(1000) == b""


@pytest.mark.parametrize("path", ["/gradio_api/run/translate", "/gradio_api/call/translate", "/gradio_api/queue/join"])
def test_a_large_list_is_refused_without_quoting_it(served, path):
    values = [1] * 3_000_000
    for body in (values, {"data": values}, {"data": [values]}, {"data": [TEXT, values]}, {"data": [TEXT, "", values]}):
        status, answer = Caller(served.port).post(path, body)
        assert status in (413, 422) and len(answer) < 1000 and b"1, 1" not in answer
        assert json.loads(answer)["status"] == "error"


def test_long_values_are_quoted_in_part(served):
    for values in ([TEXT, "x" * 90_000], [TEXT, "", float("1" * 300)]):
        answer = Caller(served.port).call("translate", values)
        assert answer["status"] == "error" and len(answer["message"]) < 1000


def test_a_call_reaches_only_the_endpoint_that_it_names(served):
    numbers = [listener["id"] for listener in json.loads(Caller(served.port).get("/config")[1])["dependencies"]]
    assert len(numbers) > len(ENDPOINTS)
    for number in numbers:
        body = {"data": [], "fn_index": number, "session_hash": "a"}
        assert Caller(served.port).post("/gradio_api/run/predict", body)[0] == 404
        status, answer = Caller(served.port).post("/gradio_api/run/translate", {**body, "data": [TEXT]})
        assert status == 200 and json.loads(answer)["data"][0]["status"] == "ok"  # by its name alone


@pytest.mark.long
@pytest.mark.parametrize(("path", "call"), FLOODS)
def test_a_flood_of_calls_leaves_room_for_others(shipped, path, call):
    port, pid = shipped
    before, ended = memory(pid), threading.Event()

    def flood() -> None:
        body = json.dumps(call)
        kind = "Content-Type: application/json\r\n"
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {len(body.encode())}\r\n\r\n"
        while not ended.is_set():
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall((head + body).encode())
                connection.settimeout(0.2)
                while not ended.is_set():
                    try:
                        if not connection.recv(100_000):
                            break
                    except TimeoutError:
                        continue
            ended.wait(0.1)

    callers = [threading.Thread(target=flood, daemon=True) for _ in range(120)]
    for caller in callers:
        caller.start()
    peak, slowest, began = before, {"healthz": 0.0, "translate": 0.0}, time.monotonic()
    while time.monotonic() - began < 20:
        for name in slowest:
            started = time.monotonic()
            if name == "healthz":
                assert Caller(port).get("/healthz")[0] == 200
            else:
                assert Caller(port).call("translate", [f"{TEXT} {started}"])["status"] == "ok"
            slowest[name] = max(slowest[name], time.monotonic() - started)
        peak = max(peak, memory(pid))
        time.sleep(0.3)
    ended.set()
    for caller in callers:
        caller.join(30)
    print(f"{peak - before:.0f} MB more; slowest, s: {slowest}")
    assert peak - before <= 300 and slowest["healthz"] < 1 and slowest["translate"] < 5
    time.sleep(10)
    started = time.monotonic()
    assert Caller(port).call("translate", ["Wo ist der Bahnhof?"])["status"] == "ok"
    assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://other.example"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://other.example"},
        {"Origin": "http://127.0.0.1.example.org"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
    ],
)
def test_scripts_of_other_sites_are_refused(served, headers):
    body = json.dumps({"data": [TEXT]}).encode()
    for path in (
        "/gradio_api/call/translate", "/gradio_api/call/v2/translate", "/gradio_api/run/translate",
        "/gradio_api/queue/join", "/gradio_api/cancel", "/gradio_api/mcp/", "/", "/readyz",
    ):  # fmt: skip
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
            status, answer, _ = Caller(served.port).send("POST", path, body, {"Content-Type": content_type, **headers})
            assert status == 403 and json.loads(answer)["status"] == "error", path
    if "Origin" in headers:  # browsers send it with requests whose answer a script could read
        assert Caller(served.port).send("GET", "/config", headers=headers)[0] == 403


def test_the_page_itself_programs_and_links_are_answered(served):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert Caller(served.port).send("GET", "/", headers=link)[0] == 200
    body = json.dumps({"data": [TEXT]}).encode()
    for headers in (
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://in.front.of.a.proxy"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": f"http://127.0.0.1:{served.port}"},
        {},
    ):
        assert Caller(served.port).send("POST", "/gradio_api/run/translate", body, JSON | headers)[0] == 200, headers


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/config",
        "/gradio_api/info",
        "/healthz",
        "/readyz",
        "/metrics",
        "/nowhere",
        "/gradio_api/call/translate/none",
    ],
)
def test_every_answer_carries_the_security_headers(served, path):
    headers = Caller(served.port).send("GET", path)[2]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'self'" and policy["object-src"] == "'none'"
    for name, value in policy.items():  # no other host, except Hugging Face as the frame around a Space
        assert name == "frame-ancestors" or "http" not in value, (name, value)


def test_a_list_of_ranges_is_answered_with_the_whole_file(served):
    path = f"/{assets.address()}core/dom.js"
    status, body, _ = Caller(served.port).send("GET", path, headers={"Range": "bytes=0-1,0-2"})
    assert status == 200 and body == (ROOT / "viz/web/core/dom.js").read_bytes()


def test_an_unknown_event_is_a_404(served):
    for route in ("call", "call/v2"):
        status, body = Caller(served.port).get(f"/gradio_api/{route}/translate/{'0' * 32}")
        assert status == 404 and "no such event" in json.loads(body)["message"]


def test_the_listing_of_routes_names_only_the_endpoints(served):
    status, body = Caller(served.port).get("/gradio_api/openapi.json")
    named = {path.split("/")[-1] for path in json.loads(body)["paths"] if "{" not in path}
    assert status == 200 and named == set(ENDPOINTS)
    assert Caller(served.port).get("/openapi.json")[0] == 404


@pytest.mark.long
def test_the_app_is_served_on_an_ipv6_address(tiny_checkpoint):
    command = ("app.py", "--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu", "--host", "::")
    server = Server(free_port(), command).start()
    try:
        began, status = time.monotonic(), None
        while status is None and time.monotonic() - began < 60 and server.process.poll() is None:
            try:
                status = urllib.request.urlopen(f"http://[::1]:{server.port}/healthz", timeout=20).status
            except OSError:
                time.sleep(0.1)
        assert status == 200
    finally:
        server.end(signal.SIGKILL)


@pytest.mark.parametrize(
    ("address", "names", "answers", "refuses"),
    [
        ("127.0.0.1", None, ("127.0.0.1", "localhost", "::1"), ("evil.example", "", "127.0.0.1.evil.example")),
        ("127.0.0.1", "atlas.example, [2001:db8::1]", ("atlas.example", "2001:db8::1", "localhost"), ("evil.example",)),
        ("192.0.2.1", "atlas.example", ("atlas.example", "192.0.2.1"), ("evil.example",)),
    ],
)
def test_allowed_hosts(address, names, answers, refuses) -> None:
    hosts = allowed_hosts(address, names)
    assert hosts.issuperset(answers) and hosts.isdisjoint(refuses)
    assert allowed_hosts(address, "*") is None and allowed_hosts("0.0.0.0") is None


def test_a_foreign_host_name_is_refused(served) -> None:
    """DNS rebinding: a page of another site whose name resolves to 127.0.0.1 would share this page's origin."""
    for host, status in (
        (f"127.0.0.1:{served.port}", 200),
        (f"localhost:{served.port}", 200),
        (f"LOCALHOST:{served.port}", 200),
        (f"[::1]:{served.port}", 200),
        ("evil.example", 421),
        (f"evil.example:{served.port}", 421),
        ("[", 421),
    ):
        question = b'{"fields": {"text": "Hund"}}'
        for method, path, body in (("GET", "/", None), ("POST", "/ask/page_translate", question)):
            answered, answer, _ = Caller(served.port).send(method, path, body, {"Host": host, **JSON})
            assert answered == status, (host, path)
            assert status == 200 or json.loads(answer)["error"] == "invalid"

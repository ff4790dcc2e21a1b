"""Measure what faults around a busy app cost its callers: `python -m bench.hosting.faults --help`

Starts the app as a process of its own, keeps callers asking it for a translation, and causes one fault after another:
clients that read nothing, half-open connections, a full disk, thousands of visitors, a changed clock, memory that runs
out, SIGTERM. Only this machine is contacted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPResponse
from itertools import cycle, islice
from pathlib import Path

from attention_atlas.model.program import CommandLine, parse_args, run_program
from attention_atlas.viz.server.request_queue import ADDRESS_SHARE
from bench.common import write_json
from bench.load import APP, CALL_LIMIT, ERRORS, SENTENCES, Caller, memory, running_server

EXPORT = [SENTENCES[4], "all", 0, 0]  # every map of a sentence, in a format that follows
FREE = 48_000_000  # bytes of memory that are left to the app
CALLS_OF_ADDRESS = int(ADDRESS_SHARE * 128)  # calls of one address that may wait, by the default of --queue


@dataclass
class App:
    """The app as a process of its own. clock: the file that sets its clock, if there is a C compiler."""

    port: int
    process: subprocess.Popen
    clock: Path | None = None

    @contextlib.contextmanager
    def limited(self, kind: int, limit: int) -> Iterator[None]:
        """Limit a resource (resource.RLIMIT_..) of the process within the context."""
        resource.prlimit(self.process.pid, kind, (limit, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            resource.prlimit(self.process.pid, kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def set_clock(self, seconds: int) -> None:
        with open(self.clock, "r+b") as file:  # truncating a file that the app has mapped would end the app
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))


@contextlib.contextmanager
def running(options: list[str], folder: Path) -> Iterator[App]:
    """Run the app within the context, with a clock that can be set (clock.c). folder: for its files."""
    clock, library = folder / "clock", folder / "clock.so"
    environment = {**os.environ, "TMPDIR": str(folder)}
    with contextlib.suppress(FileNotFoundError):
        source = Path(__file__).with_name("clock.c")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, capture_output=True
        )
        clock.write_bytes(bytes(8))
        environment |= {"LD_PRELOAD": str(library), "ATLAS_CLOCK": str(clock)}
    with (
        open(folder / "log", "w", encoding="utf-8") as log,
        running_server(*APP, *options, env=environment, stdout=log, stderr=log) as (port, process),
    ):
        yield App(port, process, clock if clock.exists() else None)


@dataclass
class OtherCallers:
    """Callers whose requests are valid. wrong: translations that differ from those without a fault; failed: errors."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    failed: int = 0

    def figures(self) -> dict[str, float]:
        return {
            "answers to others": len(self.seconds),
            "slowest (s)": round(max(self.seconds, default=float("nan")), 2),
            "wrong": self.wrong,
            "failed": self.failed,
        }


@contextlib.contextmanager
def other_callers(port: int, *, number: int = 2) -> Iterator[OtherCallers]:
    """Ask for a translation from other callers within the context, which ends after one answer at the earliest."""
    callers, answered, ended = OtherCallers(), threading.Event(), threading.Event()
    expected = Caller(port, CALL_LIMIT).call("translate", [SENTENCES[0]])["translation"]

    def ask() -> None:
        while not ended.is_set():
            began = time.monotonic()
            try:
                answer = Caller(port, CALL_LIMIT).call("translate", [SENTENCES[0]])
                callers.seconds.append(time.monotonic() - began)
                answered.set()
                callers.failed += answer["status"] != "ok"
                callers.wrong += answer.get("translation", expected) != expected
            except ERRORS:
                callers.failed += 1
            ended.wait(0.05)

    with ThreadPoolExecutor(number) as pool:
        jobs = [pool.submit(ask) for _ in range(number)]
        try:
            yield callers
            answered.wait(60)
        finally:
            ended.set()
        for job in jobs:
            job.result()


def slow_clients(app: App, number: int) -> dict[str, float]:
    """Clients ask for every map and read nothing until all have asked; then each reads its whole answer."""
    opened = []
    question = [*EXPORT, "json"]
    with other_callers(app.port) as others:
        for _ in range(number):
            body = Caller(app.port, CALL_LIMIT).post("/gradio_api/call/attention", {"data": question})[1]
            event = json.loads(body)["event_id"]
            for path in (f"call/attention/{event}", f"heartbeat/{event}"):
                opened.append(send_slowly(app.port, f"GET /gradio_api/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        time.sleep(1)
    expected = Caller(app.port, CALL_LIMIT).call("attention", question)["trace"]
    whole = sum(read_answer(client)["trace"]["target_ids"] == expected["target_ids"] for client in opened[::2])
    for client in opened:
        client.close()
    return {"clients": number, "whole answers": whole, "bytes each": len(json.dumps(expected)), **others.figures()}


def half_open(app: App, number: int) -> dict[str, float]:
    """Connections that send nothing, half of the headers, or half of a body."""
    head = "POST /gradio_api/call/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    beginnings = ("", head, head + 'Content-Length: 100\r\n\r\n{"data": ')
    with other_callers(app.port) as others:
        opened = [send_slowly(app.port, beginnings[i % 3]) for i in range(number)]
        time.sleep(1)
        for client in opened[: number // 2]:  # half of them are reset instead of closed
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
        time.sleep(0.5)
    for client in opened:
        client.close()
    return {"connections": number, **others.figures()}


def full_disk(app: App, number: int) -> dict[str, float]:
    """Exports are asked for while the app can write no file."""

    def export(kind: str) -> int:
        return len(json.dumps(Caller(app.port, CALL_LIMIT).call("attention", [*EXPORT, kind])))

    before = {kind: export(kind) for kind in ("json", "npz", "html")}
    kinds = [*islice(cycle(before), number)]
    with app.limited(resource.RLIMIT_FSIZE, 0), other_callers(app.port) as others, ThreadPoolExecutor(2) as pool:
        sizes = list(pool.map(export, kinds))
    whole = sum(size > 0.99 * before[kind] for kind, size in zip(kinds, sizes))
    return {"exports": number, "whole exports": whole, **others.figures()}


def sessions(app: App, number: int, at_once: int = 4) -> dict[str, float]:
    """Visitors open the page, translate and leave."""
    texts, began, megabytes = [*islice(cycle(SENTENCES), number)], time.monotonic(), []
    with other_callers(app.port, number=1) as others, ThreadPoolExecutor(at_once) as pool:
        for visits in (texts[: number // 5], texts[number // 5 :]):
            list(pool.map(lambda text: Caller(app.port, CALL_LIMIT).visit(text), visits))
            megabytes.append(round(memory(app.process.pid)))
    return {
        "sessions": number,
        "sessions an hour": round(3600 * number / (time.monotonic() - began)),
        "memory after a fifth (MB)": megabytes[0],
        "memory (MB)": megabytes[1],
        **others.figures(),
    }


def clock_steps(app: App, number: int) -> dict[str, float]:
    """The clock jumps by days, forwards and backwards, while visitors ask."""
    with other_callers(app.port) as others:
        caller = Caller(app.port, CALL_LIMIT)
        for days, text in islice(zip(cycle((1, -1, 400, 0)), cycle(SENTENCES)), number):
            app.set_clock(days * 86_400)
            caller.visit(text)
            time.sleep(0.2)
    app.set_clock(0)
    return {"steps": number, "sessions": number, **others.figures()}


def out_of_memory(app: App, number: int) -> dict[str, float]:
    """The app gets no more memory while many large questions arrive."""
    pages = int(Path(f"/proc/{app.process.pid}/statm").read_text(encoding="ascii").split()[0])
    question = ["translate", [" ".join(SENTENCES[4:6]), "", 4]]
    expected = Caller(app.port, CALL_LIMIT).call(*question)["target_ids"]

    def ask(_: int) -> list[int] | None:
        """Return the ids of an answer, or None for a refusal; no answer counts as one."""
        with contextlib.suppress(*ERRORS):
            return Caller(app.port, CALL_LIMIT).call(*question).get("target_ids")

    with app.limited(resource.RLIMIT_AS, pages * resource.getpagesize() + FREE), ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(number)))
    refused = answers.count(None)
    wrong = number - refused - answers.count(expected)
    with other_callers(app.port) as others:
        time.sleep(1)
    return {"large questions": number, "refused": refused, "wrong answers": wrong, **others.figures()}


def sigterm(app: App, number: int) -> dict[str, float]:
    """The app gets SIGTERM while callers ask without a pause. It must answer every accepted question."""
    expected = {text: Caller(app.port, CALL_LIMIT).call("translate", [text])["translation"] for text in SENTENCES}
    accepted, answered, rejected = [], [], []  # rejected: callers whose last question was not accepted

    def ask(first: int) -> None:
        for text in islice(cycle(SENTENCES), first, None):
            caller = Caller(app.port, CALL_LIMIT)
            try:
                status, body = caller.post("/gradio_api/call/translate", {"data": [text]})
            except ERRORS:  # the connection was refused
                status = 0
            if status != 200:
                rejected.append(first)
                return
            accepted.append(text)
            try:
                body = caller.get(f"/gradio_api/call/translate/{json.loads(body)['event_id']}")[1]
                (answer,) = json.loads(body.decode().split("data: ")[-1])
                answered.append(answer["translation"] == expected[text])
            except (*ERRORS, TypeError, KeyError):
                return

    with ThreadPoolExecutor(number) as pool:
        jobs = [pool.submit(ask, i) for i in range(number)]
        time.sleep(1)
        began = time.monotonic()
        app.process.send_signal(signal.SIGTERM)
        code = app.process.wait(20)
        seconds = time.monotonic() - began
    for job in jobs:
        job.result()
    return {
        "callers": number,
        "taken": len(accepted),
        "lost": len(accepted) - len(answered),
        "wrong": answered.count(False),
        "told to come back": len(rejected),
        "exit code": code,
        "seconds to the end": round(seconds, 2),
    }


# Each with its number in a test of seconds and in the whole run. The last one ends the app.
FAULTS: Mapping[str, tuple[Callable[[App, int], dict[str, float]], int, int]] = {
    "slow clients": (slow_clients, 8, CALLS_OF_ADDRESS),
    "half-open connections": (half_open, 300, 3000),
    "a full disk": (full_disk, 3, 100),
    "a clock that is set": (clock_steps, 4, 100),
    "sessions": (sessions, 20, 10_000),
    "no more memory": (out_of_memory, 10, 100),
    "SIGTERM": (sigterm, 10, 50),
}


def send_slowly(port: int, text: str) -> socket.socket:
    """Send text on a connection with a small receive buffer, as of a slow reader, and return it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", port))
    client.sendall(text.encode())
    return client


def read_answer(client: socket.socket) -> dict:
    """Read an endpoint's answer from a connection."""
    response = HTTPResponse(client)
    response.begin()
    return json.loads(response.read().decode().split("data: ")[-1])[0]


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.hosting.faults", __doc__)
    parser.add_argument("--share", type=float, default=1, help="of the whole run, from 0 to 1; default 1")
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS), help="these alone")
    parser.add_argument("--app", nargs=argparse.REMAINDER, default=["--device", "cpu"], help="options of the app, last")
    parser.add_json("also write the figures there")
    args = parse_args(parser, argv)
    figures: dict[str, object] = {"cores": len(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory() as folder, running(args.app, Path(folder)) as app:
        for name in args.only:
            fault, few, many = FAULTS[name]
            if fault is clock_steps and app.clock is None:
                continue
            figures[name] = fault(app, max(few, round(args.share * many)))
            print(name, json.dumps(figures[name]), flush=True)
            write_json(args.json, figures)


if __name__ == "__main__":
    run_program(main)

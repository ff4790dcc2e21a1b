"""What goes wrong around a busy app, and what it costs those who ask: `python -m bench.hosting.faults --help`.

Starts the app as its own process, keeps a program asking it for a translation, and meanwhile lets one thing after
another go wrong: clients that read nothing, connections that are half open, a full disk, thousands of visitors, a clock
that is set, memory that runs out, SIGTERM. Nothing but this machine is contacted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

from attention_atlas.model.program import add_json, command_line, parse_args, program
from attention_atlas.viz.server.request_queue import ADDRESS_SHARE
from bench.hosting.besieged import App, others, running
from bench.load import SENTENCES, Caller, memory

LONG = SENTENCES[4]
FORMATS = ("json", "npz", "html")
FREE = 48_000_000  # bytes that are left to an app whose memory runs out
DAY = 86_400
WITHIN_SHARE = int(ADDRESS_SHARE * 128)  # calls of one address that may wait, by the default of --queue


def slow_clients(app: App, number: int) -> dict[str, float]:
    """They ask for every map, and read nothing of the answer until all have asked; then each gets the whole of it."""
    opened = []
    with others(app.port) as beside:
        for _ in range(number):
            body = {"data": [LONG, "all", 0, 0, "json"]}
            event = json.loads(Caller(app.port).post("/gradio_api/call/attention", body)[1])["event_id"]
            opened.append(
                _asked(app.port, f"GET /gradio_api/call/attention/{event} HTTP/1.1\r\nHost: localhost\r\n\r\n")
            )
            opened.append(_asked(app.port, f"GET /gradio_api/heartbeat/{event} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        time.sleep(1)
    expected = Caller(app.port).call("attention", [LONG, "all", 0, 0, "json"])["trace"]
    whole = sum(_answer(one)["trace"]["target_ids"] == expected["target_ids"] for one in opened[::2])
    for one in opened:
        one.close()
    return {"clients": number, "whole answers": whole, "bytes each": len(json.dumps(expected)), **beside.figures()}


def half_open(app: App, number: int) -> dict[str, float]:
    """Connections that say nothing, or half a head, or half a body."""
    head = "POST /gradio_api/call/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    said = ("", head, head + 'Content-Length: 100\r\n\r\n{"data": ')
    with others(app.port) as beside:
        opened = [_asked(app.port, said[i % 3]) for i in range(number)]
        time.sleep(1)
        for one in opened[: number // 2]:  # half of them vanish without a word
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one.close()
        time.sleep(0.5)
    for one in opened:
        one.close()
    return {"connections": number, **beside.figures()}


def full_disk(app: App, number: int) -> dict[str, float]:
    """Not a byte more can be written, while somebody exports."""
    before = {kind: Caller(app.port).call("attention", [LONG, "all", 0, 0, kind]) for kind in FORMATS}
    app.limit(resource.RLIMIT_FSIZE, 0)
    try:
        with others(app.port) as beside, ThreadPoolExecutor(2) as pool:
            kinds = [FORMATS[i % len(FORMATS)] for i in range(number)]
            found = list(pool.map(lambda kind: Caller(app.port).call("attention", [LONG, "all", 0, 0, kind]), kinds))
    finally:
        app.limit(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)
    same = sum(len(json.dumps(one)) > 0.99 * len(json.dumps(before[kind])) for kind, one in zip(kinds, found))
    return {"exports": number, "whole exports": same, **beside.figures()}


def sessions(app: App, number: int, at_once: int = 4) -> dict[str, float]:
    """Visitors who come, translate, and leave."""
    visits, early, began = iter(range(number)), [], time.monotonic()
    lock = threading.Lock()

    def come() -> int:
        caller, done = Caller(app.port), 0
        while True:
            with lock:
                at = next(visits, None)
                if at == number // 5:
                    early.append(memory(app.process.pid))
            if at is None:
                return done
            caller.visit(SENTENCES[at % len(SENTENCES)])
            done += 1

    with others(app.port, most=1) as beside, ThreadPoolExecutor(at_once) as pool:
        done = sum(one.result() for one in [pool.submit(come) for _ in range(at_once)])
    took = time.monotonic() - began
    return {
        "sessions": done,
        "sessions an hour": round(3600 * done / took),
        "memory after a fifth (MB)": round(early[0]),
        "memory (MB)": round(memory(app.process.pid)),
        **beside.figures(),
    }


def clock_steps(app: App, number: int) -> dict[str, float]:
    """The clock is set a day on, and two back, while people ask."""
    with others(app.port) as beside:
        caller = Caller(app.port)
        for at in range(number):
            app.set_clock((DAY, -DAY, 400 * DAY, 0)[at % 4])
            caller.visit(SENTENCES[at % len(SENTENCES)])
            time.sleep(0.2)
    app.set_clock(0)
    return {"steps": number, "sessions": number, **beside.figures()}


def out_of_memory(app: App, number: int) -> dict[str, float]:
    """No more memory is given to it, while many ask for much."""
    size = int(Path(f"/proc/{app.process.pid}/statm").read_text(encoding="ascii").split()[0])
    ask = ["translate", [" ".join(SENTENCES[4:6]), "", 4]]
    expected, refused, wrong = Caller(app.port).call(*ask), 0, 0
    app.limit(resource.RLIMIT_AS, size * resource.getpagesize() + FREE)
    try:
        with ThreadPoolExecutor(8) as pool:
            for one in [pool.submit(_called, app.port, *ask) for _ in range(number)]:
                answer = one.result()
                refused += answer["status"] != "ok"
                wrong += answer.get("target_ids", expected["target_ids"]) != expected["target_ids"]
    finally:
        app.limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)
    with others(app.port) as beside:
        time.sleep(1)
    return {"large questions": number, "refused": refused, "wrong answers": wrong, **beside.figures()}


def sigterm(app: App, number: int) -> dict[str, float]:
    """So many callers ask without a pause; it is told to end. What it had taken is answered."""
    expected = {text: Caller(app.port).call("translate", [text])["translation"] for text in SENTENCES}
    taken, answered, wrong, refused, ended = [], [], [], [], threading.Event()

    def ask(at: int) -> None:
        while not ended.is_set():
            text, caller, event = SENTENCES[at % len(SENTENCES)], Caller(app.port), None
            try:
                status, body = caller.post("/gradio_api/call/translate", {"data": [text]})
                if status != 200:
                    refused.append(status)
                    return
                event = json.loads(body)["event_id"]
                taken.append(event)
                found = json.loads(caller.get(f"/gradio_api/call/translate/{event}")[1].decode().split("data: ")[-1])
                answered.append(event)
                wrong.extend([event] * (found[0]["translation"] != expected[text]))
            except (OSError, HTTPException, ValueError, TypeError, KeyError):
                if event is None:
                    refused.append(0)  # the door was shut: nothing was taken
                return
            at += 1

    with ThreadPoolExecutor(number) as pool:
        asked = [pool.submit(ask, at) for at in range(number)]
        time.sleep(1)
        began = time.monotonic()
        app.process.send_signal(signal.SIGTERM)
        code = app.process.wait(20)
        took = time.monotonic() - began
        ended.set()
        for one in asked:
            one.result(120)
    return {
        "callers": number,
        "taken": len(taken),
        "lost": len(taken) - len(answered),
        "wrong": len(wrong),
        "told to come back": len(refused),
        "exit code": code,
        "seconds to the end": round(took, 2),
    }


# Each with how often in a test of seconds, and in the whole run. The last one ends the app.
FAULTS: Mapping[str, tuple[Callable[[App, int], dict[str, float]], int, int]] = {
    "slow clients": (slow_clients, 8, WITHIN_SHARE),
    "half-open connections": (half_open, 300, 3000),
    "a full disk": (full_disk, 3, 100),
    "a clock that is set": (clock_steps, 4, 100),
    "sessions": (sessions, 20, 10_000),
    "no more memory": (out_of_memory, 10, 100),
    "SIGTERM": (sigterm, 10, 50),
}


def _asked(port: int, said: str) -> socket.socket:
    """A connection of somebody who reads slowly, on which this was said."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.settimeout(60)
    found.connect(("127.0.0.1", port))
    found.sendall(said.encode())
    return found


def _answer(connection: socket.socket) -> dict:
    """What an endpoint says there, read at last."""
    read = connection.makefile("rb")
    while read.readline() not in (b"\r\n", b""):
        pass
    body = b""
    while size := int(read.readline() or b"0", 16):
        body += read.read(size)
        read.readline()
    return json.loads(body.decode().split("data: ")[-1])[0]


def _called(port: int, endpoint: str, data: list) -> dict:
    """An answer; one that did not come is a refusal, too."""
    try:
        return Caller(port).call(endpoint, data)
    except (ValueError, OSError, HTTPException) as error:
        return {"status": "error", "error": type(error).__name__}


def main(argv: list[str] | None = None) -> int:
    parser = command_line("python -m bench.hosting.faults", __doc__)
    parser.add_argument("--share", type=float, default=1, help="of the whole run, from 0 to 1; default 1")
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS), help="these alone")
    parser.add_argument("--app", nargs=argparse.REMAINDER, default=["--device", "cpu"], help="options of the app, last")
    add_json(parser, "also write the figures there")
    args = parse_args(parser, argv)
    figures: dict[str, object] = {"cores": len(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory() as folder, running(args.app, Path(folder)) as app:
        for name in args.only:
            fault, few, many = FAULTS[name]
            if fault is clock_steps and app.clock is None:
                continue
            figures[name] = fault(app, max(few, round(args.share * many)))
            print(name, json.dumps(figures[name]), flush=True)
            if args.json:
                args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    program(main)

"""Measure the app under many simultaneous callers: `python -m bench.load --help`

Starts the app as a process of its own on a free port, calls its endpoint `translate` over HTTP with 1, 10 and 50
callers at once, watches the memory of the process under 10 callers, and visits the page many times. Only this machine
is contacted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPMessage
from itertools import cycle, islice
from pathlib import Path

from attention_atlas.model.program import CommandLine, parse_args, run_program
from bench.common import ROOT, write_json
from bench.ports import free_port

APP = ("app.py", "--host", "127.0.0.1")
SENTENCES = (
    "Wo ist der Bahnhof?",
    "Ich habe keine Zeit.",
    "Meine Schwester malt ein rotes Boot.",
    "Gestern hat es den ganzen Tag geregnet.",
    "Zwei Kinder bauen am Strand eine Burg aus Sand.",
    "Der alte Mann auf der Bank liest jeden Morgen seine Zeitung.",
    "Kannst du mir bitte das Salz geben?",
    "Ein Hund mit nassem Fell läuft über die Wiese und bellt einen Vogel an.",
    "Wenn es morgen nicht regnet, fahren wir mit dem Rad zum See und schwimmen.",
    "Das weiß ich nicht.",
)
JSON = {"Content-Type": "application/json"}
ERRORS = (OSError, HTTPException, ValueError)  # of a call
START_LIMIT, CALL_LIMIT = 120, 120  # seconds; of a call under load
SETTLE = 10  # seconds of warm-up before memory is compared


@dataclass
class Load:
    """The calls of one load. seconds: of each answered call; problems: the other answers, each with its error."""

    seconds: list[float] = field(default_factory=list)
    problems: list[dict] = field(default_factory=list)
    duration: float = 0.0

    @property
    def throughput(self) -> float:
        """Answers per second."""
        return len(self.seconds) / self.duration

    def quantile(self, share: float) -> float:
        """Return the seconds within which this share of the calls was answered."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Caller:
    """A visitor's connection to the app. timeout: seconds to wait for bytes of a response."""

    def __init__(self, port: int, timeout: float = 20) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=timeout)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, bytes, HTTPMessage]:
        """Send a request with the path as it is; return the status, body and headers of the response."""
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        return response.status, response.read(), response.headers

    def get(self, path: str) -> tuple[int, bytes]:
        return self.send("GET", path)[:2]

    def post(self, path: str, body: object) -> tuple[int, bytes]:
        """Send a body as JSON."""
        return self.send("POST", path, json.dumps(body).encode(), JSON)[:2]

    def call(self, endpoint: str, data: list | dict) -> dict:
        """Return the answer of an endpoint. A full queue is an answer as well, with status "error" and error "busy".

        data: the values of the fields in order, or by name
        """
        path, body = ("call/v2", data) if isinstance(data, dict) else ("call", {"data": data})
        status, body = self.post(f"/gradio_api/{path}/{endpoint}", body)
        if status == 503:
            return json.loads(body)
        if status != 200:
            raise ValueError(f"HTTP {status}: {body[:200]!r}")
        status, body = self.get(f"/gradio_api/{path}/{endpoint}/{json.loads(body)['event_id']}")
        event, _, data_line = body.decode().strip().rpartition("\n")
        if status != 200 or not event.endswith("event: complete"):
            raise ValueError(f"HTTP {status}: {body[:200]!r}")
        return json.loads(data_line.removeprefix("data: "))[0]

    def ask(self, name: str, **question: object) -> list[dict]:
        """Return the parts of the answer to a question of the page. Raises ValueError if it is refused."""
        status, body = self.post(f"/ask/{name}", question)
        parts = [json.loads(line) for line in body.splitlines()]
        if status != 200 or any("api_version" in part for part in parts):
            raise ValueError(f"HTTP {status}: {body[:200]!r}")
        return parts

    def visit(self, text: str) -> dict:
        """Open the page, translate a sentence and ask for its doubtful tokens; return the translation."""
        self.get("/")
        (translated,) = self.ask("page_translate", fields={"text": text, "entry": "", "beam": "1"})
        self.ask("page_doubts", address=translated["map"]["address"])
        return translated


@dataclass
class Server:
    """A program of this project that serves on a port, as a process that can be started again.

    command: with its options, without --port; settings: of subprocess.Popen
    """

    port: int
    command: Sequence[str]
    python: str = sys.executable
    settings: Mapping[str, object] = field(default_factory=dict)
    process: subprocess.Popen | None = None

    def start(self) -> Server:
        """Start the process; wait() waits until it answers."""
        command = [self.python, *self.command, "--port", str(self.port)]
        self.process = subprocess.Popen(command, **{"cwd": ROOT, "stdout": subprocess.DEVNULL, **self.settings})
        return self

    def wait(self) -> Server:
        """Wait for the first page. Raises ValueError if the process ends or takes too long."""
        started = time.monotonic()
        while time.monotonic() - started < START_LIMIT:
            if self.process.poll() is not None:
                raise ValueError(f"the server ended with status {self.process.returncode}")
            try:
                if Caller(self.port, CALL_LIMIT).get("/")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.05)
        raise ValueError(f"the server answered nothing within {START_LIMIT} seconds")

    def end(self, by: signal.Signals = signal.SIGTERM, seconds: float = 20) -> Server:
        self.process.send_signal(by)
        self.process.wait(seconds)
        return self


@contextmanager
def running_server(*command: str, python: str = sys.executable, **settings) -> Iterator[tuple[int, subprocess.Popen]]:
    """Run `python COMMAND --port PORT` within the context; yield its port and process once it answers.

    settings: of subprocess.Popen. The process is ended with SIGTERM, and killed if that takes longer than 10 seconds.
    """
    server = Server(free_port(), command, python, settings).start()
    try:
        server.wait()
        yield server.port, server.process
    finally:
        try:
            server.end(seconds=10)
        except subprocess.TimeoutExpired:
            server.process.kill()


@contextmanager
def running_app(options: list[str], *, python: str = sys.executable) -> Iterator[tuple[int, int]]:
    """Run the app within the context; yield its port and process id."""
    with running_server(*APP, *options, python=python) as (port, process):
        yield port, process.pid


def load(port: int, callers: int, seconds: float) -> Load:
    """Call `translate` from `callers` threads without a pause for `seconds`; the last calls are waited for."""
    result, started = Load(), time.monotonic()

    def work(number: int) -> None:
        caller = Caller(port, CALL_LIMIT)
        for text in islice(cycle(SENTENCES), number, None):
            before = time.monotonic()
            if before - started >= seconds:
                return
            try:
                answer = caller.call("translate", [text, ""])
            except ERRORS as error:
                answer = {"status": "error", "error": "failed", "message": f"{type(error).__name__}: {error}"}
                caller = Caller(port, CALL_LIMIT)
            if answer["status"] == "ok":
                result.seconds.append(time.monotonic() - before)
            else:
                result.problems.append(answer)
                time.sleep(0.2)  # the answer says to try again

    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(work, range(callers)))
    result.duration = time.monotonic() - started
    return result


def soak(port: int, pid: int, seconds: float) -> tuple[float, float]:
    """Return the growth of the memory under ten callers, as a share, and the memory at the end in MB.

    The growth is from a fifth of `seconds` (minute 1 of 5) to the end; both are medians of samples around them.
    """
    samples, started = [], time.monotonic()
    thread = threading.Thread(target=load, args=(port, 10, seconds), daemon=True)
    thread.start()
    while thread.is_alive():
        samples.append((time.monotonic() - started, memory(pid)))
        thread.join(max(0.2, seconds / 100))
    early = statistics.median(mb for at, mb in samples if 0.15 * seconds <= at <= 0.25 * seconds)
    late = statistics.median(mb for at, mb in samples if at >= 0.9 * seconds)
    return late / early - 1, samples[-1][1]


def memory(pid: int | str, kind: str = "VmRSS") -> float:
    """Return the memory of a process in MB (10^6 bytes).

    kind: VmRSS, resident; RssAnon, of that not mapped from a file; or VmHWM, the peak of what was resident
    """
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(kind)) * 1024 / 1e6


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far, its own and the kernel's."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(argv: list[str] | None = None) -> int:
    parser = CommandLine("python -m bench.load", __doc__)
    parser.add_argument("--seconds", type=float, default=60, help="length of each load (60)")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 10, 50], help="callers at once (1 10 50)")
    parser.add_argument("--soak", type=float, default=300, help="length of the run that watches memory (300; 0: none)")
    parser.add_argument("--sessions", type=int, default=500, help="page sessions opened and left (500)")
    parser.add_json("also write the figures to this file")
    parser.add_argument("--app", nargs=argparse.REMAINDER, default=[], help="what follows goes to app.py")
    args = parse_args(parser, argv)
    figures: dict[str, object] = {"cores": len(os.sched_getaffinity(0))}
    errors: list[str] = []
    with running_app(args.app) as (port, pid):
        figures["rss_idle_mb"] = round(memory(pid), 1)
        load(port, 10, min(SETTLE, args.seconds))
        for callers in args.callers:
            result, name = load(port, callers, args.seconds), f"load_{callers}"
            failed = [answer["message"] for answer in result.problems if answer["error"] != "busy"]
            errors += failed
            figures |= {
                name: round(result.throughput, 2),
                f"{name}_median": round(result.quantile(0.5), 4),
                f"{name}_p95": round(result.quantile(0.95), 4),
                f"{name}_busy": len(result.problems) - len(failed),
            }
        figures |= {"rss_loaded_mb": round(memory(pid), 1), "errors": len(errors)}
        if args.soak:
            growth, last = soak(port, pid, args.soak)
            figures |= {"rss_growth": round(growth, 4), "rss_end_mb": round(last, 1)}
        if args.sessions:
            for text in islice(cycle(SENTENCES), args.sessions):
                Caller(port, CALL_LIMIT).visit(text)
            figures |= {"sessions": args.sessions, "rss_after_sessions_mb": round(memory(pid), 1)}
    print(json.dumps(figures, indent=2))
    for error in sorted(set(errors))[:10]:
        print(f"error: {error}")
    write_json(args.json, figures)
    return 1 if errors else 0


if __name__ == "__main__":
    run_program(main)

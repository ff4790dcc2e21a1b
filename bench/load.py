"""How the app bears up under many callers at once: `python -m bench.load --help`.

Starts the app as its own process on a free port of this machine, calls its `translate` endpoint over raw HTTP with
1, 10 and 50 callers at once, then keeps 10 callers at it while it watches the process's memory, then visits
the page many times. Nothing but this machine is contacted, and everything ends by itself.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from attention_atlas.model.program import add_json, command_line, parse_args, program
from bench.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
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
START_LIMIT, CALL_LIMIT = 120, 120  # seconds
SETTLE = 10  # seconds of warm-up before memory is compared


@dataclass
class Load:
    """What one load did. seconds: of each answered call; busy: told to come back; errors: anything else."""

    callers: int
    duration: float = 0.0
    seconds: list[float] = field(default_factory=list)
    busy: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def throughput(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.duration if self.duration else 0.0

    def quantile(self, share: float) -> float:
        """Seconds within which this share of the calls was answered."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Caller:
    """One person's connection to the app."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CALL_LIMIT)

    def get(self, path: str) -> tuple[int, bytes]:
        self.connection.request("GET", path)
        response = self.connection.getresponse()
        return response.status, response.read()

    def post(self, path: str, body: dict) -> tuple[int, bytes]:
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        return response.status, response.read()

    def call(self, endpoint: str, data: list) -> dict:
        """The endpoint's answer; a full queue is an answer with status "error" and error "busy", too."""
        status, body = self.post(f"/gradio_api/call/{endpoint}", {"data": data})
        if status == 503:
            return json.loads(body)
        if status != 200:
            raise ValueError(f"HTTP {status}: {body[:200]!r}")
        status, body = self.get(f"/gradio_api/call/{endpoint}/{json.loads(body)['event_id']}")
        event, _, data_line = body.decode().strip().rpartition("\n")
        if status != 200 or not event.endswith("event: complete"):
            raise ValueError(f"HTTP {status}: {body[:200]!r}")
        return json.loads(data_line.removeprefix("data: "))[0]

    def ask(self, name: str, **question: object) -> list[dict]:
        """The parts of the answer to one of the page's questions. ValueError if it is refused."""
        status, body = self.post(f"/ask/{name}", question)
        parts = [json.loads(line) for line in body.splitlines()]
        if status != 200 or any("api_version" in part for part in parts):
            raise ValueError(f"HTTP {status}: {body[:200]!r}")
        return parts

    def visit(self, text: str) -> dict:
        """Open the page, translate a sentence and ask for the tokens that are doubtful: the translation."""
        self.get("/")
        (translated,) = self.ask("page_translate", fields={"text": text, "entry": "", "beam": "1"})
        self.ask("page_doubts", address=translated["map"]["address"])
        return translated


@contextmanager
def running_app(options: list[str], *, python: str = sys.executable) -> Iterator[tuple[int, int]]:
    """The app as its own process: its port and process id. Ended with SIGTERM."""
    port = free_port()
    process = subprocess.Popen(
        [python, "app.py", "--host", "127.0.0.1", "--port", str(port), *options], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        wait_until_served(port, process)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def wait_until_served(port: int, process: subprocess.Popen) -> float:
    """Seconds until the first page. ValueError if the process ends or takes too long."""
    started = time.monotonic()
    while time.monotonic() - started < START_LIMIT:
        if process.poll() is not None:
            raise ValueError(f"the app ended with status {process.returncode}")
        try:
            if Caller(port).get("/")[0] == 200:
                return time.monotonic() - started
        except OSError:
            time.sleep(0.05)
    raise ValueError(f"the app served nothing within {START_LIMIT} seconds")


def load(port: int, callers: int, seconds: float) -> Load:
    """`callers` threads call `translate` without a pause for `seconds`; a call begun is waited for."""
    result, lock = Load(callers), threading.Lock()
    started = time.monotonic()

    def work(number: int) -> None:
        caller, calls = Caller(port), 0
        while time.monotonic() - started < seconds:
            before = time.monotonic()
            try:
                answer = caller.call("translate", [SENTENCES[(number + calls) % len(SENTENCES)], ""])
                problem = None if answer["status"] == "ok" else answer
            except (OSError, ValueError, http.client.HTTPException) as error:
                problem, caller = {"error": "failed", "message": f"{type(error).__name__}: {error}"}, Caller(port)
            calls += 1
            with lock:
                if problem is None:
                    result.seconds.append(time.monotonic() - before)
                elif problem["error"] == "busy":
                    result.busy += 1
                else:
                    result.errors.append(problem["message"])
            if problem is not None:
                time.sleep(0.2)  # as told: come back

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + CALL_LIMIT)
    result.duration = time.monotonic() - started
    return result


def soak(port: int, pid: int, seconds: float) -> tuple[float, list[tuple[float, float]]]:
    """Ten callers for `seconds`: growth of the memory from a fifth of the way (minute 1 of 5) to the end, as a share,
    and the samples (seconds, MB). Each end is a median of the samples around it."""
    samples, started = [], time.monotonic()
    thread = threading.Thread(target=load, args=(port, 10, seconds), daemon=True)
    thread.start()
    while thread.is_alive():
        samples.append((time.monotonic() - started, memory(pid)))
        thread.join(max(0.2, seconds / 100))
    early = statistics.median(mb for at, mb in samples if 0.15 * seconds <= at <= 0.25 * seconds)
    late = statistics.median(mb for at, mb in samples if at >= 0.9 * seconds)
    return late / early - 1, samples


def memory(pid: int) -> float:
    """Resident memory of a process in MB (10^6 bytes)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def table(loads: list[Load]) -> str:
    """The loads as a Markdown table."""
    lines = ["| callers | answers/s | median | p95 | told to come back | errors |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {x.callers} | {x.throughput:.1f} | {1000 * x.quantile(0.5):.0f} ms "
        f"| {1000 * x.quantile(0.95):.0f} ms | {x.busy} | {len(x.errors)} |"
        for x in loads
    ]
    return "\n".join(lines)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.load", __doc__)
    parser.add_argument("--seconds", type=float, default=60, help="length of each load (60)")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 10, 50], help="callers at once (1 10 50)")
    parser.add_argument("--soak", type=float, default=300, help="length of the run that watches memory (300; 0: none)")
    parser.add_argument("--sessions", type=int, default=500, help="page sessions opened and left (500)")
    add_json(parser, "also write the figures to this file")
    parser.add_argument("--app", nargs=argparse.REMAINDER, default=[], help="what follows goes to app.py")
    return parse_args(parser, argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    figures: dict[str, object] = {"cores": len(os.sched_getaffinity(0))}
    with running_app(args.app) as (port, pid):
        figures["rss_idle_mb"] = round(memory(pid), 1)
        load(port, 10, min(SETTLE, args.seconds))
        loads = [load(port, callers, args.seconds) for callers in args.callers]
        for x in loads:
            name = f"load_{x.callers}"
            figures |= {
                name: round(x.throughput, 2),
                f"{name}_median": round(x.quantile(0.5), 4),
                f"{name}_p95": round(x.quantile(0.95), 4),
                f"{name}_busy": x.busy,
            }
        figures["rss_loaded_mb"] = round(memory(pid), 1)
        errors = [error for x in loads for error in x.errors]
        figures["errors"] = len(errors)
        print(table(loads))
        for error in sorted(set(errors))[:10]:
            print(f"error: {error}")
        if args.soak:
            growth, samples = soak(port, pid, args.soak)
            figures |= {"rss_growth": round(growth, 4), "rss_end_mb": round(samples[-1][1], 1)}
        if args.sessions:
            for number in range(args.sessions):
                Caller(port).visit(SENTENCES[number % len(SENTENCES)])
            figures |= {"sessions": args.sessions, "rss_after_sessions_mb": round(memory(pid), 1)}
    print(json.dumps(figures, indent=2))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 1 if errors else 0


if __name__ == "__main__":
    program(main)

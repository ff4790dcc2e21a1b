"""How many cores, or GPUs, so many visits take, and what they cost: `python -m bench.hosting.capacity --help`.

Questions arrive at random, wait in one line, and are answered by c servers: the queue M/M/c of Erlang (1917), whose
chance to wait is Erlang's C formula. A server is a core, or a GPU. How long one is busy with a question, and with the
opening of a page, is measured by --measure at one replica; so is what two replicas behind nginx do, to
check the model.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from attention_atlas.model.program import add_json, command_line, parse_args, program
from bench.hosting.fleet import Replica, fleet
from bench.load import ROOT, SENTENCES, Caller, load, running_app

FILE = ROOT / "docs" / "results" / "capacity.json"
LINKS = re.compile(rb'(?:src|href)="([^"#]+)"')
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Line:
    """M/M/c. arrivals: a second; rate: answers a second of one server; servers: c."""

    arrivals: float
    rate: float
    servers: int

    @property
    def busy(self) -> float:
        """The share of the time in which a server works; from 1 on the line only grows."""
        return self.arrivals / self.rate / self.servers

    def waits(self, longer_than: float = 0.0) -> float:
        """The chance that a question waits longer than so many seconds: Erlang's C, and the line's exponential tail."""
        if self.busy >= 1:
            return 1.0
        offered, blocked = self.arrivals / self.rate, 1.0
        for n in range(1, self.servers + 1):  # Erlang's B, by its recursion: no factorial overflows
            blocked = offered * blocked / (n + offered * blocked)
        waiting = blocked / (1 - self.busy * (1 - blocked))
        return waiting * math.exp(-(self.servers * self.rate - self.arrivals) * longer_than)

    @property
    def mean_seconds(self) -> float:
        """From question to answer, the mean."""
        spare = self.servers * self.rate - self.arrivals
        return self.waits() / spare + 1 / self.rate if spare > 0 else math.inf


def servers_for(arrivals: float, rate: float, *, seconds: float, share: float) -> int:
    """The fewest servers with which no more than this share of the questions waits longer than so many seconds."""
    servers = max(1, math.ceil(arrivals / rate))
    while Line(arrivals, rate, servers).waits(seconds) > share:
        servers += 1
    return servers


@dataclass(frozen=True)
class Visits:
    """What visitors do. questions: of a visit; minutes: that it lasts; peak: the busiest hour's share of a day."""

    questions: float = 6
    minutes: float = 5
    peak: float = 0.12

    def arrivals(self, a_day: float) -> float:
        """Questions a second in the busiest hour."""
        return a_day * self.peak * self.questions / 3600

    def at_once(self, a_day: float) -> float:
        """Visitors at the same time then (Little's law)."""
        return a_day * self.peak * self.minutes / 60


def needed(args: argparse.Namespace, costs: dict) -> list[dict[str, object]]:
    """A row for each number of visits a day. costs: of measure()."""
    visits, rows = Visits(args.questions, args.minutes, args.peak), []
    per_question = costs["core_seconds_a_question"] + costs["core_seconds_a_page"] / visits.questions
    for a_day in args.visits:
        arrivals = visits.arrivals(a_day)
        cores = servers_for(arrivals, 1 / per_question, seconds=args.wait, share=args.share)
        replicas = max(
            math.ceil(cores / args.cores_each), math.ceil(visits.at_once(a_day) / args.visitors_each), args.least
        )
        row = {
            "visits a day": a_day,
            "questions a second": arrivals,
            "visitors at once": math.ceil(visits.at_once(a_day)),
            "cores": max(cores, replicas),
            "replicas": replicas,
            "a month": 730 * (max(cores, replicas) * args.core_hour + replicas * args.gigabytes * args.gigabyte_hour),
        }
        if args.gpu_rate:
            gpus = servers_for(arrivals, args.gpu_rate, seconds=args.wait, share=args.share)
            row |= {"GPUs": gpus, "a month with GPUs": 730 * gpus * args.gpu_hour}
        rows.append(row)
    return rows


def measure(seconds: float, options: list[str]) -> dict[str, object]:
    """Core seconds of a question and of opening a page, and what two replicas behind nginx do beside the model."""
    found: dict[str, object] = {"cores": len(os.sched_getaffinity(0))}
    with running_app(options) as (port, pid):
        load(port, 4, 5)
        before = used(pid)
        done = load(port, 4, seconds)
        found["core_seconds_a_question"] = (used(pid) - before) / len(done.seconds)
        open_page(port)
        before, pages = used(pid), 10
        for _ in range(pages):
            open_page(port)
        found["core_seconds_a_page"] = (used(pid) - before) / pages
    with tempfile.TemporaryDirectory() as folder, fleet(Path(folder), ["--concurrency", "1", *options]) as (port, both):
        for one in both:
            load(one.port, 2, 3)
        before = sum(used(one.process.pid) for one in both)
        full = saturated(both, seconds)
        spent = sum(used(one.process.pid) for one in both) - before
        found |= {
            "two_replicas_answers_a_second": full,
            "two_replicas_busy_cores": spent / seconds,
            "predicted_answers_a_second": spent / seconds / found["core_seconds_a_question"],
        }
        for share in (0.4, 0.6, 0.8):
            found[f"two_replicas_at_{share:.0%}"] = point(port, share * full, full, seconds)
    return found


def saturated(replicas: tuple[Replica, ...], seconds: float) -> float:
    """Answers a second of both together, each with two callers: as many as it takes that none is idle."""
    with ThreadPoolExecutor(2) as pool:
        loads = list(pool.map(lambda one: load(one.port, 2, seconds), replicas))
    return sum(one.throughput for one in loads)


def point(port: int, arrivals: float, full: float, seconds: float) -> dict[str, float]:
    """Questions that arrive at random through the proxy, and what the model says of them. full: answers a second of
    both replicas."""
    took, failed, draw, lock = [], [], random.Random(7), threading.Lock()

    def ask(due: float, number: int) -> None:
        time.sleep(max(0.0, due - time.monotonic()))
        caller, text = Caller(port), SENTENCES[number % len(SENTENCES)]
        kind = {"Content-Type": "application/json"}
        try:
            caller.connection.request("POST", "/gradio_api/run/translate", json.dumps({"data": [text]}), kind)
            assert b'"ok"' in caller.connection.getresponse().read()
            with lock:
                took.append(time.monotonic() - due)
        except (OSError, HTTPException, ValueError, KeyError, AssertionError) as error:
            failed.append(error)

    due, jobs = time.monotonic() + 0.5, []
    with ThreadPoolExecutor(64) as pool:
        end = due + seconds
        while (due := due + draw.expovariate(arrivals)) < end:
            jobs.append(pool.submit(ask, due, len(jobs)))
    line = Line(arrivals, full / 2, 2)
    return {
        "arrivals": arrivals,
        "busy": line.busy,
        "answers": len(took),
        "failed": len(failed),
        "mean_seconds": statistics.mean(took),
        "predicted_mean_seconds": line.mean_seconds,
    }


def open_page(port: int) -> None:
    """As a browser that has never been here: the page, its description, and the files that its HTML names."""
    caller = Caller(port)
    html = caller.get("/")[1]
    caller.get("/config")
    for name in dict.fromkeys(LINKS.findall(html)):
        if not name.startswith((b"http", b"//", b"data:")):
            caller.get("/" + name.decode().removeprefix("./").lstrip("/"))


def used(pid: int) -> float:
    """Seconds of cores that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def table(rows: list[dict[str, object]]) -> str:
    """Markdown."""
    lines = [list(rows[0]), ["--:"] * len(rows[0]), *([shown(value) for value in row.values()] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.hosting.capacity", __doc__)
    add = parser.add_argument
    add("--visits", type=int, nargs="+", default=[100, 10_000, 1_000_000], help="a day; default 100 10000 1000000")
    add("--questions", type=float, default=6, help="of a visit: a translation and what else is asked; default 6")
    add("--minutes", type=float, default=5, help="that a visit lasts; default 5")
    add("--peak", type=float, default=0.12, help="the busiest hour's share of a day's visits; default 0.12")
    add("--wait", type=float, default=0.5, help="seconds that a question may wait; default 0.5")
    add("--share", type=float, default=0.01, help="of the questions that may wait longer; default 0.01")
    add("--cores-each", type=int, default=2, help="cores of a replica; default 2")
    add("--visitors-each", type=int, default=200, help="whom a replica serves; default 200")
    add("--gigabytes", type=float, default=2, help="of memory a replica; default 2")
    add("--least", type=int, default=1, help="replicas that run in any case; default 1")
    add("--core-hour", type=float, default=0.04, help="price of a core for an hour; default 0.04")
    add("--gigabyte-hour", type=float, default=0.005, help="price of a GB of memory for an hour; default 0.005")
    add("--gpu-rate", type=float, help="questions a second of a GPU, as bench.cuda measures them; default: no GPUs")
    add("--gpu-hour", type=float, default=1.0, help="price of a GPU for an hour; default 1")
    add("--measure", type=float, metavar="SECONDS", help="measure anew, so long each")
    add("--costs", type=Path, default=FILE, help="the measured service times; default docs/results/capacity.json")
    add_json(parser, "write there what --measure finds")
    add("--app", nargs=argparse.REMAINDER, default=[], help="options of the app, last: --app --device cpu")
    return parse_args(parser, argv)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if args.measure:
        found = measure(args.measure, args.app)
        print(json.dumps(rounded(found), indent=2))
        if args.json:
            args.json.write_text(json.dumps(rounded(found), indent=2) + "\n", encoding="utf-8")
    elif not args.costs.exists():
        raise ValueError(f"{args.costs} is not there: --measure 15 measures what a question takes on this machine")
    else:
        found = json.loads(args.costs.read_text(encoding="utf-8"))
    print(table(needed(args, found)))


def rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return value


if __name__ == "__main__":
    program(main)

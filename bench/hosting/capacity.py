"""Compute how many cores or GPUs a number of visits needs, and their cost: `python -m bench.hosting.capacity --help`

Questions arrive at random, wait in one queue, and are answered by c servers, each a core or a GPU: the queue M/M/c of
Erlang (1917), whose probability of waiting is Erlang's C formula. --measure measures the processor time of a question
and of opening a page with one replica, and checks the model with two replicas behind nginx.
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
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from attention_atlas.model.program import CommandLine, parse_args, run_program
from bench.common import write_json
from bench.hosting.fleet import fleet
from bench.load import CALL_LIMIT, SENTENCES, Caller, Server, load, processor_seconds, running_app
from bench.results import FOLDER, table_of_rows

LINKS = re.compile(rb'(?:src|href)="([^"#]+)"')


@dataclass(frozen=True)
class RequestQueue:
    """The queue M/M/c. arrivals: questions per second; rate: answers per second of one server; servers: c."""

    arrivals: float
    rate: float
    servers: int

    @property
    def busy(self) -> float:
        """The share of its time in which a server is busy; from 1 on the queue only grows."""
        return self.arrivals / self.rate / self.servers

    def waiting_probability(self, seconds: float = 0.0) -> float:
        """Return the probability that a question waits longer than this (Erlang's C, then an exponential tail)."""
        if self.busy >= 1:
            return 1.0
        offered, blocked = self.arrivals / self.rate, 1.0
        for n in range(1, self.servers + 1):  # Erlang's B by its recursion, in which no factorial overflows
            blocked = offered * blocked / (n + offered * blocked)
        waiting = blocked / (1 - self.busy * (1 - blocked))
        return waiting * math.exp(-(self.servers * self.rate - self.arrivals) * seconds)

    @property
    def mean_seconds(self) -> float:
        """Mean seconds from question to answer."""
        spare = self.servers * self.rate - self.arrivals
        return self.waiting_probability() / spare + 1 / self.rate if spare > 0 else math.inf


def servers_for(arrivals: float, rate: float, *, seconds: float, share: float) -> int:
    """Return the fewest servers with which at most this share of the questions waits longer than `seconds`."""
    servers = max(1, math.ceil(arrivals / rate))
    while RequestQueue(arrivals, rate, servers).waiting_probability(seconds) > share:
        servers += 1
    return servers


def plan(args: argparse.Namespace, costs: dict) -> list[dict[str, object]]:
    """Return a row for each number of visits a day. costs: from measure()."""
    rows = []
    per_question = costs["core_seconds_a_question"] + costs["core_seconds_a_page"] / args.questions
    for a_day in args.visits:
        busiest_hour = a_day * args.peak
        arrivals = busiest_hour * args.questions / 3600
        at_once = busiest_hour * args.minutes / 60  # Little's law
        cores = servers_for(arrivals, 1 / per_question, seconds=args.wait, share=args.share)
        replicas = max(math.ceil(cores / args.cores_each), math.ceil(at_once / args.visitors_each), args.least)
        row = {
            "visits a day": a_day,
            "questions a second": arrivals,
            "visitors at once": math.ceil(at_once),
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
    """Return core seconds of a question and of opening a page, and two replicas behind nginx compared to the model."""
    costs: dict[str, object] = {"cores": len(os.sched_getaffinity(0))}
    with running_app(options) as (port, pid):
        load(port, 4, 5)
        before = processor_seconds(pid)
        done = load(port, 4, seconds)
        costs["core_seconds_a_question"] = (processor_seconds(pid) - before) / len(done.seconds)
        open_page(port)
        before, pages = processor_seconds(pid), 10
        for _ in range(pages):
            open_page(port)
        costs["core_seconds_a_page"] = (processor_seconds(pid) - before) / pages
    with (
        tempfile.TemporaryDirectory() as folder,
        fleet(Path(folder), ["--concurrency", "1", *options]) as (port, replicas),
    ):
        for replica in replicas:
            load(replica.port, 2, 3)
        before = sum(processor_seconds(replica.process.pid) for replica in replicas)
        full = measure_saturated(replicas, seconds)
        spent = sum(processor_seconds(replica.process.pid) for replica in replicas) - before
        costs |= {
            "two_replicas_answers_a_second": full,
            "two_replicas_busy_cores": spent / seconds,
            "predicted_answers_a_second": spent / seconds / costs["core_seconds_a_question"],
        }
        for share in (0.4, 0.6, 0.8):
            costs[f"two_replicas_at_{share:.0%}"] = measure_point(port, share * full, full, seconds)
    return costs


def measure_saturated(replicas: tuple[Server, ...], seconds: float) -> float:
    """Return the answers per second of all replicas, each with two callers, which leave it no idle time."""
    with ThreadPoolExecutor(len(replicas)) as pool:
        loads = list(pool.map(lambda replica: load(replica.port, 2, seconds), replicas))
    return sum(result.throughput for result in loads)


def measure_point(port: int, arrivals: float, full: float, seconds: float) -> dict[str, float]:
    """Measure questions that arrive at random through the proxy, and predict them by the model.

    arrivals: questions per second; full: answers per second of both replicas.
    """

    def ask(due: float, number: int) -> float | None:
        """Return the seconds to the answer, or None if it failed."""
        time.sleep(max(0.0, due - time.monotonic()))
        body = {"data": [SENTENCES[number % len(SENTENCES)]]}
        try:
            answer = Caller(port, CALL_LIMIT).post("/gradio_api/run/translate", body)[1]
        except (OSError, HTTPException):
            return None
        return time.monotonic() - due if b'"ok"' in answer else None

    random_numbers, due, jobs = random.Random(7), time.monotonic() + 0.5, []
    with ThreadPoolExecutor(64) as pool:
        end = due + seconds
        while (due := due + random_numbers.expovariate(arrivals)) < end:
            jobs.append(pool.submit(ask, due, len(jobs)))
    answers = [job.result() for job in jobs]
    times = [seconds for seconds in answers if seconds is not None]
    queue = RequestQueue(arrivals, full / 2, 2)
    return {
        "arrivals": arrivals,
        "busy": queue.busy,
        "answers": len(times),
        "failed": len(answers) - len(times),
        "mean_seconds": statistics.mean(times),
        "predicted_mean_seconds": queue.mean_seconds,
    }


def open_page(port: int) -> None:
    """Fetch what a browser with an empty cache does: the page, its configuration, and the files that its HTML names."""
    caller = Caller(port, CALL_LIMIT)
    html = caller.get("/")[1]
    caller.get("/config")
    for name in dict.fromkeys(LINKS.findall(html)):
        if not name.startswith((b"http", b"//", b"data:")):
            caller.get("/" + name.decode().removeprefix("./").lstrip("/"))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m bench.hosting.capacity", __doc__)
    add = parser.add_argument
    add("--visits", type=int, nargs="+", default=[100, 10_000, 1_000_000], help="a day; default 100 10000 1000000")
    add("--questions", type=float, default=6, help="of a visit, the translation included; default 6")
    add("--minutes", type=float, default=5, help="length of a visit; default 5")
    add("--peak", type=float, default=0.12, help="the busiest hour's share of a day's visits; default 0.12")
    add("--wait", type=float, default=0.5, help="seconds that a question may wait; default 0.5")
    add("--share", type=float, default=0.01, help="share of the questions that may wait longer; default 0.01")
    add("--cores-each", type=int, default=2, help="cores of a replica; default 2")
    add("--visitors-each", type=int, default=200, help="visitors that a replica serves at once; default 200")
    add("--gigabytes", type=float, default=2, help="memory of a replica in GB; default 2")
    add("--least", type=int, default=1, help="replicas that always run; default 1")
    add("--core-hour", type=float, default=0.04, help="price of a core for an hour; default 0.04")
    add("--gigabyte-hour", type=float, default=0.005, help="price of a GB of memory for an hour; default 0.005")
    add("--gpu-rate", type=float, help="questions a second of a GPU, as bench.cuda measures them; default: no GPUs")
    add("--gpu-hour", type=float, default=1.0, help="price of a GPU for an hour; default 1")
    add("--measure", type=float, metavar="SECONDS", help="measure the costs, each for so many seconds")
    add("--costs", type=Path, default=FOLDER / "capacity.json", help="as measured; default docs/results/capacity.json")
    parser.add_json("write there the costs that --measure measured")
    add("--app", nargs=argparse.REMAINDER, default=[], help="options of the app, last: --app --device cpu")
    return parse_args(parser, argv)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if args.measure:
        costs = measure(args.measure, args.app)
        print(json.dumps(costs, indent=2))
        write_json(args.json, costs)
    elif not args.costs.exists():
        raise ValueError(f"{args.costs} is missing: --measure 15 measures what a question costs on this machine")
    else:
        costs = json.loads(args.costs.read_text(encoding="utf-8"))
    print(table_of_rows(plan(args, costs)))


if __name__ == "__main__":
    run_program(main)

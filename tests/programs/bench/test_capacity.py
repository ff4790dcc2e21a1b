"""The load model: Erlang's formula beside what it is known to say, and beside a simulated queue."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from bench.hosting import capacity
from bench.hosting.capacity import RequestQueue, servers_for

COSTS = {"core_seconds_a_question": 0.03, "core_seconds_a_page": 0.12}


def simulate(queue: RequestQueue, number: int) -> np.ndarray:
    """Return the seconds that each question waits."""
    random = np.random.default_rng(3)
    arrivals = random.exponential(1 / queue.arrivals, number).cumsum()
    free, waits = [0.0] * queue.servers, []
    for at, work in zip(arrivals, random.exponential(1 / queue.rate, number)):
        begins = max(at, heapq.heappop(free))
        heapq.heappush(free, begins + work)
        waits.append(begins - at)
    return np.array(waits)


def test_known_values():
    assert RequestQueue(1, 1, 2).waiting_probability() == pytest.approx(1 / 3)  # Erlang (1917)
    assert RequestQueue(0.7, 1, 1).waiting_probability() == pytest.approx(0.7)  # M/M/1: as often as the server works
    assert RequestQueue(0.5, 1, 1).mean_seconds == pytest.approx(2)
    assert RequestQueue(2, 1, 2).waiting_probability() == 1 and math.isinf(RequestQueue(2, 1, 2).mean_seconds)


@pytest.mark.parametrize("queue", [RequestQueue(1.5, 1, 2), RequestQueue(40, 7, 8)])
def test_a_simulated_queue_waits_as_long(queue):
    waits = simulate(queue, 200_000)
    assert (waits > 0).mean() == pytest.approx(queue.waiting_probability(), abs=0.02)
    assert (waits > 0.3).mean() == pytest.approx(queue.waiting_probability(0.3), abs=0.02)
    assert waits.mean() + 1 / queue.rate == pytest.approx(queue.mean_seconds, rel=0.05)


def test_as_few_servers_as_hold_the_bound():
    for arrivals in (0.01, 3, 60, 24_000):
        servers = servers_for(arrivals, 20, seconds=0.5, share=0.01)
        assert RequestQueue(arrivals, 20, servers).waiting_probability(0.5) <= 0.01
        assert servers == 1 or RequestQueue(arrivals, 20, servers - 1).waiting_probability(0.5) > 0.01


def test_more_visits_take_more_and_every_price_counts():
    args = capacity.parse(["--visits", "100", "10000", "1000000", "--gpu-rate", "500"])
    rows = capacity.plan(args, COSTS)
    assert [row["cores"] for row in rows] == sorted(row["cores"] for row in rows) and rows[0]["replicas"] == 1
    dear = capacity.plan(capacity.parse(["--visits", "10000", "--core-hour", "0.4"]), COSTS)[0]
    assert dear["a month"] > rows[1]["a month"] and "GPUs" in rows[0] and "GPUs" not in dear
    assert rows[1]["questions a second"] == pytest.approx(2) and rows[1]["visitors at once"] == 100

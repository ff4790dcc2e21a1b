"""The load model: Erlang's formula beside what it is known to say, and beside a simulated line."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from bench.hosting import capacity
from bench.hosting.capacity import Line, Visits, servers_for

COSTS = {"core_seconds_a_question": 0.03, "core_seconds_a_page": 0.12}


def simulated(line: Line, number: int) -> np.ndarray:
    """Seconds that each of so many questions waits."""
    random = np.random.default_rng(3)
    arrivals = random.exponential(1 / line.arrivals, number).cumsum()
    free, waits = [0.0] * line.servers, []
    for at, work in zip(arrivals, random.exponential(1 / line.rate, number)):
        begins = max(at, heapq.heappop(free))
        heapq.heappush(free, begins + work)
        waits.append(begins - at)
    return np.array(waits)


def test_known_values():
    assert Line(1, 1, 2).waits() == pytest.approx(1 / 3)  # Erlang (1917)
    assert Line(0.7, 1, 1).waits() == pytest.approx(0.7)  # M/M/1: as often as the server works
    assert Line(0.5, 1, 1).mean_seconds == pytest.approx(2)
    assert Line(2, 1, 2).waits() == 1 and math.isinf(Line(2, 1, 2).mean_seconds)


@pytest.mark.parametrize("line", [Line(1.5, 1, 2), Line(40, 7, 8)])
def test_a_simulated_line_waits_as_long(line):
    waits = simulated(line, 200_000)
    assert (waits > 0).mean() == pytest.approx(line.waits(), abs=0.02)
    assert (waits > 0.3).mean() == pytest.approx(line.waits(0.3), abs=0.02)
    assert waits.mean() + 1 / line.rate == pytest.approx(line.mean_seconds, rel=0.05)


def test_as_few_servers_as_hold_the_bound():
    for arrivals in (0.01, 3, 60, 24_000):
        found = servers_for(arrivals, 20, seconds=0.5, share=0.01)
        assert Line(arrivals, 20, found).waits(0.5) <= 0.01
        assert found == 1 or Line(arrivals, 20, found - 1).waits(0.5) > 0.01


def test_more_visits_take_more_and_every_price_counts():
    args = capacity.parse(["--visits", "100", "10000", "1000000", "--gpu-rate", "500"])
    rows = capacity.needed(args, COSTS)
    assert [row["cores"] for row in rows] == sorted(row["cores"] for row in rows) and rows[0]["replicas"] == 1
    dear = capacity.needed(capacity.parse(["--visits", "10000", "--core-hour", "0.4"]), COSTS)[0]
    assert dear["a month"] > rows[1]["a month"] and "GPUs" in rows[0] and "GPUs" not in dear
    assert Visits().arrivals(10_000) == pytest.approx(2) and Visits().at_once(10_000) == pytest.approx(100)
    assert capacity.table(rows).count("\n") == len(rows) + 1

"""Batches give the results of single requests, stay within the limits, and raise an error only where it belongs."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve import batching
from attention_atlas.model.serve.batching import Batcher, Turns, _Job
from attention_atlas.model.serve.limits import BatchLimits, Busy
from attention_atlas.model.trace.interventions import Interventions, Positions
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from tests import ROOT
from tests.conftest import SENTENCES, TINY_LIMITS, make_translator


class Recorder:
    """A batch function that records its batches and waits for a gate."""

    def __init__(self) -> None:
        self.batches: list[list] = []
        self.gate = threading.Event()
        self.entered = threading.Event()

    def __call__(self, items: list) -> list:
        self.batches.append(items)
        self.entered.set()
        assert self.gate.wait(10)
        return [f"did {item}" for item in items]


@pytest.fixture()
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def calls(batcher: Batcher, items: Iterable, pool: ThreadPoolExecutor) -> list[Future]:
    """Queue one call after the other, each in a thread of its own, while a batch runs.

    items: of length 1 and without a key, or (item, length, key).
    """
    futures = []
    for item, length, key in (item if isinstance(item, tuple) else (item, 1, None) for item in items):
        before = len(batcher._queue)
        futures.append(pool.submit(batcher, item, length=length, key=key))
        deadline = time.monotonic() + 5
        while len(batcher._queue) == before:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    return futures


def queued(batcher: Batcher, run: Recorder, first: object, items: Iterable, pool: ThreadPoolExecutor) -> list[Future]:
    """Queue calls while the batch of the first one waits for the recorder's gate."""
    running = pool.submit(batcher, first, length=500)
    assert run.entered.wait(5)
    return [running, *calls(batcher, items, pool)]


def test_requests_that_arrive_during_a_batch_share_the_next_by_length(pool):
    run = Recorder()
    lengths = {"a": 10, "long": 90, "b": 12, "c": 9, "d": 40}
    items = [(item, length, None) for item, length in lengths.items()]
    futures = queued(Batcher(run, BatchLimits(rows=3)), run, "first", items, pool)
    run.gate.set()
    assert [f.result(5) for f in futures] == [f"did {item}" for item in ("first", *lengths)]
    assert run.batches == [["first"], ["a", "c", "b"], ["long", "d"]]


def test_a_batch_has_equal_keys_and_at_most_batch_bytes(pool):
    """A single request, as the first one, may exceed the limit."""
    run = Recorder()
    batcher = Batcher(run, BatchLimits(rows=10, batch_bytes=2 * 20**2), size=lambda length: length**2)
    futures = queued(batcher, run, 0, [(1, 20, "x"), (2, 20, "y"), (3, 20, "x"), (4, 20, "x")], pool)
    run.gate.set()
    assert [f.result(5) for f in futures] == [f"did {i}" for i in range(5)]
    assert run.batches == [[0], [1, 3], [2], [4]]


def test_a_full_queue_and_a_long_wait_raise_busy(pool):
    run = Recorder()
    batcher = Batcher(run, BatchLimits(waiting=2, seconds=1.0))
    first, *waiting = queued(batcher, run, 0, (1, 2), pool)
    with pytest.raises(Busy, match=r"2 requests are waiting\. Please try again"):
        batcher(3, length=1)
    for future in waiting:
        with pytest.raises(Busy, match=r"waited 1(\.0)? seconds"):
            future.result(5)
    run.gate.set()
    assert first.result(5) == "did 0"
    assert batcher("next", length=1) == "did next"
    assert run.batches == [[0], ["next"]]


def test_an_error_reaches_only_the_request_that_causes_it(pool):
    run = Recorder()

    def fragile(items: list) -> list:
        results = run(items)
        if "poison" in items:
            raise RuntimeError("poisoned")
        return results

    batcher = Batcher(fragile)
    futures = queued(batcher, run, "first", ("a", "b", "poison", "c", "d"), pool)
    run.gate.set()
    with pytest.raises(RuntimeError, match="poisoned"):
        futures.pop(3).result(5)
    assert [future.result(5) for future in futures] == ["did first", "did a", "did b", "did c", "did d"]
    assert batcher("next", length=1) == "did next"


def test_system_exit_in_a_batch_reaches_every_caller(pool):
    run = Recorder()

    def stopped(items: list) -> list:
        run(items)
        raise SystemExit

    batcher = Batcher(stopped)
    futures = queued(batcher, run, 0, (1, 2), pool)
    run.gate.set()
    assert all(isinstance(future.exception(5), SystemExit) for future in futures)
    assert not batcher._queue


def test_a_thread_that_cannot_start_raises_an_error_and_the_next_call_works(monkeypatch):
    batcher = Batcher(lambda items: items, BatchLimits(at_once=1))

    def refused(thread):
        raise RuntimeError("can't start new thread")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result(5)  # start the pool's thread
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refused)
            with pytest.raises(RuntimeError, match="thread"):
                pool.submit(batcher, "first", length=1).result(5)
        assert pool.submit(batcher, "next", length=1).result(5) == "next"


@pytest.mark.parametrize(("method", "error"), [("_finish", MemoryError), ("_serve", KeyboardInterrupt)])
def test_an_error_or_ctrl_c_outside_the_batch_function_does_not_block_the_next_call(monkeypatch, method, error):
    batcher = Batcher(lambda items: items, BatchLimits(at_once=1))

    def fail(self, jobs):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Batcher, method, fail)
        with pytest.raises(error):
            batcher("first", length=1)
    assert batcher("next", length=1) == "next"


def test_an_idle_worker_ends_and_a_new_one_starts_when_needed(monkeypatch):
    monkeypatch.setattr("attention_atlas.model.serve.batching.IDLE_SECONDS", 0.05)
    threads = []
    batcher = Batcher(lambda items: threads.append(threading.current_thread()) or items)
    with ThreadPoolExecutor(1) as pool:
        for item in range(3):
            assert pool.submit(batcher, item, length=1).result(5) == item
            threads[-1].join(5)
            assert not threads[-1].is_alive() and batcher._workers == 0


def test_the_main_thread_runs_its_own_request_when_no_worker_runs():
    threads, entered, gate = [], threading.Event(), threading.Event()

    def run(items: list) -> list:
        threads.append(threading.current_thread())
        entered.set()
        assert gate.wait(5)
        return items

    batcher = Batcher(run, BatchLimits(at_once=1))
    with ThreadPoolExecutor(1) as pool:
        # Requests that arrive meanwhile are served by a worker that starts when the main thread leaves.
        other = pool.submit(lambda: entered.wait(5) and calls(batcher, "b", late) + [gate.set()])
        with ThreadPoolExecutor(1) as late:
            assert batcher("a", length=1) == "a"
            assert other.result(5)[0].result(5) == "b"
    assert threads[0] is threading.main_thread() and threads[1] is not threading.main_thread()
    assert batcher("c", length=1) == "c" and threads[2] is threads[1]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux lists them")
def test_loading_a_checkpoint_leaves_no_pool_of_torch_threads():
    """Two pools sleep between operations: a translation took 3.6 times as long."""
    program = """
import os, threading, time, torch
torch.set_num_threads(2)
from attention_atlas.model.translator import Translator
before = set(os.listdir("/proc/self/task"))
translator = Translator.load("de-en", "cpu")
deadline = time.monotonic() + 10
while set(os.listdir("/proc/self/task")) != before:  # one that has ended is listed for a moment
    assert time.monotonic() < deadline, set(os.listdir("/proc/self/task")) - before
    time.sleep(0.01)
translator.translate("Ein Haus.")
assert threading.active_count() == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


class Inside:
    """`with inside:` counts the threads in the context, and the maximum so far."""

    def __init__(self) -> None:
        self.now, self.most, self._lock = 0, 0, threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_) -> None:
        with self._lock:
            self.now -= 1


def test_no_more_batches_run_at_once_than_allowed():
    inside = Inside()

    def run(items: list) -> list:
        with inside:
            time.sleep(0.01)
        return items

    batcher = Batcher(run, BatchLimits(rows=1, at_once=2))
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(lambda i: batcher(i, length=1), range(40))) == list(range(40))
    assert inside.most == 2


class OneByOne:
    """A batch function that ends each batch when the event of its first item is set."""

    def __init__(self) -> None:
        self.batches: list[str] = []
        self.let_go = {item: threading.Event() for item in "abcdxy"}
        self.entered = {item: threading.Event() for item in "abcdxy"}

    def __call__(self, items: list[str]) -> list[str]:
        self.batches.append("".join(items))
        self.entered[items[0]].set()
        assert self.let_go[items[0]].wait(10)
        return items


@pytest.mark.parametrize("situation", ["alone", "whole", "late"])
def test_when_a_second_batch_starts_beside_a_running_one(monkeypatch, pool, situation):
    monkeypatch.setattr(batching, "PATIENCE", 0.3 if situation == "late" else 60)
    run = OneByOne()
    batcher = Batcher(run, BatchLimits(rows=4, at_once=2))
    two = []
    for item in "xy":
        two.append(pool.submit(batcher, item, length=1))
        assert run.entered[item].wait(5), "two run beside each other"
    rest = calls(batcher, "ab", pool)
    run.let_go["a"].set()
    run.let_go["y"].set()
    assert two[1].result(5) == "y"
    if situation == "whole":
        rest += calls(batcher, "cd", pool)
    if situation != "alone":
        assert run.entered["a"].wait(5), "they did not wait for the slow one"
    else:
        assert not run.entered["a"].wait(0.1)
    run.let_go["x"].set()
    assert [f.result(5) for f in rest] == list("abcd" if situation == "whole" else "ab")
    assert run.batches == ["x", "y", "abcd" if situation == "whole" else "ab"]


def test_requests_that_wait_for_the_main_thread_run_when_it_ends(monkeypatch, pool):
    monkeypatch.setattr(batching, "PATIENCE", 60)
    run = OneByOne()
    batcher = Batcher(run, BatchLimits(rows=4, at_once=2))

    def others() -> list[Future]:
        assert run.entered["x"].wait(5)
        parallel = pool.submit(batcher, "y", length=1)
        assert run.entered["y"].wait(5)
        rest = calls(batcher, "ab", pool)
        run.let_go["a"].set()
        run.let_go["y"].set()
        assert parallel.result(5) == "y"
        until = time.monotonic() + 5
        while not batcher._idle and time.monotonic() < until:
            time.sleep(0.001)
        run.let_go["x"].set()
        return rest

    rest = pool.submit(others)
    assert batcher("x", length=1) == "x"
    assert [f.result(5) for f in rest.result(5)] == ["a", "b"]


@pytest.mark.parametrize("name", ["rows", "batch_bytes", "trace_bytes", "at_once", "waiting", "seconds"])
def test_limits_are_positive(name):
    with pytest.raises(ValueError, match=f"{name} must be more than 0, found 0"):
        BatchLimits(**{name: 0})


def assert_same(together: TranslationTrace, alone: TranslationTrace) -> None:
    """Assert equal ids and numbers, unless the two best tokens differ by less than 1e-4 where the ids diverge."""
    for step, (a, b) in enumerate(zip(together.target_ids, alone.target_ids)):
        if a != b:
            best, second = alone.top_probabilities[step, :2]
            assert best - second < 1e-4, f"step {step}: {a} and {b}, probabilities {best} and {second}"
            return
    for name in ("target_ids", "source_ids", "source_text", "direction", "finished"):
        assert getattr(together, name) == getattr(alone, name)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(together.maps(kind).weights, alone.maps(kind).weights, atol=1e-5)
    np.testing.assert_allclose(together.top_probabilities, alone.top_probabilities, atol=1e-5)
    np.testing.assert_allclose(together.entropy, alone.entropy, atol=1e-4)


def copy_of(translator: Translator) -> Translator:
    return make_translator(translator.model, translator.tokenizer, directions=translator.directions, limits=TINY_LIMITS)


def test_forty_threads_get_the_traces_that_each_would_get_alone(tiny_translator):
    words = " ".join(SENTENCES).split()
    pick = random.Random(5)
    plain = Interventions()
    changed = Interventions(heads_off={("cross", 1, 2)}, source_positions=Positions(shift=3))
    requests = [
        (
            " ".join(pick.choices(words, k=pick.randint(1, 9))),
            pick.choice(tiny_translator.directions),
            pick.choice((plain, plain, changed)),
        )
        for _ in range(80)
    ]
    batches = []
    translator = copy_of(tiny_translator)
    whole = translator._batcher._run
    translator._batcher._run = lambda items: batches.append(len(items)) or whole(items)
    with ThreadPoolExecutor(40) as pool:
        traces = list(pool.map(lambda a: translator.translate(a[0], a[1], interventions=a[2]), requests))
    assert sum(batches) == len(requests) and max(batches) > 4, batches
    for trace, (text, direction, interventions) in zip(traces, requests):
        assert trace.interventions == interventions
        assert_same(trace, tiny_translator.trace_batch([text], direction, interventions=interventions)[0])


def test_out_of_gpu_memory_splits_the_batch_and_falls_back_to_the_cpu(tiny_translator, monkeypatch, caplog):
    translator = copy_of(tiny_translator)
    whole = Transformer.encode

    def encode(self, source_ids, **options):
        if self is translator.model and (len(source_ids) > 1 or source_ids.shape[1] > 12):
            raise torch.OutOfMemoryError("CUDA out of memory (injected)")
        return whole(self, source_ids, **options)

    monkeypatch.setattr(Transformer, "encode", encode)
    # Its tensors are on the CPU; what it calls its device decides what out of memory means.
    monkeypatch.setattr(translator, "pad", tiny_translator.pad)
    translator.device = torch.device("cuda")
    long, short = "Zwei Kinder bauen eine Burg aus Sand.", "Tee"
    for traces in (translator.trace_batch([long, short]), list(translator.traces([long, short]))):
        assert [trace.device for trace in traces] == ["cpu", "cuda"]
    jobs = [_Job(translator._request(text, None, Interventions()), 1, None) for text in (long, short)]
    translator._batcher._finish(jobs)
    assert [job.result.device for job in jobs] == ["cpu", "cuda"]
    assert "out of memory" in caplog.text and long not in caplog.text
    monkeypatch.undo()
    for job, text in zip(jobs, (long, short)):
        assert_same(job.result, tiny_translator.trace_batch([text])[0])


def test_turns_are_limited_and_others_wait():
    turns, inside = Turns(BatchLimits(at_once=2)), Inside()

    def work(_) -> None:
        with turns.turn(), inside:
            time.sleep(0.01)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(work, range(10)))
    assert (inside.most, inside.now) == (2, 0)


def test_turns_raise_busy_when_the_queue_is_full_or_the_wait_too_long():
    turns = Turns(BatchLimits(at_once=1, waiting=1, seconds=0.5))
    with ThreadPoolExecutor(1) as pool, turns.turn():
        waits = pool.submit(lambda: turns.turn().__enter__())
        while not turns._waiting:
            time.sleep(0.001)
        with pytest.raises(Busy, match="1 request is waiting"), turns.turn():
            pass
        with pytest.raises(Busy, match=r"waited 0\.5 seconds"):
            waits.result(5)
    with turns.turn():  # a waiter that gave up holds no turn
        pass


def test_an_error_releases_its_turn():
    turns = Turns(BatchLimits(at_once=1, waiting=1, seconds=0.01))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn():
            _ = 1 / 0

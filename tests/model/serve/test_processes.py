"""Prefetched epochs equal those drawn in the training process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest

from attention_atlas.model.serve.processes import EpochPrefetcher
from tests import ROOT

PREFETCHING_PROGRAM = """
import time
from attention_atlas.model.serve.processes import EpochPrefetcher
from tests.model.serve.test_processes import draw
epochs = EpochPrefetcher(draw, 2)
print(epochs(0)[0], epochs(1)[0], flush=True)
time.sleep(60)
"""


def draw(number: int) -> tuple[int, list[float]]:
    if number == 7:
        raise ValueError("epoch 7 has no sentence")
    return os.getpid(), np.random.default_rng(number).random(3).tolist()


@pytest.fixture(params=[0, 1, 3])
def epochs(request):
    prefetcher = EpochPrefetcher(draw, request.param)
    yield prefetcher
    prefetcher.close()


def test_epochs_do_not_depend_on_the_process_that_draws_them(epochs):
    for number in (0, 1, 2, 5, 3, 4):  # a resumed run starts at any epoch
        process, values = epochs(number)
        assert values == draw(number)[1]
        assert (process == os.getpid()) == (not epochs.workers)


def test_an_error_in_a_worker_is_raised_by_the_call(epochs):
    with pytest.raises(ValueError, match="epoch 7 has no sentence"):
        epochs(7)
    assert epochs(8)[1] == draw(8)[1]


def test_workers_need_a_system_that_can_fork(monkeypatch):
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(ValueError, match="leave out --workers"):
        EpochPrefetcher(draw, 1)
    assert EpochPrefetcher(draw, 0)(1) == draw(1)


def test_workers_end_when_their_parent_is_killed():
    command = [sys.executable, "-c", PREFETCHING_PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        parent.stdout.readline()
        children = psutil.Process(parent.pid).children(recursive=True)
        assert children
        parent.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive

"""Epochs drawn by other processes: the same ones, in words where the system cannot, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest

from attention_atlas.model.serve.ahead import Ahead
from tests import ROOT


def drawn(number: int) -> tuple[int, list[float]]:
    if number == 7:
        raise ValueError("epoch 7 has no sentence")
    return os.getpid(), np.random.default_rng(number).random(3).tolist()


@pytest.fixture(params=[0, 1, 3])
def ahead(request):
    found = Ahead(drawn, request.param)
    yield found
    found.close()


def test_every_epoch_is_its_own_whoever_draws_it(ahead):
    for number in (0, 1, 2, 5, 3, 4):  # a run that goes on begins anywhere
        process, values = ahead(number)
        assert values == drawn(number)[1]
        assert (process == os.getpid()) == (not ahead.workers)


def test_what_goes_wrong_there_is_said_here(ahead):
    with pytest.raises(ValueError, match="epoch 7 has no sentence"):
        ahead(7)
    assert ahead(8)[1] == drawn(8)[1]


def test_a_system_without_copies_says_so(monkeypatch):
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(ValueError, match="leave out --workers"):
        Ahead(drawn, 1)
    assert Ahead(drawn, 0)(1) == drawn(1)


def test_processes_end_with_one_that_is_killed():
    code = (
        "import time; from tests.model.serve.test_ahead import drawn\n"
        "from attention_atlas.model.serve.ahead import Ahead\n"
        "found = Ahead(drawn, 2); print(found(0)[0], found(1)[0], flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        parent.stdout.readline()
        children = psutil.Process(parent.pid).children(recursive=True)
        assert children
        parent.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive

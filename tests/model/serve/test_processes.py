"""Several processes: what one does that is told to end while it waits for another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from attention_atlas.model.serve import processes
from tests import ROOT

WAITS = """
from attention_atlas.model.serve import processes
print("here", flush=True)
with processes.side_by_side():
    pass
"""


@pytest.mark.long
def test_one_that_waits_for_a_process_that_never_comes_ends_when_it_is_told():
    """It waits in C++, to which no signal gets through: torchrun would kill it after half a minute, without a word."""
    alone = {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}
    with subprocess.Popen(
        [sys.executable, "-c", WAITS],
        cwd=ROOT,
        env={**os.environ, **alone},
        stdout=subprocess.PIPE,
        stderr=-1,
        text=True,
    ) as process:
        assert process.stdout.readline() == "here\n"
        time.sleep(1)  # long enough to be waiting; told before, it ends just as well
        process.send_signal(signal.SIGTERM)
        try:
            _, said = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, said.splitlines()[-1]) == (1, f"error: {processes.LOST}")


def test_afterwards_signals_are_handled_as_before(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    for name, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "WORLD_SIZE": "1", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with processes.side_by_side():
        assert processes.count() == 1 and signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before and signal.set_wakeup_fd(-1) == -1

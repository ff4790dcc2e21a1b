"""What a process does with its memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Eight threads make and drop 64 MB each, with small blocks that stay in between: what they leave resident, in MB.
PROGRAM = """
import os, sys, threading
import torch
from model.serve.device import return_freed_memory
from bench.load import memory

if sys.argv[1] == "told" and not return_freed_memory():
    sys.exit("this process' allocator takes no such orders")
kept, together = [], threading.Barrier(8)

def work():
    together.wait()  # so that each has its own arena, however busy the machine is
    for _ in range(2):  # the first time teaches the allocator to keep blocks of this size
        blocks = []
        for _ in range(16):
            blocks.append(torch.ones(1_000_000))
            kept.append(torch.ones(10_000))
        together.wait()

torch.ones(1_000_000)  # what torch needs for itself is there
before = memory(os.getpid())
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(memory(os.getpid()) - before - sum(4 * block.numel() for block in kept) / 1e6)
"""


def left(how: str) -> float:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if "takes no such orders" in done.stderr:
        pytest.skip(done.stderr.strip())  # another system's, or another C library's
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_freed_memory_goes_back_to_the_system():
    assert left("told") < 40 < left("plain")

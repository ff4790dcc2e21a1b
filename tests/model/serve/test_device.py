"""What a process does with its memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from attention_atlas.model.serve.device import paused_garbage_collection

# Eight threads make and drop 64 MB each, with small blocks that stay in between: what they leave resident, in MB, of
# a child that is told to give memory back, then of its parent, which is not.
PROGRAM = """
import os, threading
import torch
from attention_atlas.model.serve.device import return_freed_memory
from bench.load import memory

child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
elif not return_freed_memory():
    print("this process' allocator takes no such orders", flush=True)
    os._exit(0)
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
print(memory(os.getpid()) - before - sum(4 * block.numel() for block in kept) / 1e6, flush=True)
"""


@pytest.mark.long
def test_freed_memory_goes_back_to_the_system():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    if "takes no such orders" in done.stdout:
        pytest.skip(done.stdout.splitlines()[0])  # another system's, or another C library's
    told, plain = map(float, done.stdout.split())
    assert told < 40 < plain


@pytest.fixture()
def thawed() -> Iterator[None]:
    """Whatever is frozen meanwhile is so by the test."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.unfreeze()
    if frozen:
        gc.freeze()


@pytest.mark.usefixtures("thawed")
def test_objects_made_while_collection_is_paused_count_as_old():
    with paused_garbage_collection():
        assert not gc.isenabled()
        made = [[] for _ in range(10_000)]
    assert gc.isenabled()
    _, young, old = gc.get_count()
    assert (young, old) == (0, 0), "no walk is due"
    assert any(one is made for one in gc.get_objects(generation=2))


@pytest.mark.usefixtures("thawed")
def test_what_a_program_froze_stays_frozen():
    gc.freeze()
    with paused_garbage_collection():
        pass
    assert gc.get_freeze_count() > 0

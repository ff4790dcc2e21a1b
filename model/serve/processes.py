"""One program as many processes: `torchrun --nproc_per_node=N -m attention_atlas NAME`. Without torchrun all of this is
one process that waits for nobody."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

LOST = "this run was stopped, or another of its processes has ended; what was saved is whole, and a new start goes on"
NOTICE = 5  # seconds in which torchrun tells a process that another one has ended; it looks ten times a second


@contextmanager
def side_by_side(backend: str = "gloo") -> Iterator[None]:
    """A group of the processes that torchrun started, as long as the context lasts; otherwise nothing. Without an error
    it ends for all at once: a process that leaves early can abort the others. Where torchrun ends this process because
    another one has ended, it says so."""
    if "WORLD_SIZE" not in os.environ:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    with _ended_when_told():
        dist.init_process_group(backend)
        try:
            yield
            together()
        except RuntimeError:
            time.sleep(NOTICE)  # if a connection broke because another process is gone, torchrun now ends this one, too
            raise
        finally:
            dist.destroy_process_group()


@contextmanager
def _ended_when_told() -> Iterator[None]:
    """While this lasts, SIGTERM ends the process at once and in words, wherever it is: a main thread that waits in C++
    for a process that is gone does not come back to Python, where signals are handled, and neither may one that takes
    the group down. So a thread of its own reads which signals come."""
    told, tell = socket.socketpair()
    tell.setblocking(False)

    def wait() -> None:
        while signals := told.recv(1):
            if signals[0] == signal.SIGTERM:
                os.write(sys.stderr.fileno(), f"error: {LOST}\n".encode())
                os._exit(1)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    handler = signal.signal(signal.SIGTERM, lambda *_: None)  # without one of Python's, nothing would be told
    other = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(other)
        signal.signal(signal.SIGTERM, handler)
        tell.close()
        waiting.join()
        told.close()


def rank() -> int:
    """Which process this is, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def count() -> int:
    """How many there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def together() -> None:
    """Wait for all of them."""
    if dist.is_initialized():
        dist.barrier()


def gathered(part: object) -> list:
    """What each of them has, in order of rank. part: of this one, anything that can be pickled."""
    parts = [part] * count()
    if dist.is_initialized():
        dist.all_gather_object(parts, part)
    return parts

"""One program as many processes: `torchrun --nproc_per_node=N -m model.NAME`. Without torchrun all of this is one
process that waits for nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist


@contextmanager
def side_by_side(backend: str = "gloo") -> Iterator[None]:
    """A group of the processes that torchrun started, as long as the context lasts; otherwise nothing. Without an error
    it ends for all at once: a process that leaves early can abort the others."""
    if "WORLD_SIZE" not in os.environ:
        yield
        return
    dist.init_process_group(backend)
    try:
        yield
        together()
    finally:
        dist.destroy_process_group()


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

"""The device, cores, open files and memory allocator that a process uses."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from pathlib import Path

import torch

try:
    import resource
except ImportError:  # Windows
    resource = None

DEVICE_VARIABLE = "ATTENTION_ATLAS_DEVICE"
DEVICES = "'cpu', 'cuda' or 'mps'"
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -2, -3, -4, -8  # of <malloc.h>
TOP_PAD = 100_000_000  # bytes to ask the system for at once


def choose_device(name: str | None = None) -> torch.device:
    """Return the device called `name`: "cpu", "cuda", "cuda:1", "mps" or "auto".

    Without a name the environment variable ATTENTION_ATLAS_DEVICE decides. "auto", the default, is CUDA if there is
    one, else the CPU; Apple's GPU is used only by its name. Raises ValueError for a name that torch does not know, and
    for a device that this machine does not have.
    """
    name = name or os.environ.get(DEVICE_VARIABLE) or "auto"
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"unknown device {name!r}: use {DEVICES}") from error
    if device.type not in ("cpu", "cuda", "mps"):
        raise ValueError(f"unknown device {name!r}: use {DEVICES}")
    if device.type == "mps" and (device.index or not torch.backends.mps.is_available()):
        raise ValueError(f"device {name!r} was asked for, but this machine has none that torch knows")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {name!r} was asked for, but this machine has {torch.cuda.device_count()} CUDA devices"
        )
    return device


def finish(device: torch.device) -> None:
    """Wait until a device has finished its queued work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def share_cores(at_once: int) -> None:
    """Set torch's threads so that `at_once` passes share the cores.

    With more threads than cores, threads spin while they wait for each other (measured 16 times slower).
    """
    torch.set_num_threads(max(1, cores() // at_once))


def cores(limits: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many cores this process may use, by its affinity and its container's quota (cgroup v2)."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = limits.read_text(encoding="ascii").split()
        return available if quota == "max" else max(1, min(available, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no cgroup, or one that is not version 2
        return available


def allow_many_files() -> None:
    """Raise the limit on open files to the maximum: each visitor holds two connections, and shells allow 1,024."""
    if resource is not None:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with contextlib.suppress(ValueError, OSError):  # macOS allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def return_freed_memory() -> bool:
    """Make glibc return freed memory to the system; call it before threads start. False with another C library.

    By default each thread has an arena that keeps freed blocks of up to 32 MB, so that a server keeps the memory of its
    largest batches once for each arena.
    """
    return _set_allocator_options((M_ARENA_MAX, 2), (M_MMAP_THRESHOLD, 256 * 1024))


def keep_freed_memory() -> bool:
    """Make glibc keep freed memory for the next allocation. False with another C library.

    A training step frees 60 MB arrays that the next one allocates again, and the kernel would clear their pages each
    time: an update of 2,048 target tokens took 0.9 s of one core instead of 1.2 s.
    """
    return _set_allocator_options((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, -1), (M_TOP_PAD, TOP_PAD))


def _set_allocator_options(*options: tuple[int, int]) -> bool:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library or system
        return False
    return all(mallopt(*option) for option in options)

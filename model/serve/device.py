"""The machine that the model runs on: its device, its cores, its memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import os
from collections.abc import Iterator
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
    """The device called `name` ("cpu", "cuda", "cuda:1", "mps"), else the one in ATTENTION_ATLAS_DEVICE, else (or for
    "auto") CUDA if present, else the CPU. Apple's GPU is taken where it is named.

    ValueError for a name torch does not know, and for a device that this machine has not.
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
    """Wait until a device has done all that it was asked, as the CPU has when a call returns."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def share_cores(at_once: int) -> None:
    """Give each of `at_once` passes through the model its share of the cores. More threads than cores spin, waiting
    for each other: measured 16 times slower."""
    torch.set_num_threads(max(1, cores() // at_once))


def cores(limits: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """The cores this process may use: of its affinity, and of its container's quota (cgroup v2), of which the number of
    the machine's cores says nothing."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = limits.read_text(encoding="ascii").split()
        return found if quota == "max" else max(1, min(found, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no cgroup, or one that is not version 2
        return found


def allow_many_files() -> None:
    """As many open files as this user may have at all: each visitor holds two connections open, and shells start
    programs with 1,024."""
    if resource is not None:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with contextlib.suppress(ValueError, OSError):  # macOS allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def return_freed_memory() -> bool:
    """Have memory that is freed go back to the system; whether this process' allocator (glibc's) could be told so.

    By default threads have arenas of their own, and blocks of up to 32 MB stay there when they are freed: a server that
    many people used keeps what its largest batches needed, once for every arena. Call it before threads start.
    """
    return _tell_allocator((M_ARENA_MAX, 2), (M_MMAP_THRESHOLD, 256 * 1024))


def keep_freed_memory() -> bool:
    """Tell glibc to give nothing back to the system. False with another C library.

    A step of training frees arrays of 60 MB that the next one asks for again, and a step of decoding, many sentences'
    logits; handed back, each page is cleared anew by the kernel. Without that an update of 2,048 target tokens took
    0.9 s of one core in place of 1.2 s, and 1,000 captions on two cores 1.52 s in place of 1.59.
    """
    return _tell_allocator((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, -1), (M_TOP_PAD, TOP_PAD))


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage meanwhile: for what makes many objects that stay, such as the pieces of a vocabulary. They
    set off a walk through everything that importing torch has left, which took as long as opening a shipped
    checkpoint, and so would whatever is made next: in the end all that there is counts as old."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():  # a program's own, which would be melted with it
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _tell_allocator(*orders: tuple[int, int]) -> bool:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return False
    return all(mallopt(*order) for order in orders)

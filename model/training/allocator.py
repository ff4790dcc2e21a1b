"""Memory that a training step frees is kept for the next one."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of <malloc.h>
TOP_PAD = 100_000_000  # bytes to ask the system for at once


def keep_freed_memory() -> bool:
    """Tell glibc to give nothing back to the system. False with another C library.

    A step frees arrays of 60 MB that the next one asks for again; handed back, each page is cleared anew by the
    kernel. Without that an update of 2,048 target tokens took 0.9 s of one core in place of 1.2 s.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, -1) and mallopt(M_TOP_PAD, TOP_PAD))

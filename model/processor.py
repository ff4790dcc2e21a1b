"""The name and the maker of this machine's processor."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


def name() -> str:
    """Return the processor's model, or its architecture if the system does not name the model."""
    return _cpu_info().get("model name") or platform.processor() or platform.machine()


@cache
def is_intels() -> bool:
    """Return whether the processor is Intel's. False on macOS, which does not say."""
    return "GenuineIntel" in (_cpu_info().get("vendor_id") or platform.processor())


def _cpu_info() -> dict[str, str]:
    """Return the fields of Linux's /proc/cpuinfo, {} elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {field.strip(): value.strip() for field, _, value in (line.partition(":") for line in lines)}

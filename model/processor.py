"""What the machine calls its processor."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


def name() -> str:
    """Its model; its architecture where the machine does not say."""
    return _told().get("model name") or platform.processor() or platform.machine()


@cache
def is_intels() -> bool:
    """As far as the machine says: macOS does not."""
    return "GenuineIntel" in (_told().get("vendor_id") or platform.processor())


def _told() -> dict[str, str]:
    """What Linux says of a core."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.is_file() else []
    return {field.strip(): value.strip() for field, _, value in (line.partition(":") for line in lines)}

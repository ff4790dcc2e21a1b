"""A command on a slow machine: `python -m tests.slowed 45 make test` lets it have 45 % of the processor's time."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from attention_atlas.model.program import program

PERIOD = 100_000  # microseconds: what the kernel itself takes
CGROUPS = Path("/sys/fs/cgroup")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("percent", type=int, help="of all cores' time, 1 to 100")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    if not 1 <= args.percent <= 100 or not args.command:
        parser.error("expected 1 to 100 and a command")
    quota = PERIOD * os.cpu_count() * args.percent // 100
    unified = (CGROUPS / "cgroup.controllers").exists()
    if unified:
        parent, limits = CGROUPS, {"cpu.max": f"{quota} {PERIOD}"}
    else:
        parent, limits = CGROUPS / "cpu", {"cpu.cfs_period_us": f"{PERIOD}", "cpu.cfs_quota_us": f"{quota}"}
    group = parent / f"slowed-{os.getpid()}"
    try:
        group.mkdir()
        for name, value in limits.items():
            (group / name).write_text(value)
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        raise ValueError(f"this machine lets nobody limit the processor's time: {error}") from None
    try:
        code = subprocess.run(args.command, check=False).returncode
    finally:
        (parent / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()
    sys.exit(code)


if __name__ == "__main__":
    program(main)

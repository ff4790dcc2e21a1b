"""Tests in the same tree as the code. page/ drives a real browser, shipped/ uses the trained checkpoints."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(command: Iterable[object], **options: object) -> str:
    """Return the standard output of a command. ValueError, with its last output, if it fails."""
    command = [str(part) for part in command]
    done = subprocess.run(command, **{"cwd": ROOT, "capture_output": True, "text": True, **options})
    if done.returncode:
        raise ValueError(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout

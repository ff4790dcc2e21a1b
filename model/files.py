"""Files that are whole or not there: JSON with a bound, and writing beside before renaming."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

MAX_CONFIG_BYTES = 1_000_000


def read_json(path: Path) -> object:
    """Decoded JSON. ValueError naming the file if it is not JSON or absurdly large."""
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes, at most {MAX_CONFIG_BYTES:,} were expected")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error


def write_json(path: Path, value: object) -> None:
    """Write JSON whole or not at all."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file beside `path`, then rename it: a kill at any moment leaves the old file or the new."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        partial.chmod(0o644)  # safetensors makes files that only their owner may read
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)

"""Files that are whole or not there: JSON with a bound, and writing beside before renaming."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Read = TypeVar("Read")
log = logging.getLogger(__name__)

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
BEFORE = "## Limits"  # of a card: a section's place where it is new
CONFIG = "config.json"  # what makes a folder a checkpoint
MAX_CONFIG_BYTES = 1_000_000
MAX_VOCABULARY_BYTES = 32_000_000  # NLLB's tokenizer.json has 17

SHIPPED = Path(__file__).resolve().parents[1] / "checkpoints"
INSTALLED = (SHIPPED.parent / "__init__.py").is_file()  # inside the package; in a checkout they lie beside it


def checkpoint_folder(name: str | Path) -> Path:
    """The folder of a checkpoint: the path itself where one lies there, else the shipped one of this name, "de-en" or
    "checkpoints/de-en", wherever one stands. A path that is neither is given back as it is."""
    if not isinstance(name, str | os.PathLike):
        raise ValueError(f"a checkpoint is told by its folder or its name, found {name!r:.80}")
    path = Path(name)
    named = path in (Path(path.name), Path(SHIPPED.name) / path.name)
    # A folder without a config, such as one that holds measurements alone, does not hide the shipped one.
    return SHIPPED / path.name if named and not (path / CONFIG).is_file() and path.name in shipped() else path


def shipped() -> list[str]:
    """The names of the checkpoints that come with the project."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{CONFIG}"))


def read_bytes(path: Path, limit: int) -> bytes:
    """A file's content. ValueError naming the file if it is not there or has more than `limit` bytes."""
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    if path.stat().st_size > limit:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes, at most {limit:,} were expected")
    check_content(path)
    return path.read_bytes()


def check_content(path: Path) -> None:
    """ValueError for a Git LFS pointer, which a clone without LFS leaves in the place of a large file."""
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ValueError(f"{path} is a Git LFS pointer, not the file itself: git lfs pull fetches that")


def read_json(path: Path, *, limit: int = MAX_CONFIG_BYTES) -> object:
    """Decoded JSON. ValueError naming the file if it is not there, not JSON, or absurdly large or deep."""
    try:
        return json.loads(read_bytes(path, limit).decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error


def read_or_none(path: Path, read: Callable[[Path], Read]) -> Read | None:
    """What `read` makes of a file; None where there is none, or where it raises ValueError, as for a damaged file or
    one of other weights: the log says so."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except ValueError as error:
        log.warning("%s", error)
        return None


def write_json(path: Path, value: object) -> None:
    """Write JSON whole or not at all."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_section(card: Path, section: str) -> None:
    """Put a section into a checkpoint's card, where there is one."""
    if card.is_file():
        text = with_section(card.read_text(encoding="utf-8"), section)
        replace_file(card, lambda partial: partial.write_text(text, encoding="utf-8"))


def with_section(card: str, section: str) -> str:
    """The card with this section, which begins with its heading, in place of the one under that heading; else before
    its limits, or at its end."""
    start = f"\n{card}".find(f"\n{section.splitlines()[0]}\n")
    if start >= 0:
        end = card.find("\n## ", start)
        before, after = card[:start], "" if end < 0 else card[end + 1 :]
    else:
        start = f"\n{card}".find(f"\n{BEFORE}\n")
        before, after = (card.rstrip("\n") + "\n\n", "") if start < 0 else (card[:start], card[start:])
    return f"{before}{section}\n" + (f"\n{after}" if after else "")


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file beside `path`, then rename it: a kill at any moment leaves the old file or the new."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        partial.touch()
        mode = partial.stat().st_mode  # as the umask says; safetensors makes files that only their owner may read
        write(partial)
        partial.chmod(mode)
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise

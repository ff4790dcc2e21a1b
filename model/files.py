"""Read files with a bound on their size, name them in errors, write them atomically, and find shipped checkpoints."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

Read = TypeVar("Read")
log = logging.getLogger(__name__)

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
BEFORE = "## Limits"  # the heading before which a new section of a card is inserted
CONFIG = "config.json"  # what makes a folder a checkpoint
MAX_CONFIG_BYTES = 1_000_000
MAX_VOCABULARY_BYTES = 32_000_000  # NLLB's tokenizer.json has 17 million

# The folder of the checkpoints that come with the project: in the installed package, or at the root of a checkout.
SHIPPED_FOLDER = Path(__file__).resolve().parents[1] / "checkpoints"
IS_INSTALLED = (SHIPPED_FOLDER.parent / "__init__.py").is_file()  # pip installed a package; false in a checkout


def checkpoint_folder(name: str | Path) -> Path:
    """Return the folder of a checkpoint: the path if a checkpoint is there, else the shipped one of this name.

    "de-en" and "checkpoints/de-en" name a shipped checkpoint from any working directory. Any other path is returned
    unchanged.
    """
    if not isinstance(name, str | os.PathLike):
        raise ValueError(f"a checkpoint is told by its folder or its name, found {name!r:.80}")
    path = Path(name)
    named = path in (Path(path.name), Path(SHIPPED_FOLDER.name) / path.name)
    # A folder without a config, such as one of measurements, does not hide the shipped checkpoint.
    return SHIPPED_FOLDER / path.name if named and not (path / CONFIG).is_file() and path.name in shipped() else path


def shipped() -> list[str]:
    """Return the names of the shipped checkpoints."""
    return sorted(path.parent.name for path in SHIPPED_FOLDER.glob(f"*/{CONFIG}"))


@contextmanager
def value_errors(message: object, *types: type[Exception]) -> Iterator[None]:
    """Turn errors of these types, by default ValueError, into the ValueError "MESSAGE: error".

    >>> with value_errors("line 3", KeyError):
    ...     {}["a"]
    Traceback (most recent call last):
    ValueError: line 3: 'a'
    """
    types = types or (ValueError,)
    try:
        yield
    except types as error:
        raise ValueError(f"{message}: {error}") from error


def read_bytes(path: Path, limit: int) -> bytes:
    """Return a file's content. Raises ValueError naming the file if it is missing or has more than `limit` bytes."""
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    if path.stat().st_size > limit:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes, at most {limit:,} were expected")
    check_content(path)
    return path.read_bytes()


def check_content(path: Path) -> None:
    """Raise ValueError for a Git LFS pointer, which a clone without LFS has in place of a large file."""
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ValueError(f"{path} is a Git LFS pointer, not the file itself: git lfs pull fetches that")


def read_json(path: Path, *, limit: int = MAX_CONFIG_BYTES) -> object:
    """Return decoded JSON. Raises ValueError naming the file if it is missing, not JSON, too large or too deep."""
    with value_errors(f"{path} is not JSON", UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        return json.loads(read_bytes(path, limit).decode("utf-8"))


def read_or_none(path: Path, read: Callable[[Path], Read]) -> Read | None:
    """Return read(path), or None if the file is missing or `read` raises ValueError, which is logged."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except ValueError as error:
        log.warning("%s", error)
        return None


def read_parallel(*paths: Path) -> Iterator[tuple[str, ...]]:
    """Yield the lines of text files side by side, without line ends. Raises ValueError if they differ in length."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, encoding="utf-8")) for path in paths]
        for number, lines in enumerate(zip_longest(*files), 1):
            if None in lines:
                raise ValueError(f"{' and '.join(map(str, paths))} differ in length: line {number}")
            yield tuple(line.rstrip("\n") for line in lines)


def write_json(path: Path, value: object) -> None:
    """Write JSON atomically."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_section(card: Path, section: str) -> None:
    """Insert a section into a checkpoint's card, if there is a card."""
    if card.is_file():
        text = with_section(card.read_text(encoding="utf-8"), section)
        replace_file(card, lambda partial: partial.write_text(text, encoding="utf-8"))


def with_section(card: str, section: str) -> str:
    """Return the card with this section, which begins with its heading.

    It replaces the section of the same heading; a new one is inserted before the limits or at the end.
    """
    start = f"\n{card}".find(f"\n{section.splitlines()[0]}\n")
    if start >= 0:
        end = card.find("\n## ", start)
        before, after = card[:start], "" if end < 0 else card[end + 1 :]
    else:
        start = f"\n{card}".find(f"\n{BEFORE}\n")
        before, after = (card.rstrip("\n") + "\n\n", "") if start < 0 else (card[:start], card[start:])
    return f"{before}{section}\n" + (f"\n{after}" if after else "")


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` create a temporary file in the same folder, then rename it to `path`.

    A process killed at any moment leaves the old file or the new one.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        partial.touch()
        mode = partial.stat().st_mode  # by the umask; safetensors creates files that only their owner may read
        write(partial)
        partial.chmod(mode)
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise

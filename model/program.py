"""What all programs share: a command line, errors in words, and exit codes. Each is `main(argv)` and ends with
`program(main)`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

CHECKPOINT = Path("checkpoints/de-en")
EXTRAS = {"sacremoses": "train", "matplotlib": "plots"}  # package -> the extra of pyproject.toml that brings it
OURS = ("model", "viz", "bench", "app", "notebooks", "tests")
INTERRUPTED = 130  # the exit code that shells know for Ctrl+C


def program(main: Callable[[], int | None]) -> None:
    """Run a program and end the process: with main's exit code (None: 0), with 1 after `error: ...` for what its user
    can mend (ValueError, OSError, a package that is not installed), with 130 after Ctrl+C. Any other error is ours, and
    keeps its traceback."""
    sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        code = INTERRUPTED
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name.split(".")[0] in OURS:
            raise
        code = f"error: {in_words(error)}"
    sys.exit(code)


def in_words(error: Exception) -> str:
    """What went wrong, for whoever started the program."""
    if isinstance(error, ModuleNotFoundError):
        name = error.name.split(".")[0]
        extra = f'the extra "{EXTRAS[name]}" brings it, and so does ' if name in EXTRAS else ""
        return f"{name} is not installed: {extra}pip install {name} -c constraints.txt"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def command_line(name: str, about: str) -> argparse.ArgumentParser:
    """The options of `python -m NAME`, which --help shows below `about`, the module's docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m {name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Which model, and where it computes."""
    parser.add_argument("--checkpoint", type=Path, default=CHECKPOINT, help=f"default {CHECKPOINT}")
    parser.add_argument("--device", help="cpu or cuda")


def whole(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """The type of an option that is a whole number within bounds."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, found {text!r}")
        return int(text)

    return read

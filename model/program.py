"""Shared parts of the programs: options of the command line, error messages and exit codes.

Each program is a function `main(argv)`, which its module runs by `run_program(main)`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from attention_atlas.model.files import INSTALLED, SHIPPED, checkpoint_folder

DEFAULT_CHECKPOINT = Path("checkpoints/de-en")
EXTRAS = {
    "gradio": "app",
    "sacrebleu": "train",
    "tqdm": "train",
    "sacremoses": "train",
    "matplotlib": "plots",
}  # package -> the extra of pyproject.toml that brings it
INTERRUPTED = 130  # the exit code of shells for Ctrl+C


def run_program(main: Callable[[], int | None]) -> None:
    """Run a program and exit with main's exit code (None: 0).

    ValueError, OSError and a missing package are the user's to fix: the program prints `error: ...` and exits with 1.
    After Ctrl+C it exits with 130. Any other error is a bug and keeps its traceback.
    """
    sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        code = INTERRUPTED
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "attention_atlas":
            raise
        code = f"error: {describe_error(error)}"
    if "WORLD_SIZE" not in os.environ:
        sys.exit(code)
    # A process of torchrun exits without finalizing Python, during which a thread of torch may abort it after all work
    # is done ("terminate called without an active exception").
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def describe_error(error: Exception) -> str:
    """Return the message of an error for the user of a program."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.split(".")[0]
        extra = f'the extra "{EXTRAS[name]}" brings it, and so does ' if name in EXTRAS else ""
        versions = "" if INSTALLED else " -c constraints.txt"  # a file of a checkout
        return f"{name} is not installed: {extra}pip install {name}{versions}"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def require(*packages: str) -> None:
    """Raise ModuleNotFoundError for a package that is not installed, before hours of work."""
    for package in packages:
        importlib.import_module(package)


def command_line(program: str, about: str) -> argparse.ArgumentParser:
    """Return the parser of a program such as "attention-atlas train". about: its module's docstring, for --help."""
    return argparse.ArgumentParser(
        prog=program, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add --checkpoint and --device. The name of a shipped checkpoint becomes its folder, where the program then reads
    and writes."""
    parser.add_argument(
        "--checkpoint",
        type=checkpoint_folder,
        default=str(DEFAULT_CHECKPOINT),  # argparse converts a string as if it were typed
        help=f"a folder, or the name of a shipped checkpoint; default {DEFAULT_CHECKPOINT}",
    )
    parser.add_argument("--device", help="cpu, cuda or mps")


def add_output(parser: argparse.ArgumentParser, file: str) -> None:
    """Add --out and --replace for the file of a measurement."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"default: {file} in the checkpoint's folder; to be named for one that was installed with the package",
    )
    parser.add_argument("--replace", action="store_true", help="write over what is there already")


def add_json(parser: argparse.ArgumentParser, about: str = "also write a list of {name, value, unit}") -> None:
    """Add --json and --replace for a benchmark's figures. parse_args() checks whether the file exists."""
    parser.add_argument("--json", type=Path, metavar="FILE", help=about)
    parser.add_argument("--replace", action="store_true", help="write over what is there already")


def parse_args(parser: argparse.ArgumentParser, argv: list[str] | None, *files: str) -> argparse.Namespace:
    """Parse a command line. files: options, besides --json, that name a file to write.

    Raises ValueError if such a file exists and --replace is missing.
    """
    args = parser.parse_args(argv)
    for name in ("json", *files):
        if (path := getattr(args, name, None)) is not None:
            refuse_existing(path, args.replace)
    return args


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add --limit for a trial on a few sentences, which is never stored as the measurement."""
    parser.add_argument(
        "--limit",
        type=integer(),
        help="a trial: only the first so many sentences of each direction; nothing is written but --out",
    )


def measurement_path(args: argparse.Namespace, file: str) -> Path | None:
    """Return the file of a measurement by --out, --replace and --limit; None for a trial that writes nothing.

    Raises ValueError if the file exists and --replace is missing, if it is part of the installed package, or if its
    folder is missing.
    """
    if args.out is None and getattr(args, "limit", None) is not None:
        return None
    if args.out is None:
        check_writable(args.checkpoint)
    elif not args.out.parent.is_dir():
        raise ValueError(f"the folder {args.out.parent} is missing")
    path = args.out or args.checkpoint / file
    refuse_existing(path, args.replace)
    return path


def check_writable(folder: Path, instead: str = "--out names another file") -> None:
    """Raise ValueError for a checkpoint of the installed package, whose files pip manages."""
    if INSTALLED and folder.parent == SHIPPED:
        raise ValueError(f"{folder.name} was installed with the package, which is not written to: {instead}")


def refuse_existing(path: Path, replace: bool) -> None:
    """Raise ValueError if the path exists and `replace` is false."""
    if path.exists() and not replace:
        raise ValueError(f"{path} is there already: --replace writes over it")


def integer(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """Return the type, for argparse, of a whole number within bounds."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, found {text!r}")
        return int(text)

    return read

"""What all programs share: a command line, errors in words, and exit codes. Each is `main(argv)` and ends with
`program(main)`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from attention_atlas.model.files import INSTALLED, SHIPPED, checkpoint_folder

CHECKPOINT = Path("checkpoints/de-en")
EXTRAS = {
    "gradio": "app",
    "sacrebleu": "train",
    "tqdm": "train",
    "sacremoses": "train",
    "matplotlib": "plots",
}  # package -> the extra of pyproject.toml that brings it
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
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "attention_atlas":
            raise
        code = f"error: {in_words(error)}"
    if "WORLD_SIZE" in os.environ:
        _leave(code)
    sys.exit(code)


def _leave(code: int | str | None) -> NoReturn:
    """End one of torchrun's processes without taking Python down: a thread of torch's that still meets Python then
    aborts it, with all its work done ("terminate called without an active exception")."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def in_words(error: Exception) -> str:
    """What went wrong, for whoever started the program."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.split(".")[0]
        extra = f'the extra "{EXTRAS[name]}" brings it, and so does ' if name in EXTRAS else ""
        versions = "" if INSTALLED else " -c constraints.txt"  # a file of a checkout
        return f"{name} is not installed: {extra}pip install {name}{versions}"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def needs(*packages: str) -> None:
    """ModuleNotFoundError for a package that is not installed: now, not after what takes hours."""
    for package in packages:
        importlib.import_module(package)


def command_line(program: str, about: str) -> argparse.ArgumentParser:
    """The options of a program, such as "attention-atlas train". about: its module's docstring, which --help shows."""
    return argparse.ArgumentParser(
        prog=program, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Which model, and where it computes. A shipped one's name becomes its folder here, so that all that a program
    reads and writes beside the weights lies beside those that it loads."""
    parser.add_argument(
        "--checkpoint",
        type=checkpoint_folder,
        default=str(CHECKPOINT),  # a string is read as if it had been typed
        help=f"a folder, or the name of a shipped checkpoint; default {CHECKPOINT}",
    )
    parser.add_argument("--device", help="cpu, cuda or mps")


def add_output(parser: argparse.ArgumentParser, file: str) -> None:
    """Where a measurement of a checkpoint is written."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"default: {file} in the checkpoint's folder; to be named for one that was installed with the package",
    )
    parser.add_argument("--replace", action="store_true", help="write over what is there already")


def add_json(parser: argparse.ArgumentParser, about: str = "also write a list of {name, value, unit}") -> None:
    """Where a benchmark's figures are written besides: given() asks first whether something is there."""
    parser.add_argument("--json", type=Path, metavar="FILE", help=about)
    parser.add_argument("--replace", action="store_true", help="write over what is there already")


def given(parser: argparse.ArgumentParser, argv: list[str] | None, *files: str) -> argparse.Namespace:
    """What the command line says. files: options that name a file to write, besides --json. ValueError where one would
    be written over without --replace, before anything is measured."""
    args = parser.parse_args(argv)
    for name in ("json", *files):
        if (path := getattr(args, name, None)) is not None:
            check_free(path, args.replace)
    return args


def add_limit(parser: argparse.ArgumentParser) -> None:
    """A try, which never stands for the measurement itself."""
    parser.add_argument(
        "--limit",
        type=whole(),
        help="a try: only the first so many sentences of each direction, and nothing is written but --out",
    )


def destination(args: argparse.Namespace, file: str) -> Path | None:
    """Where a measurement goes, by --out, --replace and --limit: None is nowhere. Asked before anything is measured.
    ValueError where it would write over something without --replace, into the installed package, or into a folder that
    there is not."""
    if args.out is None and getattr(args, "limit", None) is not None:
        return None
    if args.out is None:
        check_own(args.checkpoint)
    elif not args.out.parent.is_dir():
        raise ValueError(f"the folder {args.out.parent} is missing")
    path = args.out or args.checkpoint / file
    check_free(path, args.replace)
    return path


def check_own(folder: Path, instead: str = "--out names another file") -> None:
    """ValueError for a checkpoint of the installed package, whose files are pip's to write and remove."""
    if INSTALLED and folder.parent == SHIPPED:
        raise ValueError(f"{folder.name} was installed with the package, which is not written to: {instead}")


def check_free(path: Path, replace: bool) -> None:
    """ValueError if something is there already and nobody said --replace."""
    if path.exists() and not replace:
        raise ValueError(f"{path} is there already: --replace writes over it")


def whole(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """The type of an option that is a whole number within bounds."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, found {text!r}")
        return int(text)

    return read

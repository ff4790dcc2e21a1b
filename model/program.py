"""Shared parts of the programs: options of the command line, error messages and exit codes.

Each program is a module with a function `main(argv=None)`, which it runs by `run_program(main)`. Usually main() builds
a CommandLine, whose add_ methods add the options that programs share.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from attention_atlas.model.files import IS_INSTALLED, SHIPPED_FOLDER, checkpoint_folder

DEFAULT_CHECKPOINT = Path("checkpoints/de-en")  # shipped, so checkpoint_folder() finds it from any working directory
# The optional packages, as they are imported and installed, and the extra of pyproject.toml that contains each.
EXTRAS = {
    "gradio": "app",
    "sacrebleu": "train",
    "tqdm": "train",
    "sacremoses": "train",
    "matplotlib": "plots",
}
INTERRUPTED = 130  # the exit code of shells for Ctrl+C


def run_program(main: Callable[[], int | None]) -> None:
    """Run a program and exit with main's exit code (None: 0).

    ValueError, OSError and a missing package are the user's to fix: the program prints `error: ...` and exits with 1.
    After Ctrl+C it exits with 130, and with 0 if the reader of its output, such as `head`, closed the pipe. Any other
    error is a bug and keeps its traceback.
    """
    sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale
    try:
        status = main()  # an exit code, None, or below an error message: sys.exit() prints that and exits with 1
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        status = INTERRUPTED
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "attention_atlas":
            raise  # a module of our own that is missing is a bug
        status = f"error: {describe_error(error)}"
    if "WORLD_SIZE" not in os.environ:  # torchrun sets it
        sys.exit(status)
    # Under torchrun, exit without finalizing Python: during finalization a thread of torch may abort the process after
    # all work is done ("terminate called without an active exception").
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


def describe_error(error: Exception) -> str:
    """Return the message of an error for the user of a program."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.split(".")[0]
        # A checkout is run from its root, where constraints.txt lists tested versions.
        project, constraints = ("attention-atlas", "") if IS_INSTALLED else (".", " -c constraints.txt")
        package = f"'{project}[{EXTRAS[name]}]'" if name in EXTRAS else name
        return f"{name} is not installed: pip install {package}{constraints}"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def require(*packages: str) -> None:
    """Raise ModuleNotFoundError for a package that is not installed.

    Call it first, so that a missing package is reported before hours of work.
    """
    for package in packages:
        importlib.import_module(package)


class CommandLine(argparse.ArgumentParser):
    """The parser of a program, such as "attention-atlas train", with the options that several programs have.

    about: the docstring of the program's module, which --help prints
    """

    def __init__(self, name: str, about: str) -> None:
        super().__init__(prog=name, description=about, formatter_class=argparse.RawDescriptionHelpFormatter)

    def add_checkpoint(self) -> None:
        """Add --checkpoint, which becomes a folder also where a shipped checkpoint is named, and --device.

        A program that writes into the folder calls measurement_path() or check_writable() first.
        """
        self.add_argument(
            "--checkpoint",
            type=checkpoint_folder,
            default=str(DEFAULT_CHECKPOINT),  # argparse converts a string as if it were typed
            help=f"a folder, or the name of a shipped checkpoint; default {DEFAULT_CHECKPOINT}",
        )
        self.add_argument("--device", help="cpu, cuda or mps; default: the fastest that is available")

    def add_output(self, file: str, *, trial: bool = False) -> None:
        """Add --out and --replace for the file of a measurement, which is by default a file of the checkpoint's folder.

        file   the file's name, for --help; measurement_path() takes the same
        trial  also add --limit, for a trial on a few sentences, which is written only if --out names a file
        """
        if trial:
            self.add_argument(
                "--limit",
                type=integer(),
                metavar="N",
                help="a trial on the first N sentences of each direction; no measurement is written unless --out "
                "names a file",
            )
        self.add_argument(
            "--out",
            type=Path,
            metavar="FILE",
            help=f"default: {file} in the checkpoint's folder; required if the checkpoint came with the installed "
            "package",
        )
        self._add_replace()

    def add_json(self, about: str = "also write a list of {name, value, unit}") -> None:
        """Add --json and --replace for a benchmark's figures, which have no default file; parse_args() checks it."""
        self.add_argument("--json", type=Path, metavar="FILE", help=about)
        self._add_replace()

    def _add_replace(self) -> None:
        self.add_argument("--replace", action="store_true", help="overwrite existing files")


def parse_args(parser: argparse.ArgumentParser, argv: list[str] | None, *file_options: str) -> argparse.Namespace:
    """Parse a command line with --json and --replace, and check the files that it names.

    file_options: other options that name a file to write, without dashes, such as "png"

    Raises ValueError as check_file() does.
    """
    args = parser.parse_args(argv)
    for name in ("json", *file_options):
        path = getattr(args, name)
        if path is not None:
            check_file(path, args.replace)
    return args


def measurement_path(args: argparse.Namespace, file: str) -> Path | None:
    """Return the path to write a measurement to, from --out, or else `file` in the checkpoint's folder.

    Returns None for a trial (--limit) without --out. Raises ValueError for a file of --out as check_file() does, and
    without --out for a checkpoint of the installed package or if the file exists and --replace is missing.
    """
    if args.out is None and getattr(args, "limit", None) is not None:
        return None
    if args.out is not None:
        check_file(args.out, args.replace)
        return args.out
    check_writable(args.checkpoint)
    path = args.checkpoint / file
    refuse_existing(path, args.replace)
    return path


def check_writable(folder: Path, advice: str = "use --out FILE") -> None:
    """Raise ValueError for a checkpoint of the installed package, whose files pip manages."""
    if IS_INSTALLED and folder.parent == SHIPPED_FOLDER:
        raise ValueError(f"{folder.name} was installed with the package, which programs do not change: {advice}")


def check_file(path: Path, replace: bool) -> None:
    """Check a file to write before hours of work.

    Raises ValueError if its folder is missing, if the path is a folder, or if it exists and `replace` is false.
    """
    if not path.parent.is_dir():
        raise ValueError(f"the folder {path.parent} is missing")
    refuse_existing(path, replace)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file")


def refuse_existing(path: Path, replace: bool) -> None:
    """Raise ValueError if the path exists and `replace` is false."""
    if path.exists() and not replace:
        raise ValueError(f"{path} is there already: use --replace to overwrite it")


def integer(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """Return a function that converts an option's text, as argument `type` of argparse, to an integer within bounds.

    It takes digits only, so no sign.
    """
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def convert(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, found {text!r}")
        return int(text)

    return convert

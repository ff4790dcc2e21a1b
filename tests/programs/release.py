"""Build a wheel and a source archive into dist/ and try them: `make release`. It uploads nothing.

twine checks both files. Each is then installed with its dependencies into a new environment, in which the command and
the Python code of README.md run outside the checkout.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from attention_atlas.model.program import run_program
from tests import ROOT, run
from tests.pages import block

DIST = ROOT / "dist"
TEXT = "Ich möchte ein Bier, bitte."


def copy_sources(folder: Path, is_included: Callable[[str], bool]) -> None:
    """Copy the files of the checkout that git does not ignore, and whose path is included, into a folder."""
    for name in run(["git", "ls-files", "-coz", "--exclude-standard"]).split("\0"):
        if (ROOT / name).is_file() and is_included(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def build(folder: Path, sources: Path = ROOT) -> list[Path]:
    """Write the archive and the wheel into an emptied folder. ValueError if a package index would refuse them."""
    shutil.rmtree(folder, ignore_errors=True)
    for kind in ("sdist", "wheel"):
        run([sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", folder], cwd=sources)
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    run([sys.executable, "-m", "twine", "check", "--strict", *files])
    return files


def install(file: Path, folder: Path) -> Path:
    """Install a wheel or archive with the extra `app` into a new environment; return its bin folder."""
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", f"{file}[app]"])
    return folder / "bin"


def try_out(where: Path, at: Path) -> None:
    """Run the installed command and README.md's code. ValueError if they print anything but README.md's output."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    code = block("README.md", "python")
    expected = code.split("-> ", 1)[1].splitlines()[0]
    printed = run([where / "python", "-c", code], cwd=at, env=ours).strip()
    translated = run([where / "attention-atlas", "translate", "--device", "cpu", TEXT], cwd=at, env=ours).strip()
    run([where / "attention-atlas", "serve", "--help"], cwd=at, env=ours)
    if printed != expected or not expected.startswith(translated):
        raise ValueError(f"expected {expected!r}, got {printed!r} and {translated!r}")


def main(argv: list[str] | None = None) -> None:
    files = build(DIST)
    for file in files:
        with tempfile.TemporaryDirectory(prefix="release-") as folder:
            try_out(install(file, Path(folder) / "environment"), Path(folder))
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.1f} MB, checked, installed and tried", flush=True)
    print("Nothing was uploaded.")


if __name__ == "__main__":
    run_program(main)

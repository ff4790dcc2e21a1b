"""Build and try a wheel and an archive of the sources: `make release`. Nothing is uploaded.

Both are built into dist/ and checked by twine. Each is installed into an environment
of its own, with what the package index has for it, where the command and README.md's Python run far from the checkout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from attention_atlas.model.program import program
from tests import ROOT
from tests.pages import block

DIST = ROOT / "dist"
TEXT = "Ich möchte ein Bier, bitte."


def run(command: list[object], **options: object) -> str:
    """Return what the command printed. ValueError, with what it said, if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise ValueError(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def build(folder: Path) -> list[Path]:
    """Write the wheel and the archive into an emptied folder, and check what a package index would refuse."""
    shutil.rmtree(folder, ignore_errors=True)
    for kind in ("sdist", "wheel"):
        run([sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", folder], cwd=ROOT)
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    run([sys.executable, "-m", "twine", "check", "--strict", *files])
    return files


def install(file: Path, folder: Path) -> Path:
    """The bin folder of a new environment with a file, the app, and nothing of this environment."""
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", f"{file}[app]"])
    return folder / "bin"


def try_out(where: Path, at: Path) -> None:
    """ValueError if the installed command or README.md's Python says anything but what README.md says."""
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
    program(main)

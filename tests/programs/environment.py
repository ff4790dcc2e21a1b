"""The environment of docs/start/page.md, out of packages of this one: what it does not ask for cannot be imported."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

from tests import ROOT
from tests.pages import read

STANDS_FOR = {"jupyterlab": ("ipykernel", "nbformat")}  # what a notebook's kernel needs of all that it brings


def asked_for() -> list[str]:
    """What `make app` installs, and what docs/start/page.md says to install into it."""
    (by_hand,) = re.findall(r"^pip install ([\w ]+) -c constraints\.txt", read("docs/start/page.md"), re.MULTILINE)
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [*filter(None, lines), *(one for name in by_hand.split() for one in STANDS_FOR.get(name, (name,)))]


def with_dependencies(wanted: Iterable[str]) -> dict[str, importlib.metadata.Distribution]:
    """Name -> distribution of all that pip would install for these lines."""
    found: dict[str, importlib.metadata.Distribution] = {}
    asked = [(Requirement(line), extra) for line in wanted for extra in ("", *Requirement(line).extras)]
    while asked:
        requirement, extra = asked.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        new = [*requirement.extras] + ([] if name in found else [""])
        found[name] = found.get(name) or importlib.metadata.distribution(requirement.name)
        asked += [(Requirement(line), one) for line in found[name].requires or () for one in new]
    return found


def python_of(folder: Path, wanted: Iterable[str]) -> Path:
    """The bin folder of a new environment with what these lines ask for, linked, and no other package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for distribution in with_dependencies(wanted).values():
        here = Path(str(distribution.locate_file("")))
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (packages / top).exists():
                (packages / top).symlink_to(here / top)
    # The checkout in editable mode, with its command.
    (packages / "checkout.pth").write_text(str(ROOT / "typings"), encoding="utf-8")
    command = folder / "bin" / "attention-atlas"
    command.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m attention_atlas "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return folder / "bin"

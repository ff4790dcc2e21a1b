"""The environment of docs/start/page.md, in which tests run documented commands.

It links packages of the environment that runs the tests: a package that the page does not ask for cannot be imported.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import ROOT
from tests.pages import read

REPLACEMENTS = {"jupyterlab": ("ipykernel", "nbformat")}  # the parts of it that a notebook's kernel needs


@pytest.fixture(scope="session")
def readme_bin(tmp_path_factory) -> Path:
    """The bin folder of the environment that docs/start/page.md describes."""
    (by_hand,) = re.findall(r"^pip install ([\w ]+) -c constraints\.txt", read("docs/start/page.md"), re.MULTILINE)
    requirements = [line for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() if line]
    requirements += [part for name in by_hand.split() for part in REPLACEMENTS.get(name, (name,))]
    folder = tmp_path_factory.mktemp("readme") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for distribution in with_dependencies(requirements).values():
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


def with_dependencies(requirements: Iterable[str]) -> dict[str, importlib.metadata.Distribution]:
    """Return all distributions, by name, that pip would install for these requirements."""
    distributions: dict[str, importlib.metadata.Distribution] = {}
    pending = [(Requirement(line), extra) for line in requirements for extra in ("", *Requirement(line).extras)]
    while pending:
        requirement, extra = pending.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        extras = [*requirement.extras] + ([] if name in distributions else [""])
        distributions[name] = distributions.get(name) or importlib.metadata.distribution(requirement.name)
        pending += [(Requirement(line), extra) for line in distributions[name].requires or () for extra in extras]
    return distributions

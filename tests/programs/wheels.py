"""Whether everything can be installed on each Python that the README names: `make wheels`, about a minute.

Resolved from the index's metadata alone, for wheels alone: nothing is fetched whole, built or installed, and none of
these Pythons has to be there. Where no index can be reached this says so and is no failure: nothing was found out.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from tests import ROOT

PINS = ("-c", str(ROOT / "constraints.txt"))
UNREACHABLE = re.compile(r"dns error|tcp connect error|operation timed out|client error \(Connect\)", re.IGNORECASE)
OPTIONS = {"index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links"}  # pip's -> uv's


@dataclass(frozen=True)
class Setting:
    """One way to install. python: major.minor; also: requirements besides those of the file, one a line."""

    python: str
    requirements: Path  # or pyproject.toml: the package itself, with every extra
    pins: Sequence[str] = PINS
    also: str = ""

    @property
    def wanted(self) -> str:
        """In a requirements file's form."""
        if self.requirements.suffix != ".toml":
            return f"-r {self.requirements}\n{self.also}\n"
        project = tomllib.loads(self.requirements.read_text(encoding="utf-8"))["project"]
        extras = [one for extra in project["optional-dependencies"].values() for one in extra]
        of_others = (one for one in extras if not one.startswith(f"{project['name']}["))
        return "\n".join([*project["dependencies"], *of_others, self.also])

    def __str__(self) -> str:
        versions = "the pinned versions" if self.pins else "the newest versions"
        return f"Python {self.python}, {self.requirements.name}, {versions}" + (f", {self.also}" if self.also else "")


SETTINGS = (
    *(Setting(python, ROOT / "requirements-dev.txt") for python in ("3.11", "3.12", "3.13", "3.14")),
    *(Setting(python, ROOT / "pyproject.toml", ()) for python in ("3.11", "3.14")),
    # A Space installs requirements.txt alone, on the front matter's Python; ZeroGPU has torch 2.8 to 2.11.
    *(Setting("3.12", ROOT / "requirements.txt", (), f"torch=={torch}.*") for torch in ("2.8", "2.11")),
)


def configured(listed: str) -> dict[str, list[str]]:
    """Name -> values of what `pip config list` says; a variable of the environment goes before a file."""
    found: dict[str, tuple[bool, list[str]]] = {}
    for line in listed.splitlines():
        if not (match := re.fullmatch(r"(global|install|:env:)\.([\w-]+)=('.*'|\".*\")", line)):
            continue
        place, name, value = match.groups()
        if place == ":env:" or not found.get(name, (False,))[0]:
            found[name] = place == ":env:", ast.literal_eval(value).split()
    return {name: values for name, (_, values) in found.items()}


def as_pip_is() -> tuple[list[str], Mapping[str, str]]:
    """Options and variables with which uv asks the indexes that pip would ask here."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    pip = configured(listed.stdout)
    options = [part for name, option in OPTIONS.items() for value in pip.get(name, ()) for part in (option, value)]
    if pip.get("no-index", ["0"])[0].lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    certificates = {"SSL_CERT_FILE": pip["cert"][0]} if "cert" in pip else {}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    return options, {**kept, **certificates}


def resolve(setting: Setting) -> tuple[bool, str]:
    """Whether every requirement has a wheel that goes with the others; what uv said."""
    options, environment = as_pip_is()
    done = subprocess.run(
        [
            find_uv_bin(),
            "pip",
            "compile",
            "-",
            *setting.pins,
            "--python-version",
            setting.python,
            "--only-binary",
            ":all:",
            "--index-strategy",
            "unsafe-best-match",
            "--no-config",
            "--color",
            "never",
            "--no-header",
            "--no-annotate",
            "--python",
            sys.executable,
            "--no-python-downloads",
            *options,
        ],
        input=setting.wanted,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr.strip()


def check(settings: Sequence[Setting]) -> int:
    """Say of each setting what was found; 1 if one of them cannot be installed, else 0."""
    failed = []
    for setting in settings:
        good, said = resolve(setting)
        if not good and UNREACHABLE.search(said):
            print(
                f"The package index could not be reached: whether there are wheels for {setting} was not found out, "
                f"nor for what comes after it.\n{said}"
            )
            break
        print(
            f"{setting}: {len(said.splitlines())} wheels" if good else f"{setting}: not to be installed\n{said}",
            flush=True,
        )
        failed += [] if good else [setting]
    return 1 if failed else 0


def main(argv: list[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m tests.programs.wheels", description=__doc__).parse_args(argv)
    return check(SETTINGS)


if __name__ == "__main__":
    sys.exit(main())

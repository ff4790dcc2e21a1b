"""Check that all requirements have wheels for each Python version that the README names: `make wheels`, about a minute.

uv resolves them from the index's metadata. It installs and builds nothing, and does not need these Python versions. If
no index can be reached, the program prints this and exits with 0.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
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
    """A set of requirements for one Python version (major.minor); also: further requirements, one a line."""

    python: str
    requirements: Path  # or pyproject.toml: the package itself, with every extra
    pins: Sequence[str] = PINS
    also: str = ""

    @property
    def requirement_lines(self) -> str:
        """The requirements in the format of a requirements file."""
        if self.requirements.suffix != ".toml":
            return f"-r {self.requirements}\n{self.also}\n"
        project = tomllib.loads(self.requirements.read_text(encoding="utf-8"))["project"]
        extras = [line for lines in project["optional-dependencies"].values() for line in lines]
        of_others = (line for line in extras if not line.startswith(f"{project['name']}["))
        return "\n".join([*project["dependencies"], *of_others, self.also])

    def __str__(self) -> str:
        versions = "the pinned versions" if self.pins else "the newest versions"
        return f"Python {self.python}, {self.requirements.name}, {versions}" + (f", {self.also}" if self.also else "")


SETTINGS = (
    *(Setting(python, ROOT / "requirements-dev.txt") for python in ("3.11", "3.12", "3.13", "3.14")),
    *(Setting(python, ROOT / "pyproject.toml", ()) for python in ("3.11", "3.14")),
    # A Space installs requirements.txt on the front matter's Python; ZeroGPU provides torch 2.8 to 2.11.
    *(Setting("3.12", ROOT / "requirements.txt", (), f"torch=={torch}.*") for torch in ("2.8", "2.11")),
)


def parse_pip_config(text: str) -> dict[str, list[str]]:
    """Parse the output of `pip config list` into values by name; environment variables take precedence over files."""
    settings: dict[str, tuple[bool, list[str]]] = {}
    for line in text.splitlines():
        if not (match := re.fullmatch(r"(global|install|:env:)\.([\w-]+)=('.*'|\".*\")", line)):
            continue
        section, name, value = match.groups()
        if section == ":env:" or not settings.get(name, (False,))[0]:
            settings[name] = section == ":env:", ast.literal_eval(value).split()
    return {name: values for name, (_, values) in settings.items()}


def uv_settings() -> tuple[list[str], Mapping[str, str]]:
    """Return options and environment variables that make uv use the indexes that pip is configured for."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    pip = parse_pip_config(listed.stdout)
    options = [part for name, option in OPTIONS.items() for value in pip.get(name, ()) for part in (option, value)]
    if pip.get("no-index", ["0"])[0].lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    certificates = {"SSL_CERT_FILE": pip["cert"][0]} if "cert" in pip else {}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    return options, {**environment, **certificates}


def resolve(setting: Setting) -> tuple[bool, str]:
    """Return whether every requirement has a wheel compatible with the others, and uv's output."""
    options, environment = uv_settings()
    options += shlex.split("--only-binary :all: --index-strategy unsafe-best-match --no-python-downloads --no-config")
    options += shlex.split("--color never --no-header --no-annotate --python-version") + [setting.python]
    done = subprocess.run(
        [find_uv_bin(), "pip", "compile", "-", *setting.pins, "--python", sys.executable, *options],
        input=setting.requirement_lines,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr.strip()


def check(settings: Sequence[Setting]) -> int:
    """Resolve each setting and print the outcome; return 1 if one of them has no wheels, else 0."""
    failed = False
    for setting in settings:
        is_resolved, output = resolve(setting)
        if not is_resolved and UNREACHABLE.search(output):
            print(f"The package index could not be reached: {setting} and the settings after it are unknown.\n{output}")
            break
        outcome = f"{len(output.splitlines())} wheels" if is_resolved else f"no compatible wheels\n{output}"
        print(f"{setting}: {outcome}", flush=True)
        failed |= not is_resolved
    return int(failed)


def main(argv: list[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m tests.programs.wheels", description=__doc__).parse_args(argv)
    return check(SETTINGS)


if __name__ == "__main__":
    sys.exit(main())

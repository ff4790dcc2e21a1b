"""The Dockerfile's instructions, and the shell commands of its steps, without a Docker daemon."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = [
    tuple(line.split(None, 1))
    for line in re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
    if line.strip()
]
KNOWN = {"ARG", "FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "CMD"}


def arguments_of(name: str) -> list[str]:
    """Return the arguments of each instruction of this name."""
    return [rest for step, rest in STEPS if step == name]


def test_the_image_runs_as_an_unprivileged_user_with_a_health_check():
    names = [name for name, _ in STEPS]
    assert set(names) == KNOWN and names[0] == "ARG" and names[1] == "FROM"
    assert arguments_of("USER") == ["10001"] and "--uid 10001 " in arguments_of("RUN")[-1]
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN")
    assert names[-1] == "CMD" and arguments_of("EXPOSE") == ["7860"]
    bases = {re.search(r"^ARG BASE=(\S+)", TEXT, re.MULTILINE)[1], *re.findall(r"--build-arg BASE=(\S+)", TEXT)}
    assert len(bases) == 2 and all(":" in base and not base.endswith(":latest") for base in bases)


def test_its_steps_are_valid_shell_commands():
    for command in arguments_of("RUN"):
        subprocess.run(["sh", "-nc", command], check=True)


@pytest.mark.parametrize(("wheels", "options"), [("https://x/cpu", ["--extra-index-url", "https://x/cpu"]), ("", [])])
def test_the_build_argument_sets_the_index_that_pip_uses(wheels, options):
    command = re.search(r"/opt/atlas/bin/pip (install .*)", arguments_of("RUN")[1])[1]
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {command}"], env={"WHEELS": wheels}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["install", "--no-cache-dir", *options, "-c", "constraints.txt", ".[app,plots]"]

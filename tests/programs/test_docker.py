"""The Dockerfile, without a daemon: what it says, and its steps as a shell runs them."""

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


def of(name: str) -> list[str]:
    return [rest for step, rest in STEPS if step == name]


def test_it_serves_as_nobody_special_and_tells_whether_it_is_well():
    names = [name for name, _ in STEPS]
    assert set(names) == KNOWN and names[0] == "ARG" and names[1] == "FROM"
    assert of("USER") == ["10001"] and "--uid 10001 " in of("RUN")[-1]
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN")
    assert names[-1] == "CMD" and of("EXPOSE") == ["7860"]
    bases = {re.search(r"^ARG BASE=(\S+)", TEXT, re.MULTILINE)[1], *re.findall(r"--build-arg BASE=(\S+)", TEXT)}
    assert len(bases) == 2 and all(":" in base and not base.endswith(":latest") for base in bases)


def test_its_shell_steps_are_shell():
    for command in of("RUN"):
        subprocess.run(["sh", "-nc", command], check=True)
    assert '".[app,plots]"' in of("RUN")[1] and "-c constraints.txt" in of("RUN")[1]


@pytest.mark.parametrize(("wheels", "said"), [("https://x/cpu", ["--extra-index-url", "https://x/cpu"]), ("", [])])
def test_what_is_installed_follows_the_build_argument(wheels, said):
    """pip's arguments, as sh makes them."""
    command = re.search(r"/opt/atlas/bin/pip (install .*)", of("RUN")[1])[1]
    shown = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {command}"], env={"WHEELS": wheels}, capture_output=True, text=True
    )
    assert shown.stdout.split() == ["install", "--no-cache-dir", *said, "-c", "constraints.txt", ".[app,plots]"]

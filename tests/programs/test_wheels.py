"""The Python versions that are supported, in all files that name them."""

from __future__ import annotations

import re

from tests import ROOT
from tests.programs import wheels
from tests.server.space_check import front_matter


def test_the_supported_python_versions_agree_everywhere():
    """In the Makefile, pyproject.toml, the README, its front matter and the settings of `make wheels`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pinned = [setting.python for setting in wheels.SETTINGS if setting.pins]
    first, last = re.search(r"Python (\d\.\d+) to (\d\.\d+)", readme).groups()
    assert (first, last) == (pinned[0], pinned[-1])
    assert f"needs Python {first} or newer" in (ROOT / "Makefile").read_text(encoding="utf-8")
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'requires-python = ">={first}"' in pyproject
    assert f'target-version = "py{first.replace(".", "")}"' in pyproject
    assert pinned == [f"3.{minor}" for minor in range(int(first[2:]), int(last[2:]) + 1)]
    assert re.findall(r'"Programming Language :: Python :: (.*)"', pyproject) == pinned
    newest = [setting for setting in wheels.SETTINGS if not setting.pins]
    of_a_space = {setting.python for setting in newest if setting.requirements.suffix == ".txt"}
    assert [setting.python for setting in newest if setting.requirements.suffix == ".toml"] == [first, last]
    assert of_a_space == {front_matter()["python_version"]}

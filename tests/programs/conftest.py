"""What the tests of the programs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.environment import asked_for, python_of


@pytest.fixture(scope="session")
def readme_bin(tmp_path_factory) -> Path:
    """The bin folder of the environment that docs/start/page.md makes, for the commands that it then gives."""
    return python_of(tmp_path_factory.mktemp("readme") / "environment", asked_for())

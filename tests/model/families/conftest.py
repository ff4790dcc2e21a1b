"""Fixtures: a Marian folder in a hub's layout, and a copy for each test to change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.model.families import theirs


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """The folder of a Marian model as `transformers` saves it."""
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-de-en"
    theirs.marian(folder).save_pretrained(folder)
    return folder


@pytest.fixture()
def folder(saved, tmp_path) -> Path:
    """A copy of `saved` for the test to change."""
    return Path(shutil.copytree(saved, tmp_path / "copy"))

"""A folder of a hub's layout, and a copy of it that may be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.model.families import theirs


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A Marian model as `transformers` saves it."""
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-de-en"
    theirs.marian(folder).save_pretrained(folder)
    return folder


@pytest.fixture()
def folder(saved, tmp_path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(saved, tmp_path / "copy"))

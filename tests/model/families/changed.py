"""What the tests of folders share: changing a folder, and seeing that it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attention_atlas.model import checkpoint
from tests.model.families import theirs

WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"


def edit(folder: Path, **changes) -> None:
    config = json.loads((folder / "config.json").read_text())
    theirs.write(folder / "config.json", config | changes)


def refused(folder: Path, *words: str) -> str:
    with pytest.raises(ValueError) as caught:
        checkpoint.load(folder)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    return str(caught.value)

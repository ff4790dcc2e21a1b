"""Fixtures of all tests of model/: what a test may change, and the norm before and after each sub-layer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, build_tiny_model


@pytest.fixture(scope="session")
def trace(tiny_translator: Translator) -> TranslationTrace:
    return tiny_translator.translate(SENTENCES[0])


@pytest.fixture()
def checkpoint_copy(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint folder for the test to change."""
    return Path(shutil.copytree(tiny_checkpoint, tmp_path / "copy"))


@pytest.fixture(params=[True, False], ids=["pre-norm", "post-norm"])
def norm_first(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture()
def model(norm_first: bool, tokenizer: Tokenizer) -> Transformer:
    """A tiny model for the test to change."""
    return build_tiny_model(tokenizer, norm_first=norm_first)

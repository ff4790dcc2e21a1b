"""Weights between two checkpoints."""

from __future__ import annotations

import pytest
import torch

from model import checkpoint
from model.training.blend import blend
from tests.conftest import build_tiny_model


def test_the_share_is_that_of_the_new_weights(tokenizer, tmp_path):
    models = [build_tiny_model(tokenizer, seed=seed) for seed in (1, 2)]
    for name, model in zip("ab", models):
        checkpoint.save(tmp_path / name, model, tokenizer, ("de-en",), half=False)
    for share in (0.0, 0.25, 1.0):
        blend(tmp_path / "a", tmp_path / "b", share, tmp_path / "out")
        found = checkpoint.load(tmp_path / "out").model
        for old, new, between in zip(models[0].parameters(), models[1].parameters(), found.parameters()):
            torch.testing.assert_close(between, old + share * (new - old), atol=1e-3, rtol=1e-3)  # float16 on disk
    with pytest.raises(ValueError, match="from 0 to 1"):
        blend(tmp_path / "a", tmp_path / "b", 1.5, tmp_path / "out")
    checkpoint.save(tmp_path / "c", build_tiny_model(tokenizer, d_feedforward=32), tokenizer, ("de-en",))
    with pytest.raises(ValueError, match="nothing between"):
        blend(tmp_path / "a", tmp_path / "c", 0.5, tmp_path / "out")

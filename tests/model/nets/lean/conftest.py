"""What the tests of lean steps share."""

from __future__ import annotations

import pytest
from torch import nn

from attention_atlas.model.checkpoint import _for_decoding
from tests.conftest import build_tiny_model


@pytest.fixture()
def halved_model(tokenizer) -> nn.Module:
    """As a shipped checkpoint is loaded."""
    model = build_tiny_model(tokenizer)
    model.load_state_dict({name: _for_decoding(t.half()) for name, t in model.state_dict().items()}, assign=True)
    return model

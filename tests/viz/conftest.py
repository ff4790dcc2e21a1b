"""Fixtures of the tests of what the server sends to the page."""

from __future__ import annotations

import pytest

from attention_atlas.model.translators import Translators
from attention_atlas.viz.questions import registry
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces


@pytest.fixture()
def context(tiny_translator) -> Context:
    """The context in which questions are answered, with the tiny model."""
    registry.load_all()
    translators = Translators([tiny_translator])
    return Context(translators, Traces(translators))

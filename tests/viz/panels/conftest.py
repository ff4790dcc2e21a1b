"""Fixtures of the tests of panels."""

from __future__ import annotations

import pytest

from attention_atlas.model.analysis.why import means


@pytest.fixture()
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute means over two batches of sentences instead of 300 sentences, where their values do not matter."""
    every = means.sentences
    monkeypatch.setattr(means, "sentences", lambda language: every(language)[: 2 * means.SERVED_BATCH_SIZE])

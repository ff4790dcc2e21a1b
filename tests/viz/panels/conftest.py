"""What tests of the lab's panels share."""

from __future__ import annotations

import pytest

from attention_atlas.model.analysis.why import means


@pytest.fixture()
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means that a panel has to make first are of two batches of sentences and not of 300, for tests to which their
    numbers do not matter."""
    every = means.sentences
    monkeypatch.setattr(means, "sentences", lambda language: every(language)[: 2 * means.SERVED_BATCH_SIZE])

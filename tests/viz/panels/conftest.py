"""Fixtures of the tests of panels."""

from __future__ import annotations

import pytest

from attention_atlas.model.analysis.why import means
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection


@pytest.fixture(scope="session")
def trace(tiny_translator) -> TranslationTrace:
    return tiny_translator.translate("Der kleine Hund schläft unter dem Tisch.", "de-en")


@pytest.fixture()
def scene(tiny_translator, trace) -> Scene:
    """A scene with a question about the fourth token of a translation."""
    return Scene(trace, Selection(), tiny_translator, page_question=PageQuestion.of(trace, 3))


@pytest.fixture()
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute means over two batches of sentences instead of 300 sentences, where their values do not matter."""
    every = means.source_sentences
    monkeypatch.setattr(means, "source_sentences", lambda direction: every(direction)[: 2 * means.SERVED_BATCH_SIZE])

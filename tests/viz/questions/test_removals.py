"""The probability of a written word without each source word: the numbers of the tab "Why", in one answer."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.panels.scene import PageQuestion
from attention_atlas.viz.questions import registry
from attention_atlas.viz.questions.registry import Context, ask
from attention_atlas.viz.questions.traces import Traces


@pytest.fixture(scope="module")
def context(shipped_translators) -> Context:
    registry.load_all()
    return Context(shipped_translators, Traces(shipped_translators))


def removals(context: Context, trace, step: object) -> dict:
    address = Address.of(trace).to_plain()
    return ask(context, "page_removals", {"address": address, "fields": {"step": step}})["removals"]


def test_the_numbers_are_those_of_the_tab_why(context, shipped_translators) -> None:
    trace = shipped_translators["en-de"].translate("She gave the old man a cup of tea.", "en-de")
    context.traces.add(trace)
    for step in range(1, len(trace.target_ids), 3):
        asked = PageQuestion.of(trace, step).to_plain()
        body = {"address": Address.of(trace).to_plain(), "fields": {"asked": asked}}
        why, found = ask(context, "page_why", body)["picture"], removals(context, trace, step)
        assert found["step"] == step and found["p"] == pytest.approx(why["p"], abs=1e-5)
        assert np.allclose([w["p"] for w in found["words"]], [w["p"] for w in why["words"]], rtol=0, atol=1e-5)
        source = [at for word in found["words"] if word["source"] for at in word["positions"]]
        assert source == list(range(len(trace.source_ids)))


def test_all_pieces_of_a_word_are_hidden_together(context, shipped_translators) -> None:
    trace = shipped_translators["de-en"].translate("Die Bundesregierung schläft.", "de-en")
    context.traces.add(trace)
    groups = [word["positions"] for word in removals(context, trace, 0)["words"] if word["source"]]
    assert any(len(group) > 1 for group in groups)


@pytest.mark.parametrize("step", [None, "1", -1, 1.5])
def test_an_unknown_step_is_refused(context, shipped_translators, step) -> None:
    trace = shipped_translators["de-en"].translate("Hallo.", "de-en")
    context.traces.add(trace)
    with pytest.raises(Refusal):
        removals(context, trace, step)

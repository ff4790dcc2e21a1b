"""Questions to a recurrent network: hiding a word equals leaving it out, and the methods that apply to it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.attribution import attribute, attribute_case
from attention_atlas.model.analysis.why.case import WordChanges, open_case, open_case_at
from attention_atlas.model.analysis.why.methods import methods_of
from attention_atlas.model.analysis.why.questions import make_question
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.scene import Scene
from tests.conftest import SENTENCES


@pytest.fixture(scope="module")
def translator(recurrent_checkpoint) -> Translator:
    return Translator.load(recurrent_checkpoint, device="cpu")


@pytest.fixture(scope="module")
def trace(translator):
    return translator.translate(SENTENCES[0])


@pytest.fixture(scope="module")
def case(translator, trace):
    return open_case(translator, trace, make_question(translator, trace, 3, Against.NOTHING))


@torch.inference_mode()
def test_hiding_a_word_equals_leaving_it_out(translator, trace, case):
    source, step = len(trace.source_ids), case.question.step
    positions = [(side, at) for side, count in (("source", source), ("prefix", step)) for at in range(count)]
    masks = {"source": np.zeros((len(positions), source), int), "prefix": np.zeros((len(positions), step + 1), int)}
    for row, (side, at) in enumerate(positions):
        masks[side][row, at] = 1
    hidden = case.run(WordChanges(**masks))
    for row, (side, at) in enumerate(positions):
        ids = {"source": list(trace.source_ids), "prefix": list(trace.decoder_ids[: step + 1])}
        del ids[side][at]
        expected = translator.model(torch.tensor([ids["source"]]), torch.tensor([ids["prefix"]])).hidden[0, -1]
        torch.testing.assert_close(hidden[row], expected, atol=1e-5, rtol=0)


def test_the_methods_of_any_network_and_the_alignment_apply(translator, trace, case):
    why = attribute(translator, trace, step=3, contrast=Against.NOTHING, words=False)
    assert [row.method for row in why.rows] == list(methods_of(translator.model)) and len(why.rows) == 5
    assert why.row("integrated_gradients").sum.holds
    source = len(trace.source_ids)
    np.testing.assert_allclose(why.row("cross_attention").values[:source], trace.alignment.weights[0, 0, 3], atol=1e-5)
    slopes = why.row("gradient_x_input").values
    with torch.no_grad():  # along each embedding, by a central difference
        rows, h = case.source_rows, 1e-3
        for at in range(source):
            ends = []
            for sign in (1, -1):
                moved = rows.clone()
                moved[0, at] *= 1 + sign * h
                ends.append(float(case.measure(case.decode(case.target_rows, case.encode(moved)))[0]))
            assert slopes[at] == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=2e-3)


def test_questions_about_parts_are_refused(translator, trace, case):
    with pytest.raises(Refusal, match="cannot be asked by this method"):
        attribute_case(case, ["alti"])
    with pytest.raises(Refusal, match="not a Transformer"):
        open_case_at(translator, trace, 3, Against.NOTHING)
    scene = Scene(trace, made_by=translator)
    assert scene.words_case.output.hidden.shape[0] == 1
    with pytest.raises(Refusal, match="not a Transformer"):
        _ = scene.case

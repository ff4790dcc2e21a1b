"""Tests of exact sums over hundreds of words of random models, of both norm styles, at lengths 1 to 40."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.contributions import decoder_contributions, encoder_contributions
from attention_atlas.model.analysis.why.experiments.heads import close_gates, list_heads
from attention_atlas.model.analysis.why.methods.gradients import integrated_gradients
from attention_atlas.model.analysis.why.split import split_case
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.flow import decoder_flow, encoder_flow
from attention_atlas.model.trace.why.attribution import Columns, Question
from tests.conftest import build_tiny_model
from tests.model.analysis.why.test_split import random_cases

WORDS = 260  # of each norm style


@pytest.fixture(scope="module", params=[True, False], ids=["pre-norm", "post-norm"])
def cases(request, tokenizer) -> list[tuple[Case, int]]:
    """Cases of one column a token, and another token to compare with."""
    model, found = build_tiny_model(tokenizer, norm_first=request.param), []
    for source, target, token, contrast in random_cases(model, WORDS, seed=8):
        columns = Columns(
            *(tuple((i,) for i in range(len(side))) for side in (source, target)),
            *(tuple("▁a" for _ in side) for side in (source, target)),
        )
        question = Question(len(target) - 1, token, "▁t", contrast, "▁u")
        other = next(i for i in range(4, 9) if i not in (token, contrast))
        found.append((Case(model, question, torch.tensor([source]), torch.tensor([target]), columns), other))
    return found


@pytest.mark.long
def test_parts_sum_to_the_logits_and_are_linear_in_the_contrast(cases):
    worst = 0.0
    for case, other in cases:
        question, logits = case.question, case.output.logits[0, -1].double()
        pairs = (question.token_id, question.contrast_id), (question.token_id, other), (other, question.contrast_id)
        of = [
            split_case(replace(case, question=replace(question, token_id=token, contrast_id=contrast)))
            for token, contrast in pairs
        ]
        worst = max(
            worst,
            *(
                abs(found.sum.found - float(logits[token] - logits[contrast]))
                for found, (token, contrast) in zip(of, pairs)
            ),
        )
        for kind in of[0].keys:
            np.testing.assert_allclose(of[1].keys[kind] + of[2].keys[kind], of[0].keys[kind], atol=1e-5)
        np.testing.assert_allclose(of[1].feed_forward + of[2].feed_forward, of[0].feed_forward, atol=1e-5)
    assert worst <= 1e-4


@pytest.mark.long
def test_shares_sum_to_one_and_open_gates_change_nothing(cases):
    for case, _ in cases:
        encoder = encoder_flow(encoder_contributions(case.model, case.output))
        own, cross = decoder_contributions(case.model, case.output)
        for rows in (encoder, own, decoder_flow(own, cross, encoder[-1])):
            np.testing.assert_allclose(rows.sum(-1), 1.0, atol=1e-6)
        gates = close_gates(case, [[]])
        assert sum(gate.numel() for gate in gates.values()) == len(list_heads(case))
        with torch.inference_mode():
            open_gates = case.model(case.source_ids, case.decoder_ids, interventions=Sweep(gates=gates)).logits
            assert torch.equal(open_gates, case.model(case.source_ids, case.decoder_ids).logits)


@pytest.mark.parametrize("every", [pytest.param(5, marks=pytest.mark.long), pytest.param(1, marks=pytest.mark.endure)])
def test_integrated_gradients_are_complete_for_nearly_all_words(cases, every):
    sample = cases[::every]
    flagged = sum(not integrated_gradients(case).sum.holds for case, _ in sample)
    assert flagged <= len(sample) / 20

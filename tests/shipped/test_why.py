"""Why, on the shipped weights: what sums to what, over hundreds of written words."""

from __future__ import annotations

import numpy as np
import pytest

from model.analysis.why.averages import own_sentences
from model.analysis.why.case import open_case
from model.analysis.why.contributions import decoder_contributions, encoder_contributions
from model.analysis.why.pinned import ask
from model.analysis.why.split import parts
from model.trace.flow import decoder_flow, encoder_flow
from model.trace.why.question import Against

WORDS = 500  # at least, over all checkpoints


def traces(transformers, every: int):
    for translator in transformers:
        for direction, texts in own_sentences(translator).items():
            for trace in translator.trace_batch(texts[::every], direction):
                yield translator, trace


@pytest.mark.long
def test_parts_of_every_word_sum_to_its_logits(shipped_transformers):
    """Against the runner-up, and without a contrast; contrasts are linear."""
    words, worst = 0, 0.0
    for translator, trace in traces(shipped_transformers, 12):
        for step in range(len(trace.target_ids)):
            against, alone, other = (
                parts(open_case(translator, trace, ask(translator, trace, step, contrast)))
                for contrast in (Against.RUNNER_UP, Against.NOTHING, trace.target_ids[step - 1]
                                 if trace.target_ids[step - 1] != trace.target_ids[step] else Against.RUNNER_UP))
            assert against.sum.holds and alone.sum.holds and other.sum.holds
            worst = max(worst, *(abs(found.sum.error) for found in (against, alone, other)))
            words += 1
    assert words >= WORDS and worst <= 1e-4


@pytest.mark.long
def test_shares_of_every_word_sum_to_one(shipped_transformers):
    for translator, trace in traces(shipped_transformers, 30):
        output = translator.inspect(trace.source_ids, trace.target_ids)
        encoder = encoder_flow(encoder_contributions(translator.model, output))
        own, cross = decoder_contributions(translator.model, output)
        joint = decoder_flow(own, cross, encoder[-1])
        for rows in (encoder, own, joint):
            np.testing.assert_allclose(rows.sum(-1), 1.0, atol=1e-6)
        source = joint[-1, :, :len(trace.source_ids)].sum(-1)
        assert (source >= 0).all() and (source <= 1 + 1e-6).all()

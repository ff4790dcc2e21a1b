"""Tests of training batches against torch's cross-entropy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis.training_batch import make_training_batch
from attention_atlas.model.checkpoint import Example
from attention_atlas.model.training.loss import SummedLoss
from attention_atlas.model.translator import Translator

EXAMPLES = (Example("Wir warten hier.", "We are waiting here."), Example("Ja.", ""), Example("Nein.", "No."))


@pytest.fixture(scope="module")
def taught(tiny_checkpoint) -> Translator:
    loaded = checkpoint.load(tiny_checkpoint)
    return Translator(replace(loaded, examples={"de-en": EXAMPLES}), torch.device("cpu"))


def test_losses_match_torchs_cross_entropy(taught):
    trace = taught.translate("Der kleine Hund schläft unter dem Tisch.", "de-en")
    batch = make_training_batch(taught, trace)
    assert batch.source.shape[0] == 3 and batch.real == (batch.outputs != taught.tokenizer.pad_id).sum()
    source, inputs, outputs = map(torch.as_tensor, (batch.source, batch.inputs, batch.outputs))
    with torch.inference_mode():
        logits = taught.model(source, inputs).logits
        assert tuple(logits.shape) == batch.logits
        for smoothing in (0.0, 0.1):
            kwargs = {"ignore_index": taught.tokenizer.pad_id, "label_smoothing": smoothing}
            whole = float(F.cross_entropy(logits.flatten(0, 1).double(), outputs.flatten(), **kwargs))
            assert batch.mean(smoothed=smoothing > 0) == pytest.approx(whole, abs=1e-6)
            trained = float(SummedLoss(taught.model, smoothing)(source, inputs, outputs)) / batch.real
            assert batch.mean(smoothed=smoothing > 0) == pytest.approx(trained, abs=1e-5)
    np.testing.assert_allclose(batch.losses[0, : len(trace.target_ids)], -np.asarray(trace.log_probability), atol=1e-5)


def test_outputs_are_the_inputs_shifted_by_one(taught):
    batch = make_training_batch(taught, taught.translate("Der kleine Hund schläft.", "de-en"))
    pad, end = taught.tokenizer.pad_id, taught.tokenizer.end_id
    for inputs, outputs, losses in zip(batch.inputs, batch.outputs, batch.losses):
        length = int((outputs != pad).sum())
        assert inputs[0] == taught.tokenizer.begin_id and outputs[length - 1] == end
        assert list(inputs[1:length]) == list(outputs[: length - 1])
        assert np.isfinite(losses[:length]).all() and np.isnan(losses[length:]).all()

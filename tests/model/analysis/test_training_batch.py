"""A training batch, against torch's own cross-entropy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis.training_batch import make_training_batch, min_smoothed_loss
from attention_atlas.model.checkpoint import Example
from attention_atlas.model.training.loss import SummedLoss
from attention_atlas.model.translator import Translator

EXAMPLES = (Example("Wir warten hier.", "We are waiting here."), Example("Ja.", ""), Example("Nein.", "No."))


@pytest.fixture(scope="module")
def taught(tiny_checkpoint) -> Translator:
    loaded = checkpoint.load(tiny_checkpoint)
    return Translator(replace(loaded, examples={"de-en": EXAMPLES}), torch.device("cpu"))


def test_the_loss_is_torchs_and_each_cells_share_of_it(taught):
    trace = taught.translate("Der kleine Hund schläft unter dem Tisch.", "de-en")
    found = make_training_batch(taught, trace)
    assert found.source.shape[0] == 3 and found.real == (found.outputs != taught.tokenizer.pad_id).sum()
    source, inputs, outputs = map(torch.as_tensor, (found.source, found.inputs, found.outputs))
    with torch.inference_mode():
        logits = taught.model(source, inputs).logits
        assert tuple(logits.shape) == found.logits
        for smoothing in (0.0, 0.1):
            kwargs = {"ignore_index": taught.tokenizer.pad_id, "label_smoothing": smoothing}
            whole = float(F.cross_entropy(logits.flatten(0, 1).double(), outputs.flatten(), **kwargs))
            assert found.mean(smoothed=smoothing > 0) == pytest.approx(whole, abs=1e-6)
            trained = float(SummedLoss(taught.model, smoothing)(source, inputs, outputs)) / found.real
            assert found.mean(smoothed=smoothing > 0) == pytest.approx(trained, abs=1e-5)
    np.testing.assert_allclose(found.losses[0, : len(trace.target_ids)], -np.asarray(trace.log_probability), atol=1e-5)


def test_the_decoder_reads_what_it_must_write_one_place_late(taught):
    found = make_training_batch(taught, taught.translate("Der kleine Hund schläft.", "de-en"))
    pad, end = taught.tokenizer.pad_id, taught.tokenizer.end_id
    for inputs, outputs, losses in zip(found.inputs, found.outputs, found.losses):
        length = int((outputs != pad).sum())
        assert inputs[0] == taught.tokenizer.begin_id and outputs[length - 1] == end
        assert list(inputs[1:length]) == list(outputs[: length - 1])
        assert np.isfinite(losses[:length]).all() and np.isnan(losses[length:]).all()


def test_the_least_loss_is_that_of_a_model_that_says_what_the_labels_say():
    label = torch.full((8000,), 0.1 / 8000, dtype=torch.float64)
    label[17] += 0.9
    found = F.cross_entropy(label.log()[None], torch.tensor([17]), label_smoothing=0.1)
    assert (
        min_smoothed_loss(8000) == pytest.approx(float(found), abs=1e-9) and round(min_smoothed_loss(8000), 2) == 1.22
    )

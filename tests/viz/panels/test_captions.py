"""Definitions that tutorials give differently: the panels state the ones that are computed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attention_atlas.model.analysis.formulas.kernels import truth
from attention_atlas.model.analysis.training_batch import make_training_batch
from attention_atlas.model.nets.positions import normalised_count_encoding, sinusoidal_encoding, tutorial_encoding
from attention_atlas.model.training.toy.run import ToyRun
from attention_atlas.model.training.toy.settings import ToySettings
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.words import for_page
from tests.viz.panels import panels


@pytest.fixture(scope="module")
def scene(tiny_translator) -> Scene:
    return Scene(tiny_translator.translate("Der kleine Hund schläft."), made_by=tiny_translator)


def panel_text(scene: Scene, name: str) -> str:
    """Return all that a panel shows when it opens, as JSON."""
    panel = panels.named(name)
    values = next(iter(panels.settings(panel, scene)))
    return json.dumps(for_page([panel.look, *panels.contents(panel, scene, *values)]), ensure_ascii=False)


def test_the_kernels_truth_is_the_first_editions(scene):
    x = np.linspace(0, 5, 50)
    expression = json.dumps("2 sin(x) + x^0.8")
    assert expression in panel_text(scene, "kernels")
    assert np.allclose(truth(x), eval(json.loads(expression).replace("2 sin", "2*np.sin").replace("^", "**")))


def test_position_codes_follow_the_stated_definitions():
    n, d = 7, 8
    at = torch.arange(n)
    assert normalised_count_encoding(at, d, length=n, base=1e4)[-1] == 1  # divided by n it would be (n − 1) / n
    paper, tutorial = sinusoidal_encoding(at, d), tutorial_encoding(at, d, length=n, base=1e4).float()
    for pair in range(d // 2):
        exponent = 2 * pair / d
        assert torch.allclose(paper[:, 2 * pair], (at / 1e4**exponent).sin(), atol=1e-5)
        assert torch.allclose(paper[:, 2 * pair + 1], (at / 1e4**exponent).cos(), atol=1e-5)
        assert torch.allclose(tutorial[:, 2 * pair], (at / 1e4 ** (2 * exponent)).sin(), atol=1e-5)  # twice as large
    assert torch.allclose(tutorial[:, 1], (at / 1e4 ** (2 / d)).cos(), atol=1e-5)  # its sine has exponent 0


def test_a_layer_norm_has_mean_0_and_variance_1_before_gain_and_bias(scene):
    record = scene.output.encoder_records[0].sublayers[0]
    normed = record.norm.centred(record.norm_input) * record.norm_scale[..., None]
    assert torch.allclose(normed.mean(-1), torch.zeros(1), atol=1e-5)
    assert torch.allclose(normed.var(-1, unbiased=False), torch.ones(1), atol=1e-3)
    with torch.inference_mode():
        whole = record.norm(record.norm_input)  # the gain and bias of this model are not 1 and 0
    assert not torch.allclose(whole.mean(-1), torch.zeros(1), atol=1e-3)


def test_the_loss_of_a_toys_batch_is_torchs_cross_entropy_with_ignore_index():
    run = ToyRun((("a b c", "c b a"), ("b", "b"), ("c a", "a c")), ToySettings(layers=1, heads=2, d_model=32, seed=3))
    toy = run.opened()
    trace = toy.translate("a b c")
    batch = make_training_batch(toy, trace)
    assert batch.source.shape[0] == 3  # the sentence, and two others of the corpus
    with torch.inference_mode():
        logits = toy.model(torch.as_tensor(batch.source), torch.as_tensor(batch.inputs)).logits
    outputs = torch.as_tensor(batch.outputs)
    whole = F.cross_entropy(logits.flatten(0, 1), outputs.flatten(), ignore_index=toy.tokenizer.pad_id)
    assert batch.mean() == pytest.approx(whole.item(), abs=1e-6)

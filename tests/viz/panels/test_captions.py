"""What the page says of definitions that tutorials give differently, held to what is computed."""

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


def said(scene: Scene, name: str) -> str:
    """All that a panel shows as it opens, and its own line."""
    panel = panels.named(name)
    values = next(iter(panels.settings(panel, scene)))
    return json.dumps(for_page([panel.look, *panels.contents(panel, scene, *values)]), ensure_ascii=False)


def test_the_kernels_truth_is_the_first_editions(scene):
    shown = said(scene, "kernels")
    assert "first edition" in shown and "10.2" in shown and "11.2" in shown
    x = np.linspace(0, 5, 50)
    expression = json.dumps("2 sin(x) + x^0.8")
    assert expression in shown
    assert np.allclose(truth(x), eval(json.loads(expression).replace("2 sin", "2*np.sin").replace("^", "**")))


def test_codes_are_defined_as_the_page_says(scene):
    shown = said(scene, "position-schemes")
    assert "divided by n − 1 here" in shown and "i counts pairs of" in shown
    n, d = 7, 8
    at = torch.arange(n)
    assert normalised_count_encoding(at, d, length=n, base=1e4)[-1] == 1  # by n it would be (n − 1) / n
    ours, theirs = sinusoidal_encoding(at, d), tutorial_encoding(at, d, length=n, base=1e4).float()
    for pair in range(d // 2):
        exponent = 2 * pair / d
        assert torch.allclose(ours[:, 2 * pair], (at / 1e4**exponent).sin(), atol=1e-5)
        assert torch.allclose(ours[:, 2 * pair + 1], (at / 1e4**exponent).cos(), atol=1e-5)
        assert torch.allclose(theirs[:, 2 * pair], (at / 1e4 ** (2 * exponent)).sin(), atol=1e-5)  # twice as large
    assert torch.allclose(theirs[:, 1], (at / 1e4 ** (2 / d)).cos(), atol=1e-5)  # its sine turns with exponent 0


def test_a_layer_norm_is_said_to_be_of_mean_0_and_variance_1_before_its_gain_and_bias(scene):
    assert "mean 0 and variance 1 before its gain and bias" in said(scene, "add-norm")
    record = scene.output.encoder_records[0].sublayers[0]
    normed = record.norm.centred(record.norm_input) * record.norm_scale[..., None]
    assert torch.allclose(normed.mean(-1), torch.zeros(1), atol=1e-5)
    assert torch.allclose(normed.var(-1, unbiased=False), torch.ones(1), atol=1e-3)
    with torch.inference_mode():
        whole = record.norm(record.norm_input)  # this model's gain and bias are none of 1 and 0
    assert not torch.allclose(whole.mean(-1), torch.zeros(1), atol=1e-3)


def test_d_ff_is_said_with_its_factor(scene):
    config = scene.translator.config
    shown = said(scene, "feed-forward")
    assert config.d_feedforward == 1.5 * config.d_model
    assert '"factor": "1.50"' in shown and "in the paper 4 ×, 2048 of 512" in shown


def test_multiplicative_scores_are_of_luongs_section_3_1(scene):
    found = said(scene, "scoring")
    assert found.count("Luong et al. 2015, section 3.1") == 2 == found.count("Luong")


def test_the_map_names_models_that_are_half_of_it(scene):
    shown = said(scene, "map")
    assert "BERT" in shown and "GPT" in shown


def test_a_batch_of_the_toys_corpus_is_seen_once_the_toy_is_opened(scene):
    """Its cells are torch's cross-entropy with ignore_index, too."""
    run = ToyRun((("a b c", "c b a"), ("b", "b"), ("c a", "a c")), ToySettings(layers=1, heads=2, d_model=32, seed=3))
    toy = run.opened()
    trace = toy.translate("a b c")
    found = make_training_batch(toy, trace)
    assert found.source.shape[0] == 3  # the sentence, and two others of the corpus
    with torch.inference_mode():
        logits = toy.model(torch.as_tensor(found.source), torch.as_tensor(found.inputs)).logits
    outputs = torch.as_tensor(found.outputs)
    whole = F.cross_entropy(logits.flatten(0, 1), outputs.flatten(), ignore_index=toy.tokenizer.pad_id)
    assert found.mean() == pytest.approx(whole.item(), abs=1e-6)
    assert "pairs of the toy's own corpus" in said(Scene(trace, made_by=toy), "batch")
    assert "open the toy in the other tabs" in said(scene, "batch")

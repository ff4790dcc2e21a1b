"""A direction is a difference of means, and what it steers is an edit; the panel and its link say the same."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.steering import compute_steering_vector, translate_with_vector
from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.edits import Add, SteeringVector
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.storage import from_json, to_json
from attention_atlas.viz.panels.inside import steer
from attention_atlas.viz.panels.scene import Scene, Selection
from tests.conftest import SENTENCES

TEXT, TOWARDS, AWAY = SENTENCES[0], "Ein Boot.", "Zwei Hunde schlafen."
PLACE = "encoder.1.resid_post"


def mean_of(translator, text: str) -> np.ndarray:
    """From a pass of this text alone."""
    trace = translator.translate(text)
    record = translator.inspect(trace).encoder_records[1]
    return record.after[0].double().mean(0).numpy()


def test_a_direction_is_the_difference_of_two_means(tiny_translator):
    vector = compute_steering_vector(tiny_translator, TOWARDS, AWAY, place=PLACE)
    expected = mean_of(tiny_translator, TOWARDS) - mean_of(tiny_translator, AWAY)
    np.testing.assert_allclose(vector, expected, atol=1e-5)
    opposite = compute_steering_vector(tiny_translator, AWAY, TOWARDS, place=PLACE)
    np.testing.assert_allclose(opposite, -expected, atol=1e-5)
    written = compute_steering_vector(tiny_translator, TOWARDS, AWAY, place="decoder.0.resid_post")
    assert written.shape == vector.shape and not np.allclose(written, vector)
    with pytest.raises(Refusal, match="the same"):
        compute_steering_vector(tiny_translator, TOWARDS, f" {TOWARDS}", place=PLACE)
    with pytest.raises(ValueError, match="heads or keys of its own"):
        compute_steering_vector(tiny_translator, TOWARDS, AWAY, place="encoder.0.self.z")


def test_a_recipe_is_its_direction_wherever_interventions_go(tiny_translator):
    vector = compute_steering_vector(tiny_translator, TOWARDS, AWAY, place=PLACE)
    expected = tiny_translator.translate(TEXT, interventions=Interventions(edits={PLACE: Add(vector, 3.0)}))
    request = {"edits": [{"place": PLACE, "kind": "add", "strength": 3.0, "value": {"towards": TOWARDS, "away": AWAY}}]}
    changes = interventions_file.from_plain(request)
    assert changes == Interventions(edits={PLACE: Add(SteeringVector(TOWARDS, AWAY), 3.0)})
    trace = tiny_translator.translate(TEXT, interventions=changes)
    np.testing.assert_array_equal(trace.log_probability, expected.log_probability)
    with tiny_translator.edit({PLACE: Add(SteeringVector(TOWARDS, AWAY), 3.0)}) as edited:
        assert edited.translate(TEXT).target_ids == expected.target_ids
        assert edited.translate_batch([TEXT]) == [expected.translation]
    read = from_json(to_json(trace)).interventions
    assert read == trace.interventions and read.edits[0][1].value.towards == TOWARDS
    np.testing.assert_array_equal(read.edits[0][1].value.array, vector)
    assert TOWARDS in read.describe()
    with pytest.raises(ValueError, match="only its texts"):  # the network itself has no texts
        tiny_translator.model(*map(torch.tensor, ([[4, 5]], [[1, 2]])), interventions=changes)
    with pytest.raises(Refusal, match="the same"):
        tiny_translator.translate(TEXT, interventions=Interventions(edits={PLACE: Add(SteeringVector(AWAY, AWAY))}))
    for wrong in ({"towards": TOWARDS}, {"towards": 1, "away": "x"}, {"towards": "x", "away": "y", "more": "z"}):
        request["edits"][0]["value"] = wrong
        with pytest.raises(ValueError, match=r"steering vector|cannot be read"):
            interventions_file.from_plain(request)


def test_recipes_share_one_batch_and_its_size_is_limited(tiny_translator, monkeypatch):
    batches = []
    plain_run = type(tiny_translator).run

    def run(translator, texts, *rest, **options):
        batches.append(tuple(texts))
        return plain_run(translator, texts, *rest, **options)

    monkeypatch.setattr(type(tiny_translator), "run", run)
    third = "Ein Mann liest."
    recipes = {
        "encoder.1.resid_post": SteeringVector(TOWARDS, AWAY),
        "encoder.0.resid_post": SteeringVector(third, AWAY),
        "decoder.1.resid_post": SteeringVector(TOWARDS, third),
    }
    changes = Interventions(edits={place: Add(recipe) for place, recipe in recipes.items()})
    edits = tiny_translator.translate(TEXT, interventions=changes).interventions.edits
    assert [set(batch) for batch in batches] == [{TOWARDS, AWAY, third}]
    for place, edit in edits:
        expected = compute_steering_vector(tiny_translator, recipes[place].towards, recipes[place].away, place=place)
        np.testing.assert_allclose(edit.value.array, expected, atol=1e-5)
    batches.clear()
    texts = [f"{number} {'Hunde ' * (tiny_translator.max_tokens // 4)}" for number in range(9)]
    many = {PLACE: Add(SteeringVector(texts[0], texts[1]))} | {
        f"encoder.{layer}.{place}": Add(SteeringVector(texts[0], texts[2 + 2 * layer + n]))
        for layer in (0, 1, 2)
        for n, place in enumerate(("resid_pre", "resid_mid"))
    }
    with pytest.raises(Refusal, match="together the limit is"):
        tiny_translator.translate(TEXT, interventions=Interventions(edits=many))
    assert not batches
    edit_request = {"place": PLACE, "kind": "add", "strength": 1.0, "value": {"towards": TOWARDS, "away": AWAY}}
    interventions_file.from_request({"edits": [edit_request] * 16})
    with pytest.raises(ValueError, match="at most 16 at once"):
        interventions_file.from_request({"edits": [edit_request] * 17})


def test_the_panel_steers_as_python_does_and_its_link_is_its_recipe(tiny_translator):
    trace = tiny_translator.translate(TEXT)
    added = Add(compute_steering_vector(tiny_translator, TOWARDS, AWAY, place=PLACE), 3.0)
    with tiny_translator.edit({PLACE: added}) as edited:
        expected = edited.translate(TEXT)
    steered = translate_with_vector(tiny_translator, trace, PLACE, added)
    assert steered.target_ids == expected.target_ids != trace.target_ids
    assert steered.interventions == Interventions(edits=((PLACE, added),))
    scene = Scene(trace, Selection(), tiny_translator)
    cards, facts, action, link = steer.PANEL.compute(scene, TOWARDS, AWAY, 2, 300)
    assert cards["items"][1][1] == expected.translation
    assert float(facts["items"][0][1]) == pytest.approx(3 * np.linalg.norm(added.value.array), rel=1e-2)
    assert steer.PANEL.translate(scene, action["data"]).target_ids == expected.target_ids
    names = {control.name for control in steer.PANEL.controls}
    assert names < set(link["fields"]) and link["fields"]["panel"] == steer.PANEL.name
    assert len(json.dumps(link)) < 1000, "the recipe, not the vector"
    nothing = steer.PANEL.compute(scene, TOWARDS, AWAY, 2, 0)
    assert nothing[0]["items"][1][1] == trace.translation
    for typed in (("", AWAY), (TOWARDS, "")):
        (asked,) = steer.PANEL.compute(scene, *typed, 2, 300)
        assert asked["text"].startswith("Type two sentences")

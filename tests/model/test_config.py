"""Configs refuse invalid values and name the field."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise

import pytest

from attention_atlas.model.config import Activation, ModelConfig, from_json
from attention_atlas.model.training.config import TrainConfig


@pytest.mark.parametrize(
    "field, value",
    [
        ("vocabulary_size", 0),
        ("d_model", 10**9),
        ("num_heads", 3),
        ("num_encoder_layers", True),
        ("num_decoder_layers", 2.0),
        ("d_feedforward", "1024"),
        ("dropout", 1.0),
        ("attention_dropout", -0.1),
        ("norm_first", 1),
        ("max_length", None),
        ("position_base", 1.0),
        ("pad_id", 100),
        ("d_model", 20 + 1),
        ("activation", "tanh"),
        ("activation", None),
        ("position_code", "rotary"),
        ("position_offset", -1),
        ("norm_embedding", 1),
        ("scale_embedding", None),
        ("shared_embeddings", "yes"),
        ("tied_output", 0),
        ("logits_bias", 2),
        ("target_vocabulary_size", 90),
        ("target_vocabulary_size", 0),
        ("banned_ids", (100,)),
        ("banned_ids", 3),
    ],
)
def test_model_sizes_are_checked(field, value):
    with pytest.raises(ValueError, match=field):
        ModelConfig(**{"vocabulary_size": 100, "num_heads": 4, "d_model": 32, **{field: value}})


@pytest.mark.parametrize(
    "field, value",
    [
        ("max_updates", 0),
        ("tokens_per_batch", -1),
        ("learning_rate", 0),
        ("warmup_updates", -1),
        ("cooldown_updates", 11),
        ("label_smoothing", 1.0),
        ("clip_norm", 0.0),
        ("average_decay", 1.5),
        ("save_every", 0),
        ("seed", -1),
        ("directions", ()),
    ],
)
def test_training_settings_are_checked(field, value):
    with pytest.raises(ValueError, match=field):
        TrainConfig(**{"max_updates": 10, "cooldown_updates": 2, field: value})


def test_configs_round_trip_through_json():
    model = ModelConfig(
        100,
        norm_first=False,
        activation=Activation.GELU,
        shared_embeddings=False,
        target_vocabulary_size=90,
        banned_ids=(3, 89),
    )
    train = TrainConfig(directions=("de-en", "en-de"), repeats=(("a", 2),))
    assert from_json(ModelConfig, json.loads(json.dumps(asdict(model)))) == model
    values = asdict(train) | {"directions": ["de-en", "en-de"], "repeats": [["a", 2]]}  # as JSON has it
    assert from_json(TrainConfig, values) == train


@pytest.mark.parametrize(
    "values, message",
    [({"vocabulary_size": 9, "layers": 3}, "argument 'layers'"), ({}, "'vocabulary_size'"), ([], "object")],
)
def test_unknown_and_missing_fields_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        from_json(ModelConfig, values)


def test_learning_rate_warms_up_decays_and_cools_down():
    config = TrainConfig(learning_rate=1e-3, warmup_updates=100, max_updates=1000, cooldown_updates=200)
    rates = [config.learning_rate_at(update) for update in range(1, 1001)]
    assert rates[49] == pytest.approx(0.5e-3)
    assert max(rates) == rates[99] == pytest.approx(1e-3)
    assert rates[399] == pytest.approx(0.5e-3)  # sqrt(100 / 400)
    assert all(a > b > 0 for a, b in pairwise(rates[100:]))
    assert rates[-1] < 1e-5
    constant = TrainConfig(learning_rate=1e-4, warmup_updates=0, max_updates=1000, cooldown_updates=0)
    assert {constant.learning_rate_at(update) for update in range(1, 1001)} == {1e-4}
    longer = TrainConfig(learning_rate=1e-3, warmup_updates=100, max_updates=5000, cooldown_updates=200)
    assert [longer.learning_rate_at(u) for u in range(1, 800)] == rates[:799]  # a run may be prolonged

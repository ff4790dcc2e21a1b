"""The shipped checkpoints: small, complete, and able to translate what their cards show."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from attention_atlas.model.analysis.why import faithfulness
from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.faithfulness import section
from attention_atlas.model.trace.kinds import AttentionKind

ACCEPTED = {
    "Ich möchte ein Bier, bitte.": {
        "I'd like a beer, please.",
        "I would like a beer, please.",
        "I want a beer, please.",
        "A beer, please.",
    },
    "Wo ist der Bahnhof?": {
        "Where is the train station?",
        "Where's the train station?",
        "Where is the station?",
        "Where's the station?",
        "Where is the railway station?",
    },
    "Kannst du mir helfen?": {"Can you help me?", "Could you help me?", "Can you help me out?"},
    "Gestern hat es den ganzen Tag geregnet.": {
        "It rained all day yesterday.",
        "Yesterday it rained all day.",
        "It rained the whole day yesterday.",
        "It was raining all day yesterday.",
        "Yesterday, it rained all day.",
        "Yesterday it was raining all day.",
        "Yesterday it rained the whole day.",
        "It's been raining all day yesterday.",
    },
}
# BLEU on the test sets, (checkpoint, direction, data, beam, protocol) -> the least. No protocol: plain sacreBLEU.
FLOORS = {
    ("de-en", "de-en", "multi30k", 1, None): 36.0,
    ("de-en", "de-en", "tatoeba", 1, None): 32.0,
    # The second run was to bring 2 BLEU over the first, which had 40.07 and 46.59.
    ("de-en", "de-en", "multi30k", 5, None): 42.07,
    ("de-en", "de-en", "tatoeba", 5, None): 48.59,
    ("en-de-fr", "en-de", "multi30k", 5, "wu2021"): 37.0,
    ("en-de-fr", "en-fr", "multi30k", 5, "wu2021"): 56.0,
    ("gru-de-en", "de-en", "multi30k", 1, None): 33.0,
    ("gru-de-en", "de-en", "tatoeba", 5, None): 33.0,
}
RECURRENT = "gru-de-en"
FILES = {
    "model.safetensors",
    "config.json",
    "tokenizer.model",
    "metrics.json",
    "metrics.jsonl",
    "README.md",
    "examples.json",
    "history.npz",
}


@pytest.mark.parametrize("sentence", ACCEPTED)
def test_everyday_sentences_are_translated(shipped_translators, sentence):
    assert shipped_translators["de-en"].translate(sentence, "de-en").translation in ACCEPTED[sentence]


def test_every_direction_has_examples_with_references(shipped_translators):
    for route in shipped_translators.routes:
        examples = shipped_translators[route.label].examples[route.direction]
        assert examples and all(example.text and example.reference for example in examples)


def test_every_direction_is_offered_once_by_a_transformer(shipped_translators):
    assert list(shipped_translators) == ["de-en", "en-de", "en-fr", f"de-en ({RECURRENT})"]


def test_folders_are_complete_and_light(shipped_checkpoints):
    folders = [path.parent for path in shipped_checkpoints.glob("*/config.json")]
    for folder in folders:
        assert {path.name for path in folder.iterdir()} >= FILES
    sizes = {folder.name: (folder / "model.safetensors").stat().st_size for folder in folders}
    assert sizes.pop(RECURRENT) <= 6e6 and max(sizes.values()) <= 30e6 and sum(sizes.values()) <= 40e6


def test_a_recurrent_one_stands_beside_them_with_its_alignment(shipped_translators):
    translator = shipped_translators[f"de-en ({RECURRENT})"]
    for sentence in ("Wo ist der Bahnhof?", "Kannst du mir helfen?"):
        trace = translator.translate(sentence)
        assert trace.kinds == (AttentionKind.ALIGNMENT,) and trace.translation in ACCEPTED[sentence]


def test_has_enough_heads_to_look_at(shipped_transformers):
    for translator in shipped_transformers:
        config = translator.config
        assert config.num_encoder_layers >= 4 and config.num_decoder_layers >= 4 and config.num_heads == 8


@pytest.mark.parametrize("score", FLOORS)
def test_recorded_scores_reach_the_floors(shipped_checkpoints, score):
    name, *which = score
    found = [
        s["bleu"]
        for s in recorded(shipped_checkpoints / name)
        if s["split"] == "test" and which == [s["direction"], s["data"], s["beam"], s.get("protocol")]
    ]
    assert found and found[0] >= FLOORS[score]


def test_cards_quote_the_recorded_scores(shipped_checkpoints):
    for folder in (path.parent for path in shipped_checkpoints.glob("*/config.json")):
        card = (folder / "README.md").read_text(encoding="utf-8")
        for score in recorded(folder):
            assert f"{score['bleu']:.2f}" in card and score["bleu_signature"] in card


def test_what_training_recorded_is_small_and_covers_the_run(shipped_checkpoints):
    for path in shipped_checkpoints.glob("*/history.npz"):
        assert path.stat().st_size <= 1.5e6
        with np.load(path, allow_pickle=False) as file:
            updates, losses = file["updates"], file["loss"]
        assert len(updates) >= 15 and (np.diff(updates) > 0).all() and losses.shape == (len(updates), 6)


def test_cards_have_the_table_of_what_to_believe_as_it_stands(shipped_checkpoints):
    for path in shipped_checkpoints.glob(f"*/{faithfulness.FILE}"):
        found = faithfulness.load_faithfulness(path.parent)
        assert section(found) in (path.parent / "README.md").read_text(encoding="utf-8")
        assert {one.method for one in found.methods} == set(METHODS) and found.sentences >= 50


def recorded(folder: Path) -> list[dict]:
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["scores"]

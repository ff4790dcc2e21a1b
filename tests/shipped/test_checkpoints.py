"""The shipped checkpoints are complete and small, translate everyday sentences, and reach their recorded scores."""

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
# The lowest accepted BLEU on the test sets. Protocol None is plain sacreBLEU.
FLOORS = {  # (checkpoint, direction, data, beam, protocol)
    ("de-en", "de-en", "multi30k", 1, None): 36.0,
    ("de-en", "de-en", "tatoeba", 1, None): 32.0,
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


def test_each_direction_has_one_transformer_and_one_recurrent_network_is_listed_last(shipped_translators):
    assert list(shipped_translators) == ["de-en", "en-de", "en-fr", f"de-en ({RECURRENT})"]


def test_checkpoint_folders_are_complete_and_small(shipped_checkpoints):
    folders = [path.parent for path in shipped_checkpoints.glob("*/config.json")]
    for folder in folders:
        assert {path.name for path in folder.iterdir()} >= FILES
    sizes = {folder.name: (folder / "model.safetensors").stat().st_size for folder in folders}
    assert sizes.pop(RECURRENT) <= 6e6 and max(sizes.values()) <= 30e6 and sum(sizes.values()) <= 40e6


def test_the_recurrent_network_translates_and_has_an_alignment(shipped_translators):
    translator = shipped_translators[f"de-en ({RECURRENT})"]
    for sentence in ("Wo ist der Bahnhof?", "Kannst du mir helfen?"):
        trace = translator.translate(sentence)
        assert trace.kinds == (AttentionKind.ALIGNMENT,) and trace.translation in ACCEPTED[sentence]


def test_transformers_have_four_layers_and_eight_heads(shipped_transformers):
    for translator in shipped_transformers:
        config = translator.config
        assert config.num_encoder_layers >= 4 and config.num_decoder_layers >= 4 and config.num_heads == 8


@pytest.mark.parametrize("score", FLOORS)
def test_recorded_scores_reach_the_floors(shipped_checkpoints, score):
    name, *key = score
    bleu = [
        s["bleu"]
        for s in recorded(shipped_checkpoints / name)
        if s["split"] == "test" and key == [s["direction"], s["data"], s["beam"], s.get("protocol")]
    ]
    assert bleu and bleu[0] >= FLOORS[score]


def test_cards_quote_the_recorded_scores(shipped_checkpoints):
    for folder in (path.parent for path in shipped_checkpoints.glob("*/config.json")):
        card = (folder / "README.md").read_text(encoding="utf-8")
        for score in recorded(folder):
            assert f"{score['bleu']:.2f}" in card and score["bleu_signature"] in card


def test_the_recorded_history_is_small_and_covers_the_run(shipped_checkpoints):
    for path in shipped_checkpoints.glob("*/history.npz"):
        assert path.stat().st_size <= 1.5e6
        with np.load(path, allow_pickle=False) as file:
            updates, losses = file["updates"], file["loss"]
        assert len(updates) >= 15 and (np.diff(updates) > 0).all() and losses.shape == (len(updates), 6)


def test_cards_have_the_table_of_measured_faithfulness(shipped_checkpoints):
    for path in shipped_checkpoints.glob(f"*/{faithfulness.FILE}"):
        results = faithfulness.load_faithfulness(path.parent)
        assert section(results) in (path.parent / "README.md").read_text(encoding="utf-8")
        assert {result.method for result in results.methods} == set(METHODS) and results.sentences >= 50


def recorded(folder: Path) -> list[dict]:
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["scores"]

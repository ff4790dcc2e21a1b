"""The shipped checkpoint: small, complete, and able to translate what its card shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from model.translator import Translator

ACCEPTED = {
    "Ich möchte ein Bier, bitte.": {
        "I'd like a beer, please.", "I would like a beer, please.", "I want a beer, please.", "A beer, please."},
    "Wo ist der Bahnhof?": {"Where is the train station?", "Where's the train station?", "Where is the station?",
                            "Where's the station?", "Where is the railway station?"},
    "Kannst du mir helfen?": {"Can you help me?", "Could you help me?", "Can you help me out?"},
    "Gestern hat es den ganzen Tag geregnet.": {
        "It rained all day yesterday.", "Yesterday it rained all day.", "It rained the whole day yesterday.",
        "It was raining all day yesterday.", "Yesterday, it rained all day.", "Yesterday it was raining all day.",
        "Yesterday it rained the whole day.", "It's been raining all day yesterday."},
}
FLOORS = {("multi30k", "test"): 36.0, ("tatoeba", "test"): 32.0}  # greedy sacreBLEU, German to English


@pytest.fixture(scope="module")
def folder(shipped_checkpoints: Path) -> Path:
    return shipped_checkpoints / "de-en"


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder, device="cpu")


@pytest.mark.parametrize("sentence", ACCEPTED)
def test_everyday_sentences_are_translated(translator, sentence):
    assert translator.translate(sentence).translation in ACCEPTED[sentence]


def test_folder_is_complete_and_light(folder):
    assert {"model.safetensors", "config.json", "tokenizer.model", "metrics.json", "metrics.jsonl", "README.md"} <= {
        path.name for path in folder.iterdir()}
    assert (folder / "model.safetensors").stat().st_size <= 30e6


def test_has_enough_heads_to_look_at(translator):
    config = translator.config
    assert config.num_encoder_layers >= 4 and config.num_decoder_layers >= 4 and config.num_heads == 8


def test_recorded_scores_reach_the_floors(folder):
    scores = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["scores"]
    for (data, split), floor in FLOORS.items():
        found = [s["bleu"] for s in scores if "protocol" not in s
                 and (s["data"], s["split"], s["beam"]) == (data, split, 1)]
        assert found and found[0] >= floor


def test_card_quotes_the_recorded_scores(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    for score in json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["scores"]:
        assert f"{score['bleu']:.2f}" in card and score["bleu_signature"] in card

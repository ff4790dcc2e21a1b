"""python -m bench.own: its folders open, what it says a step reads is what it reads, and its report is complete."""

from __future__ import annotations

import json

import pytest
import torch

from attention_atlas.model.translator import Translator
from bench import own
from bench.made import shapes


@pytest.mark.long
def test_the_report_is_complete_and_its_ratios_are_its_own(tmp_path):
    pytest.importorskip("transformers")
    out, threads = tmp_path / "found.json", torch.get_num_threads()
    try:
        own.main(["--shapes", "tiny", "--repeats", "1", "--starts", "1", "--threads", "1", "--json", str(out)])
    finally:
        torch.set_num_threads(threads)
    found = {m["name"]: m["value"] for m in json.loads(out.read_text())}
    assert found.keys() >= {
        f"tiny_{way}_{what}"
        for way in ("converted", "direct", "old_pickle")
        for what in ("opening_to_first_translation", "anonymous_memory", "anonymous_by_weights")
    } | {"tiny_step", "tiny_step_by_roofline", "tiny_conversion", "processor"}
    # Random weights never end: the one that may have no more tokens than its source is measured beside the other.
    assert 0 < found["tiny_of_that_number_of_steps"] < found["tiny_endless_number_of_steps"]
    parts = ("opening", "encoder", "steps", "maps_and_trace")
    assert sum(found[f"tiny_of_that_{part}"] for part in parts) <= found["tiny_converted_opening_to_first_translation"]
    assert found["tiny_translate_maps_ratio"] == pytest.approx(
        found["tiny_translate_maps_theirs_1"] / found["tiny_translate_maps_ours"]
    )
    assert found["tiny_bandwidth"] > 0 and found["tiny_conversion"] > 0


def test_the_weights_of_a_step_are_counted_one_by_one(tmp_path):
    pytest.importorskip("transformers")
    translator = Translator.load(shapes.write(shapes.random_model("tiny"), tmp_path / "opus-mt-de-en"), "cpu")
    config = shapes.SHAPES["tiny"]
    d, layers, wide = config.d_model, config.num_decoder_layers, config.d_feedforward
    layer = (3 * d * d + 3 * d) + (d * d + d) + (d * d + d) + (d * d + d) + (2 * d * wide + wide + d) + 3 * 2 * d
    assert own.weights_read(translator) == 4 * (layers * layer + (d + 1) * config.vocabulary_size)
    assert translator.directions == ("de-en",) and translator.translate("Der kleine Hund.").target_ids


def test_so_are_those_of_t5_which_has_no_biases(tmp_path):
    pytest.importorskip("transformers")
    translator = Translator.load(shapes.write(shapes.random_model("t5-tiny"), tmp_path / "t5"), "cpu")
    config = shapes.SHAPES["t5-tiny"]
    d, layers, wide = config.d_model, config.num_decoder_layers, config.d_feedforward
    layer = 3 * d * d + d * d + d * d + d * d + 2 * d * wide + 3 * d
    once = d + translator.config.position_buckets * config.num_heads  # the last norm, the table of positions
    assert own.weights_read(translator) == 4 * (layers * layer + once + config.vocabulary_size * d)
    assert not set(translator.encode("Hund")) & {2} and translator.translate("Der kleine Hund.").target_ids

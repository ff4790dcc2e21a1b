"""python -m bench.own: its folders open, the weights that a step reads are counted, and its report is complete."""

from __future__ import annotations

import json

import pytest
import torch

from attention_atlas.model.translator import Translator
from bench import own
from bench.made import shapes


@pytest.mark.long
def test_the_report_is_complete_and_its_ratios_follow_from_its_times(tmp_path):
    pytest.importorskip("transformers")
    out, threads = tmp_path / "found.json", torch.get_num_threads()
    try:
        own.main(["--shapes", "tiny", "--repeats", "1", "--starts", "1", "--threads", "1", "--json", str(out)])
    finally:
        torch.set_num_threads(threads)
    values = {m["name"]: m["value"] for m in json.loads(out.read_text())}
    assert values.keys() >= {
        f"tiny_{folder}_{quantity}"
        for folder in ("converted", "direct", "old_pickle")
        for quantity in ("opening_to_first_translation", "anonymous_memory", "anonymous_by_weights")
    } | {"tiny_step", "tiny_step_by_roofline", "tiny_conversion", "processor"}
    # Random weights never end a sentence, so one translation is limited to the length of its source.
    assert 0 < values["tiny_of_that_number_of_steps"] < values["tiny_endless_number_of_steps"]
    parts = ("opening", "encoder", "steps", "maps_and_trace")
    whole = values["tiny_converted_opening_to_first_translation"]
    assert sum(values[f"tiny_of_that_{part}"] for part in parts) <= whole
    assert values["tiny_translate_maps_ratio"] == pytest.approx(
        values["tiny_translate_maps_theirs_1"] / values["tiny_translate_maps_ours"]
    )
    assert values["tiny_bandwidth"] > 0 and values["tiny_conversion"] > 0


def test_the_weights_of_a_step_are_counted_one_by_one(tmp_path):
    pytest.importorskip("transformers")
    translator = Translator.load(shapes.write(shapes.random_model("tiny"), tmp_path / "opus-mt-de-en"), "cpu")
    config = shapes.SHAPES["tiny"]
    d, layers, wide = config.d_model, config.num_decoder_layers, config.d_feedforward
    layer = (3 * d * d + 3 * d) + (d * d + d) + (d * d + d) + (d * d + d) + (2 * d * wide + wide + d) + 3 * 2 * d
    assert own.weights_read(translator) == 4 * (layers * layer + (d + 1) * config.vocabulary_size)
    assert translator.directions == ("de-en",) and translator.translate("Der kleine Hund.").target_ids


def test_the_weights_of_a_step_of_t5_which_has_no_biases_are_counted(tmp_path):
    pytest.importorskip("transformers")
    translator = Translator.load(shapes.write(shapes.random_model("t5-tiny"), tmp_path / "t5"), "cpu")
    config = shapes.SHAPES["t5-tiny"]
    d, layers, wide = config.d_model, config.num_decoder_layers, config.d_feedforward
    layer = 3 * d * d + d * d + d * d + d * d + 2 * d * wide + 3 * d
    once = d + translator.config.position_buckets * config.num_heads  # the last norm, the table of positions
    assert own.weights_read(translator) == 4 * (layers * layer + once + config.vocabulary_size * d)
    assert not set(translator.encode("Hund")) & {2} and translator.translate("Der kleine Hund.").target_ids

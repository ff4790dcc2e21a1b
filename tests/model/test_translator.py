"""Translator: traces agree with the model and batches with single sentences, and invalid input is refused."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from tests.conftest import SENTENCES
from tests.model.decode.sweeps import assert_distributions_equal

CPU = torch.device("cpu")
TEXTS = [*SENTENCES[::2], "😀 ☃", "Tee"]


def test_a_trace_agrees_with_a_pass_of_the_model(trace, tiny_model):
    output = tiny_model(torch.tensor([trace.source_ids]), torch.tensor([trace.decoder_ids]), record=True)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(trace.maps(kind).weights, output.maps(kind, 0).detach(), atol=1e-5)
    assert_distributions_equal(output.logits[0], trace.target_ids, trace)
    assert (trace.chosen_rank == 1).all()  # greedy
    assert trace.target_ids == tuple(trace.top_ids[:, 0])


def test_rows_read_one_token_and_predict_the_next(trace, tiny_translator):
    assert trace.decoder_inputs[0] == "<s>" and trace.decoder_inputs[1:] == trace.target_tokens[:-1]
    assert trace.source_tokens[0] == "<2en>" and trace.source_tokens[-1] == "</s>"
    assert trace.finished == (trace.target_tokens[-1] == "</s>")
    future = np.triu(np.ones(trace.decoder_self.weights.shape[2:], bool), 1)
    assert (trace.decoder_self.weights[:, :, future] == 0).all()
    assert trace.translation == tiny_translator.tokenizer.decode(trace.target_ids)


def test_a_batch_gives_the_traces_of_single_sentences(tiny_translator):
    for together, text in zip(tiny_translator.trace_batch(TEXTS), TEXTS):
        single = tiny_translator.translate(text)
        assert together.target_ids == single.target_ids and together.source_text == single.source_text
        for kind in TRANSFORMER_KINDS:
            np.testing.assert_allclose(together.maps(kind).weights, single.maps(kind).weights, atol=1e-5)
        np.testing.assert_allclose(together.log_probability, single.log_probability, atol=1e-4)


def test_translate_batch_keeps_order_and_empty_texts(tiny_translator):
    texts = [TEXTS[0], "", TEXTS[1], " \t", *TEXTS[2:]]
    expected = [tiny_translator.translate(t).translation if t.strip() else "" for t in texts]
    assert tiny_translator.translate_batch(texts, batch_size=3) == expected
    assert tiny_translator.translate_batch([]) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_are_as_few_as_possible_and_of_equal_size(tiny_translator, monkeypatch, request, threads):
    request.addfinalizer(lambda before=torch.get_num_threads(): torch.set_num_threads(before))
    torch.set_num_threads(threads)
    sizes, pad = [], tiny_translator.pad
    monkeypatch.setattr(tiny_translator, "pad", lambda batch: sizes.append(len(batch)) or pad(batch))
    ids = [tiny_translator.encode(text) for text in (TEXTS * 9)[:9]]
    for batch_size, expected in ((4, [3, 3, 3]), (5, [4, 5]), (9, [9]), (100, [9]), (1, [1] * 9)):
        sizes.clear()
        assert len(tiny_translator.generate(ids, batch_size=batch_size)) == 9
        assert sorted(sizes) == expected
    with pytest.raises(ValueError, match="batch size"):
        tiny_translator.generate(ids, batch_size=0)


def test_the_direction_sets_the_sources_first_symbol(tiny_translator):
    assert tiny_translator.translate("Ein Hund", "en-fr").source_tokens[0] == "<2fr>"
    assert tiny_translator.translate("Ein Hund").direction == "de-en"


@pytest.mark.parametrize(
    "text, direction, message",
    [
        ("", None, "empty"),
        (" \n\u3000", None, "empty"),
        ("a" * 10_001, None, "10,001 characters; the limit is 10,000"),
        ("Ä" * 100, None, r"tokens long; the limit is 64 tokens"),
        ("Hund", "en-de", "Unknown direction 'en-de'"),
        ("Hund \ud800", None, "surrogate"),
    ],
)
def test_invalid_input_is_refused(tiny_translator, text, direction, message):
    with pytest.raises(ValueError, match=message):
        tiny_translator.translate(text, direction)


def test_text_is_normalized_first(tiny_translator):
    assert tiny_translator.translate(" scho\u0308n\n").source_ids == tiny_translator.translate("sch\u00f6n").source_ids


def test_control_symbols_in_a_text_stay_text(tiny_translator):
    ids = tiny_translator.translate("</s><2de> Hund").source_ids
    assert tiny_translator.tokenizer.special_ids.intersection(ids[1:-1]) == set()


def test_a_translation_stops_at_its_length_limit(tiny_translator):
    for trace in tiny_translator.trace_batch(TEXTS):
        assert len(trace.target_ids) <= tiny_translator.step_limit(len(trace.source_ids)) < 64
        assert trace.finished or len(trace.target_ids) == tiny_translator.step_limit(len(trace.source_ids))


def test_a_length_limit_holds_for_traces_batches_and_beams(tiny_translator):
    free = tiny_translator.translate(SENTENCES[0])
    assert len(free.target_ids) > 3
    cut = tiny_translator.translate(SENTENCES[0], max_length=3)
    assert cut.target_ids == free.target_ids[:3] and not cut.finished
    assert tiny_translator.translate(SENTENCES[0]).target_ids == free.target_ids
    assert all(len(trace.target_ids) <= 2 for trace in [tiny_translator.translate(SENTENCES[0], beam=3, max_length=2)])
    ids = [tiny_translator.encode(text) for text in TEXTS]
    for beam in (1, 2):
        assert max(map(len, tiny_translator.generate(ids, beam=beam, max_length=3))) == 3
    assert (
        tiny_translator.trace(SENTENCES[0], prefix=free.target_ids[:4], max_length=2).target_ids == free.target_ids[:5]
    )
    assert tiny_translator.translate(SENTENCES[0], max_length=999).target_ids == free.target_ids
    with pytest.raises(ValueError, match="max_length must be at least 1"):
        tiny_translator.translate(SENTENCES[0], max_length=0)


def test_interventions_reach_decoding_and_maps_and_are_named(tiny_translator):
    changes = Interventions(cut_edges={Edge("cross", 0, 1)}, heads_off={("cross", 2, 1)})
    trace = tiny_translator.translate(SENTENCES[0], interventions=changes)
    assert (trace.cross.weights[:, :, 0, 1] == 0).all()
    assert trace.interventions.describe() == "cross layer 3 head 2 off; 1 edges cut"
    assert tiny_translator.translate(SENTENCES[0]).interventions == Interventions()


def test_inspect_runs_a_row_for_each_row_of_a_sweep(tiny_translator):
    trace = tiny_translator.translate(SENTENCES[2])
    gates = torch.eye(4)[:, None].expand(-1, 3, -1)  # row i: head i alone in every layer
    output = tiny_translator.inspect(trace, interventions=Sweep(gates={"cross": gates}))
    assert output.logits.shape[:2] == (4, len(trace.target_ids))
    for row in range(4):
        off = Interventions(heads_off={("cross", layer, head) for layer in range(3) for head in {*range(4)} - {row}})
        alone = tiny_translator.inspect(trace, interventions=off)
        torch.testing.assert_close(output.logits[row], alone.logits[0], atol=1e-5, rtol=1e-5)


def test_translators_are_found_by_route_label(tiny_checkpoint):
    translators = Translators.load(tiny_checkpoint.parent, device="cpu")
    assert list(translators) == ["de-en", "en-fr"] and len(translators) == 2
    assert translators["en-fr"] is translators["de-en"]
    both = Translators([translators["de-en"], Translator.load(tiny_checkpoint, device="cpu")])
    assert list(both) == ["de-en", "en-fr", "de-en (tiny)", "en-fr (tiny)"]
    with pytest.raises(ValueError, match="'xx-yy'"):
        translators["xx-yy"]


def test_a_folder_without_checkpoints_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no checkpoint in"):
        Translators.load(tmp_path)


@pytest.mark.parametrize("device", ["toaster", "cuda:99", "meta", "mps:7"])
def test_an_absent_device_is_refused(tiny_checkpoint, device):
    with pytest.raises(ValueError, match=device):
        Translator.load(tiny_checkpoint, device=device)


def test_the_environment_names_the_device_and_the_argument_wins(tiny_checkpoint, monkeypatch):
    monkeypatch.setenv("ATTENTION_ATLAS_DEVICE", "toaster")
    with pytest.raises(ValueError, match="toaster"):
        Translator.load(tiny_checkpoint)
    assert Translator.load(tiny_checkpoint, device="cpu").device.type == "cpu"


def test_a_model_in_half_precision_has_maps_whose_rows_sum_to_one(tiny_translator):
    model = deepcopy(tiny_translator.model).to(torch.bfloat16)
    half = Translator(Checkpoint("", model, tiny_translator.tokenizer, tiny_translator.directions, {}, ""), CPU)
    exact = tiny_translator.translate(TEXTS[0])
    trace = half.trace(TEXTS[0], target=exact.target_ids)  # AttentionMaps checks the sums
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(trace.maps(kind).weights, exact.maps(kind).weights, atol=0.05)

"""Long texts store queries and keys, and maps computed later equal those of the pass to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.config import PositionCode
from attention_atlas.model.serve.limits import FLOAT, BatchLimits
from attention_atlas.model.trace import maps as trace_maps
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.interventions import Edge, Interventions, Positions
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import ComputedWeights
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator, tracing
from tests.conftest import SENTENCES, build_tiny_model, make_translator

TEXT = " ".join(SENTENCES[:6])  # longer than what the tiny models were made for: 64 tokens
RELATIVE = {"position_code": PositionCode.RELATIVE, "scale_scores": False, "head_width": 24}


def build_translator(tokenizer, *, trace_bytes: int = 1000, **changes) -> Translator:
    model = build_tiny_model(tokenizer, **changes)
    for name, parameter in model.named_parameters():
        if "relative" in name:
            torch.nn.init.normal_(parameter)
    return make_translator(model, tokenizer, limits=BatchLimits(trace_bytes=trace_bytes))


CUT = Interventions(
    cut_edges={Edge(AttentionKind.CROSS, 3, 5, 1, 2), Edge(AttentionKind.DECODER_SELF, 6, 2, 0)},
    heads_off={(AttentionKind.ENCODER_SELF, 0, 1)},
)


@pytest.mark.parametrize(
    ("changes", "interventions"),
    [
        ({}, CUT),
        ({"norm_first": False}, Interventions(edits={"decoder.1.resid_post": Scale(0.5)})),
        (RELATIVE, Interventions(target_positions=Positions(shift=3))),
        ({**RELATIVE, "layer_positions": True}, CUT),
    ],
)
@pytest.mark.parametrize("beam", [1, 2])
def test_computed_maps_equal_those_of_the_pass(tokenizer, changes, interventions, beam):
    translator = build_translator(tokenizer, **changes)
    trace = translator.translate(TEXT, interventions=interventions, beam=beam)
    output = translator.inspect(trace, interventions=interventions)
    loaded = storage.from_npz(storage.to_npz(trace))
    assert len(trace.source_ids) > 64 and loaded.cross.weights.bias is None
    for kind in TRANSFORMER_KINDS:
        recorded, maps, loaded_maps = output.maps(kind, 0).numpy(), trace.maps(kind), loaded.maps(kind)
        assert maps.is_computed and loaded_maps.is_computed and maps.weights.shape == recorded.shape
        for layer in range(maps.num_layers):
            for head in range(maps.num_heads):
                np.testing.assert_array_equal(maps.weights[layer, head], recorded[layer, head])
                np.testing.assert_allclose(loaded_maps.weights[layer, head], recorded[layer, head], atol=1e-5)


@pytest.fixture(scope="module")
def long_trace(tokenizer) -> TranslationTrace:
    return build_translator(tokenizer).translate(TEXT)


def test_computed_weights_are_indexed_like_an_array(long_trace, monkeypatch):
    maps = long_trace.cross
    whole, weights = np.asarray(maps.weights), maps.weights
    assert len(weights) == len(whole) and weights.size == whole.size and weights.dtype == whole.dtype
    cells = [np.s_[1], np.s_[-1, -1], np.s_[0:2, 1], np.s_[..., 2, 3], np.s_[:, :, 4:9], np.s_[2, :, 4], np.s_[...]]
    for index in [*cells, np.s_[:, :, [1, 2], [5, 3]], np.s_[..., [True] * 3 + [False] * (whole.shape[3] - 3)]]:
        np.testing.assert_array_equal(weights[index], whole[index])
    np.testing.assert_array_equal(weights.max(-1), whole.max(-1))
    measured = maps.map_heads(lambda weights: weights.max(-1))
    np.testing.assert_array_equal(measured, whole.max(-1))
    with pytest.raises(IndexError):
        weights[0, 4]
    monkeypatch.setattr(trace_maps, "MAX_BYTES", whole[0].nbytes)
    assert weights[0].shape == whole[0].shape
    for use in (np.asarray, lambda maps: maps.mean(), lambda maps: maps[:2], lambda maps: maps[:, :2]):
        with pytest.raises(Refusal, match="too long for that"):
            use(weights)
    assert not hasattr(weights, "no_such") and not hasattr(weights, "__array_interface__")


def test_maps_that_fit_are_stored_as_arrays(tokenizer, monkeypatch):
    """Stored and computed maps both equal those of a recorded pass."""
    fitting = build_translator(tokenizer, trace_bytes=10**7).translate(SENTENCES[0])
    source, target = len(fitting.source_ids), len(fitting.target_ids)
    map_bytes = FLOAT * build_translator(tokenizer).config.map_numbers(source, target)
    for limit, is_computed in ((map_bytes, False), (map_bytes - 1, True)):
        translator = build_translator(tokenizer, trace_bytes=limit)
        monkeypatch.setattr(tracing, "is_long", lambda *_: True)  # as if its translation might be long
        trace = translator.translate(SENTENCES[0])
        assert trace.target_ids == fitting.target_ids
        assert all(trace.maps(kind).is_computed is is_computed for kind in trace.kinds)
        recorded = translator.inspect(trace)
        for kind in trace.kinds:
            np.testing.assert_array_equal(trace.maps(kind).weights, recorded.maps(kind, 0))
            np.testing.assert_allclose(trace.maps(kind).weights, fitting.maps(kind).weights, atol=1e-5)
        np.testing.assert_array_equal(trace.log_probability, fitting.log_probability)


def test_a_batch_of_long_texts_gives_each_texts_own_trace(tokenizer):
    translator = build_translator(tokenizer)
    together = translator.trace_batch([TEXT, SENTENCES[0], TEXT[:90]])
    for trace in together:
        alone = translator.translate(trace.source_text)
        assert alone.target_ids == trace.target_ids
        np.testing.assert_array_equal(alone.cross.weights[1, 2], trace.cross.weights[1, 2])


def test_saved_long_traces_hold_queries_and_keys_and_wrong_files_are_refused(long_trace, tmp_path):
    long_trace.save(tmp_path / "long.npz")
    assert isinstance(TranslationTrace.load(tmp_path / "long.npz").cross.weights, ComputedWeights)
    with pytest.raises(Refusal, match="too long for JSON"):
        long_trace.save(tmp_path / "long.json")
    with np.load(tmp_path / "long.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    fields = str(arrays["fields"]).replace('"cut": []', '"cut": [[[1, "x", 0]]]')
    for name, wrong, words in (
        ("cross.keys", arrays["cross.keys"][:, :2], "queries are of"),
        ("cross.queries", np.full_like(arrays["cross.queries"], np.nan), "finite"),
        ("cross.bias", np.zeros((1, 4, 3), np.float32), "does not fit"),
        ("fields", np.array(fields), "edges that are cut"),
    ):
        np.savez(tmp_path / "wrong.npz", **{**arrays, name: wrong})
        with pytest.raises(ValueError, match=words):
            TranslationTrace.load(tmp_path / "wrong.npz")


def test_edits_that_queries_and_keys_do_not_show_are_refused(tokenizer):
    translator = build_translator(tokenizer)
    with pytest.raises(Refusal, match="Scores cannot be edited"):
        translator.translate(TEXT, interventions=Interventions(edits={"encoder.0.self.scores": Scale(2.0)}))
    relative = build_translator(tokenizer, **RELATIVE)
    uneven = Interventions(edits={"encoder.0.self.bias": Scale(0.0, positions=(2,))})
    with pytest.raises(Refusal, match="only a term that depends on the distance"):
        relative.translate(TEXT, interventions=uneven)
    flat = relative.translate(TEXT, interventions=Interventions(edits={"encoder.0.self.bias": Scale(0.0)}))
    recorded = relative.inspect(flat.source_ids, flat.target_ids, interventions=flat.interventions)
    np.testing.assert_array_equal(flat.encoder_self.weights[0, 3], recorded.maps(AttentionKind.ENCODER_SELF, 0)[0, 3])


def test_empty_slices_equal_those_of_an_array():
    rows = np.random.default_rng(1).standard_normal((2, 3, 4, 5), np.float32)
    weights = ComputedWeights(rows, rows)
    whole = weights[:]
    for index in (np.s_[0:0], np.s_[:, 0:0], np.s_[0, 0:0], np.s_[2:, :, 1:3], np.s_[..., 0:0], np.s_[0:0, 1, 2]):
        assert weights[index].shape == whole[index].shape and weights[index].dtype == whole.dtype
    assert np.array_equal(np.asarray(weights), whole) and np.asarray(weights, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="always a copy"):
        np.asarray(weights, copy=False)

"""Traces and their files record how the target was decoded."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from attention_atlas.model.decode.beam import Fate
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.viz.wire.payload import payload

TEXT = "Zwei Kinder bauen eine Burg aus Sand."


def test_a_beam_trace_is_the_best_hypothesis(tiny_translator):
    trace = tiny_translator.translate(TEXT, beam=5, length_penalty=0.5)
    (result,) = tiny_translator.beam([trace.source_ids], width=5, length_penalty=0.5)
    assert trace.target_ids == result.hypotheses[0].ids
    assert float(trace.log_probability.sum()) == pytest.approx(result.hypotheses[0].log_probability, abs=1e-3)
    assert trace.finished == (result.nodes[result.hypotheses[0].node].fate is Fate.FINISHED)
    repeated = tiny_translator.trace(TEXT, target=trace.target_ids)
    np.testing.assert_allclose(repeated.cross.weights, trace.cross.weights, atol=1e-5)
    assert trace.decoding == Decoding(5, 0.5)
    assert trace.decoded_by == "beam 5, length penalty 0.5"
    assert tiny_translator.translate_batch([TEXT], beam=5, length_penalty=0.5) == [trace.translation]


def test_traces_record_their_decoding(tiny_translator):
    greedy = tiny_translator.translate(TEXT)
    assert greedy.decoding == GREEDY and greedy.decoded_by == "greedy"
    continued = tiny_translator.trace(TEXT, prefix=greedy.target_ids[:2])
    assert continued.decoding == Decoding(given=2) and continued.decoded_by == "2 tokens given, then greedy"
    assert Decoding(given=1).describe(4) == "1 token given, then greedy"
    assert tiny_translator.trace(TEXT, prefix=[]).decoding == GREEDY
    followed = tiny_translator.trace(TEXT, target=greedy.target_ids)
    assert followed.decoded_by == "chosen by you, not by the model"
    # The same ids and maps, found in another way, are another thing to look at.
    assert len({trace.key for trace in (continued, greedy, followed)}) == 3
    assert [payload(trace)["beam"] for trace in (greedy, replace(greedy, decoding=Decoding(5)), continued)] == [1, 5, 0]


@pytest.mark.parametrize("decoding", [None, GREEDY, Decoding(5, 1.5), Decoding(given=3)])
def test_files_store_the_decoding_and_old_files_open(hand_made_trace, decoding):
    trace = replace(hand_made_trace, decoding=decoding)
    written = storage.to_json(trace)
    assert storage.from_json(written).decoding == decoding == storage.from_npz(storage.to_npz(trace)).decoding
    fields = json.loads(written)
    del fields["decoding"]
    assert storage.from_json(json.dumps(fields)).decoded_by == "decoding not recorded"
    for wrong in (3, {"width": 99}, {"width": True}, {"beam": 5}, {"length_penalty": "1"}, {"given": -1}):
        with pytest.raises(ValueError, match=r"width|penalty|given"):
            storage.from_json(json.dumps({**fields, "decoding": wrong}))

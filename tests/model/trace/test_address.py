"""Addresses: any process makes the same translation from one, and caches are bounded."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.questions.traces import CacheBytes, Traces, trace_bytes

TEXT = "Ein kleiner Hund schläft."
CHANGES = (
    Interventions(),
    Interventions(heads_off={("cross", 1, 0), ("encoder_self", 0, 1)}),
    Interventions(edits={"decoder.0.ffn.out": Scale(0.5)}),
)


@pytest.fixture()
def traces(tiny_translator) -> Traces:
    return Traces(Translators([tiny_translator]))


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("beam", [1, 3])
def test_an_address_gives_the_same_translation_in_another_process(tiny_translator, tiny_checkpoint, changes, beam):
    trace = tiny_translator.translate(TEXT, interventions=changes, beam=beam)
    sent = json.loads(json.dumps(Address.of(trace).to_plain()))
    server = Traces(Translators([Translator.load(tiny_checkpoint, device="cpu")]))
    copy = server.find(Address.from_plain(sent))
    assert copy.key == trace.key and copy.source_text == trace.source_text
    assert (copy.decoding, copy.finished) == (trace.decoding, trace.finished)
    for kind in trace.kinds:
        np.testing.assert_allclose(copy.maps(kind).weights, trace.maps(kind).weights, atol=1e-5)
    np.testing.assert_allclose(copy.log_probability, trace.log_probability, atol=1e-4)


def test_a_text_is_an_address_and_its_trace_has_a_complete_one(tiny_translator, traces):
    trace = traces.find(Address(TEXT, "de-en"))
    assert trace.translation == tiny_translator.translate(TEXT, "de-en").translation
    assert traces.find(Address.of(trace)) is trace, "not made again"


def test_forced_tokens_are_part_of_an_address(tiny_translator, traces):
    free = tiny_translator.translate(TEXT)
    forced = tiny_translator.trace(TEXT, prefix=free.target_ids[:1])
    copy = traces.find(Address.of(forced))
    assert copy.decoding.given == 1 and copy.key == forced.key
    assert Address.of(forced).key != Address.of(free).key


def test_traces_that_cannot_be_repeated_have_no_address(tiny_translator, traces):
    trace = tiny_translator.edit({"decoder.0.ffn.out": lambda x, at: x}).translate(TEXT)
    assert Address.of(trace) is None
    traces.add(trace)
    assert traces._traces.bytes == 0


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ([], "an object with the fields"),
        ({"text": TEXT, "more": 1}, "an object with the fields"),
        ({"text": 3}, "text must be a text"),
        ({"text": TEXT, "target_ids": [1, "2"]}, "target_ids must be a list"),
        ({"text": TEXT, "source_ids": "12"}, "source_ids must be a list"),
        ({"text": TEXT, "decoding": {"width": 99}}, "beam width"),
        ({"text": TEXT, "interventions": {"heads_off": "all"}}, "interventions cannot be read"),
    ],
)
def test_from_plain_refuses_invalid_addresses(plain, words):
    with pytest.raises(ValueError, match=words):
        Address.from_plain(plain)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"digest": "0" * 16}, "translate again"),
        ({"digest": "", "direction": "xx-yy"}, "No model"),
        ({"text": ""}, "text"),
    ],
)
def test_find_refuses_addresses_it_cannot_translate(traces, changed, words):
    with pytest.raises(ValueError, match=words):
        traces.find(replace(Address(TEXT, "de-en"), **changed))


def test_the_trace_cache_is_bounded_in_bytes(tiny_translator):
    translations = [tiny_translator.translate(f"{TEXT} {n}") for n in range(4)]
    traces = Traces(Translators([tiny_translator]), CacheBytes(traces=2 * max(map(trace_bytes, translations))))
    for trace in translations:
        traces.add(trace)
    assert trace_bytes(translations[3]) <= traces._traces.bytes <= traces._traces.max_bytes
    assert traces.find(Address.of(translations[3])) is translations[3]
    assert traces.find(Address.of(translations[0])) is not translations[0], "the oldest is made again"


def test_recorded_passes_are_cached_by_address(tiny_translator, traces):
    plain = tiny_translator.translate(TEXT)
    cut = tiny_translator.trace(TEXT, interventions=CHANGES[1])
    output = traces.recorded(tiny_translator, plain)
    assert traces.recorded(tiny_translator, plain) is output
    assert traces._passes.bytes >= output.nbytes + output.logits.nbytes
    assert not torch.equal(traces.recorded(tiny_translator, cut).hidden, output.hidden)
    small = Traces(Translators([tiny_translator]), CacheBytes(passes=0))
    computed = small.recorded(tiny_translator, plain)
    assert computed is not output and small._passes.bytes == 0
    torch.testing.assert_close(computed.logits, output.logits)

"""Addresses of translations: any process makes the same translation of one."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.questions.traces import CacheBytes, Traces, trace_bytes

TEXT = "Ein kleiner Hund schläft."
CHANGES = (
    Interventions(),
    Interventions(heads_off=frozenset({(AttentionKind.CROSS, 1, 0), (AttentionKind.ENCODER_SELF, 0, 1)})),
    Interventions(edits={"decoder.0.ffn.out": Scale(0.5)}),
)


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("beam", [1, 3])
def test_another_process_makes_the_same_translation_of_an_address(tiny_translator, tiny_checkpoint, changes, beam):
    trace = tiny_translator.translate(TEXT, interventions=changes, beam=beam)
    sent = json.loads(json.dumps(Address.of(trace).to_plain()))
    other = Traces(Translators([Translator.load(tiny_checkpoint, device="cpu")]))
    found = other.find(Address.from_plain(sent))
    assert found.identity == trace.identity and found.source_text == trace.source_text
    assert (found.decoding, found.finished) == (trace.decoding, trace.finished)
    for kind in trace.kinds:
        np.testing.assert_allclose(found.maps(kind).weights, trace.maps(kind).weights, atol=1e-5)
    np.testing.assert_allclose(found.log_probability, trace.log_probability, atol=1e-4)


def test_a_text_alone_is_an_address_and_its_answer_has_a_whole_one(tiny_translator):
    traces = Traces(Translators([tiny_translator]))
    trace = traces.find(Address(TEXT, "de-en"))
    assert trace.translation == tiny_translator.translate(TEXT, "de-en").translation
    assert traces.find(Address.of(trace)) is trace, "not made again"


def test_forced_tokens_are_part_of_an_address(tiny_translator):
    free = tiny_translator.translate(TEXT)
    forced = tiny_translator.trace(TEXT, prefix=free.target_ids[:1])
    found = Traces(Translators([tiny_translator])).find(Address.of(forced))
    assert found.decoding.given == 1 and found.identity == forced.identity
    assert Address.of(forced).key != Address.of(free).key


def test_equal_numbers_give_equal_addresses():
    one, other = (Address(TEXT, interventions=Interventions(edits={"decoder.0.ffn.out": Scale(x)})) for x in (1, 1.0))
    assert one.key == other.key and one.to_plain() == other.to_plain()


def test_what_cannot_be_run_again_has_no_address(tiny_translator):
    trace = tiny_translator.edit({"decoder.0.ffn.out": lambda x, at: x}).translate(TEXT)
    assert Address.of(trace) is None
    traces = Traces(Translators([tiny_translator]))
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
def test_what_is_no_address_is_refused_in_words(plain, words):
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
def test_what_cannot_be_made_is_refused_in_words(tiny_translator, changed, words):
    address = replace(Address(TEXT, "de-en"), **changed)
    with pytest.raises(ValueError, match=words):
        Traces(Translators([tiny_translator])).find(address)


def test_translations_are_kept_within_their_bytes(tiny_translator):
    found = [tiny_translator.translate(f"{TEXT} {n}") for n in range(4)]
    traces = Traces(Translators([tiny_translator]), CacheBytes(traces=2 * max(map(trace_bytes, found))))
    for trace in found:
        traces.add(trace)
    assert trace_bytes(found[3]) <= traces._traces.bytes <= traces._traces.max_bytes
    assert traces.find(Address.of(found[3])) is found[3]
    assert traces.find(Address.of(found[0])) is not found[0], "the oldest is made again"


def test_a_recorded_pass_is_kept_and_is_the_one_of_its_address(tiny_translator):
    traces = Traces(Translators([tiny_translator]))
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

"""Facts about tokens: from the tokenizer, in files, and in pictures."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from attention_atlas.model.trace import storage
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.model.trace.tokens import Token, TokenKind, facts_to_plain, is_byte, is_symbol, tokens_from_facts
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.maps import reduce
from attention_atlas.viz.maps.reduce import View
from attention_atlas.viz.wire import payload


def test_tokenizers_know_the_kinds_of_their_ids(tiny_translator):
    tokenizer = tiny_translator.tokenizer
    trace = tiny_translator.translate("Der <s> Hund 🦉")
    for ids, tokens in (
        (trace.source_ids, trace.source_tokens),
        (trace.decoder_ids, trace.decoder_inputs),
        (trace.target_ids, trace.target_tokens),
        *zip(trace.top_ids.tolist(), trace.top_tokens),
    ):
        assert [is_symbol(token) for token in tokens] == [i in tokenizer.special_ids for i in ids]
        assert [is_byte(token) for token in tokens] == [str(token).startswith("<0x") for token in tokens]
    assert sum(map(is_symbol, trace.source_tokens)) == 2 and sum(map(is_byte, trace.source_tokens)) >= 4
    assert all(token.word is not None for token in trace.source_tokens)


@pytest.fixture()
def literal(hand_made_trace):
    """The hand-made trace where the third source token reads "<s>", as text, and ends the word before it."""
    source = list(hand_made_trace.source_tokens)
    source = tuple(
        Token("<s>", TokenKind.TEXT, 1) if i == 2 else Token(token, token.kind, min(i, 1) if i < 3 else i)
        for i, token in enumerate(source)
    )
    maps = {
        "encoder_self": AttentionMaps(hand_made_trace.encoder_self.weights, source, source),
        "cross": AttentionMaps(hand_made_trace.cross.weights, hand_made_trace.decoder_inputs, source),
    }
    return dataclasses.replace(hand_made_trace, source_tokens=source, **maps)


def test_text_spelled_like_a_symbol_is_not_hidden(literal):
    hidden = reduce.score_map(literal, View("cross", special="hide"))
    assert hidden.columns[1] == "<s>" and len(hidden.columns) == len(literal.source_tokens) - 2
    merged = reduce.score_map(literal, View("cross", words=True))
    assert merged.column_positions[1] == (1, 2) and merged.columns[1] == "der<s>"
    assert np.allclose(merged.values.sum(1), 1, atol=1e-6)
    sent = payload.payload(literal)["tokens"]["source"]
    assert sent["special"] == [1, 0, 0, 0, 0, 0, 0, 1] and sent["words"][1] == (1, 2)


@pytest.mark.parametrize("form", ["json", "npz"])
def test_files_store_token_facts(literal, form):
    write, read = {"json": (storage.to_json, storage.from_json), "npz": (storage.to_npz, storage.from_npz)}[form]
    copy = read(write(literal))
    for name in ("source_tokens", "decoder_inputs", "target_tokens"):
        assert facts_to_plain(getattr(copy, name)) == facts_to_plain(getattr(literal, name))
    assert copy.cross.key_tokens[2].kind is TokenKind.TEXT and word_groups(copy.source_tokens)[1] == (1, 2)


def test_files_without_facts_infer_them_from_spelling(literal):
    fields = json.loads(storage.to_json(literal))
    del fields["token_facts"]
    assert is_symbol(storage.from_json(json.dumps(fields)).source_tokens[2])
    for wrong in ("x", {"source_tokens": {}}):
        with pytest.raises(ValueError, match="token_facts must be"):
            storage.from_json(json.dumps({**fields, "token_facts": wrong}))


@pytest.mark.parametrize(
    "found",
    [None, {}, {"kinds": "tt", "words": [0]}, {"kinds": "tx", "words": [0, 0]}, {"kinds": "tt", "words": ["a", 0]}],
)
def test_invalid_facts_are_refused(found):
    with pytest.raises(ValueError, match="facts of 2 tokens cannot be read"):
        tokens_from_facts(("a", "b"), found)

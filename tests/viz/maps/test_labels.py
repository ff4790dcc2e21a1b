"""Labels of tokens, words and rows."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import tokens_from_spelling
from attention_atlas.viz.maps import labels


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("▁der", "▁der"),
        ("<0xC3>", "‹C3›"),
        ("</s>", "</s>"),
        ("<2en>", "<2en>"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("a\u200bb", "a‹U+200B›b"),
        ("\u202eabc", "‹U+202E›abc"),
        ("\u0301", "◌\u0301"),
        ("", "‹empty›"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("\u200d", "‹U+200D›"),
        ("שלום", "שלום"),
    ],
)
def test_display_of_tokens(token, label):
    assert labels.display(*tokens_from_spelling([token])) == label


@given(st.text(max_size=12))
def test_a_label_is_never_empty_or_invisible(token):
    label = labels.display(token)
    assert label
    hidden = [c for c in label if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c != "\u200d"]
    assert not hidden


@given(st.text(max_size=20))
def test_escaped_text_has_no_markup_left(text):
    escaped = labels.escape(text)
    assert "<" not in escaped and ">" not in escaped
    assert escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


def test_word_labels_join_pieces_and_bytes():
    assert labels.word_label(tokens_from_spelling(("▁Bäck", "er"))) == "Bäcker"
    assert labels.word_label(tokens_from_spelling(("▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"))) == "😀"
    assert labels.word_label(tokens_from_spelling(("<0xC3>",))) == "‹C3›"
    assert labels.word_label(tokens_from_spelling(("▁",))) == "▁"
    assert labels.word_label(tokens_from_spelling(("</s>",))) == "</s>"


def test_ticks_are_thinned_escaped_and_keep_equal_labels_apart():
    where, texts = labels.ticks(["</s>"] * 100)
    assert len(where) <= 40 and where[0] == 0
    assert texts == ["&lt;/s&gt;"] * len(where)
    assert labels.ticks(["a", "a", "b"]) == ([0, 1, 2], ["a", "a", "b"])


def test_decoder_rows_are_labelled_by_either_token(hand_made_trace):
    read = labels.row_tokens(hand_made_trace, AttentionKind.CROSS, predicted=False)
    predicted = labels.row_tokens(hand_made_trace, AttentionKind.CROSS, predicted=True)
    assert read == hand_made_trace.decoder_inputs and predicted == hand_made_trace.target_tokens
    assert labels.row_tokens(hand_made_trace, AttentionKind.ENCODER_SELF, predicted=True) == (
        hand_made_trace.source_tokens
    )
    titles = {labels.row_title(AttentionKind.CROSS, predicted=predicted) for predicted in (True, False)}
    assert len(titles) == 2


def test_row_names_have_the_read_and_the_written_token(hand_made_trace):
    trace = hand_made_trace
    for kind in (AttentionKind.CROSS, AttentionKind.DECODER_SELF):
        names = labels.row_names(trace, kind)
        for row, (read, written) in enumerate(zip(trace.decoder_inputs, trace.target_tokens, strict=True)):
            assert names[row] == f"{labels.display(read)} → {labels.display(written)}"
            assert (
                labels.row_name(trace, kind, row) == f"reads {labels.display(read)} → writes {labels.display(written)}"
            )
    assert labels.row_names(trace, AttentionKind.ENCODER_SELF) == [
        labels.display(token) for token in trace.source_tokens
    ]
    assert labels.row_name(trace, AttentionKind.ENCODER_SELF, 1) == labels.display(trace.source_tokens[1])

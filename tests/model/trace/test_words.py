"""Grouping of tokens into words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.model.trace.tokens import Token, TokenKind, is_symbol, tokens_from_spelling
from attention_atlas.model.trace.words import number_words, word_groups


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("<2en>", "▁Ein", "▁Hund", "es", ",", "▁ja", ".", "</s>"), ((0,), (1,), (2, 3), (4,), (5,), (6,), (7,))),
        (("▁don", "'", "t", "!", "?"), ((0, 1, 2), (3, 4))),
        (("<s>", "x", "y"), ((0,), (1, 2))),
        (("▁", "<0xF0>", "<0x9F>"), ((0, 1, 2),)),
        (("▁-", "▁-"), ((0,), (1,))),
        ((), ()),
    ],
)
def test_subwords_are_grouped_into_words(tokens, words):
    assert word_groups(tokens_from_spelling(tokens)) == words


@given(st.lists(st.sampled_from(("▁a", "b", ".", "<s>", "</s>", "<2en>", "▁", "<0xC3>", "▁,", "'")), max_size=12))
def test_every_position_is_in_one_word_and_symbols_stand_alone(tokens):
    tokens = tokens_from_spelling(tokens)
    groups = word_groups(tokens)
    assert [i for group in groups for i in group] == list(range(len(tokens)))
    assert all(len(group) == 1 for group in groups if any(is_symbol(tokens[i]) for i in group))


def test_word_numbers_take_precedence_over_spaces():
    tokens = number_words([Token(piece) for piece in ("今", "天", "很", "▁好")], ((0, 1), (2, 3)))
    assert word_groups(tokens) == ((0, 1), (2, 3)) and word_groups(tokens[1:]) == ((0,), (1, 2))


def test_text_that_is_spelled_like_a_symbol_is_text():
    begin, end = Token("<s>", TokenKind.SYMBOL), Token("</s>", TokenKind.SYMBOL)
    tokens = (begin, Token("▁a"), Token("<s>"), Token("<2en>"), end)
    assert word_groups(tokens) == ((0,), (1, 2, 3), (4,))

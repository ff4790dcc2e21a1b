"""Texts are normalized before they are encoded."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.model.text.interface import MAX_CHARACTERS, normalize_text

BLANKS = st.text("ab \t\n\r\v\f\x1c\x85\xa0\u2028\u2029")


@given(BLANKS)
def test_lines_are_joined_by_one_space_and_other_blanks_stay(text):
    assert normalize_text(text) == re.sub(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*", " ", text.strip())


def test_many_blanks_take_linear_time():
    text = f"a{' ' * (MAX_CHARACTERS - 2)}b"
    started = time.process_time()
    assert normalize_text(text) == text
    assert time.process_time() - started < 0.1  # where the time is quadratic, four times as much; now 0.1 ms

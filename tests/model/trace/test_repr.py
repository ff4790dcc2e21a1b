"""The notebook view of a trace."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np


class Texts(HTMLParser):
    """The tags and the texts of a document, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.texts = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_a_notebook_shows_each_token_with_its_probability(hand_made_trace):
    read = Texts()
    read.feed(hand_made_trace._repr_html_())
    assert read.tags == {"div", "p", "table", "tr", "td"}, "no token became markup"
    assert tuple(text for text in read.texts if text in hand_made_trace.target_tokens) == hand_made_trace.target_tokens
    assert any(hand_made_trace.translation in text for text in read.texts)
    percents = [float(text[:-1]) / 100 for text in read.texts if re.fullmatch(r"[\d.]+%", text)]
    np.testing.assert_allclose(percents, np.exp(hand_made_trace.log_probability), atol=5.1e-4)

"""The check of the page's words finds unknown words, and knows regular forms of known ones."""

from __future__ import annotations

import pytest

from tests import vocabulary


@pytest.mark.parametrize(
    ("sentence", "unknown"),
    [
        ("The model’s readers tried running happily, and didn't stop.", []),
        ("{quibble} `quibble`: quibble(x), quibble_x, <quibble>", []),
        ("A well-trained encoder self-attention head quibbles.", ["quibbles"]),
        ("Heteroscedastic noise", ["heteroscedastic"]),
    ],
)
def test_a_word_is_common_or_a_term_or_an_exception(sentence, unknown) -> None:
    assert [word for word in vocabulary.words_of(sentence) if not vocabulary.is_known(word)] == unknown


def test_an_unknown_word_is_listed_with_its_sentence(monkeypatch, capsys) -> None:
    monkeypatch.setattr(vocabulary, "sentences", lambda: iter(["A quixotic head"]))
    with pytest.raises(ValueError, match="1 words"):
        vocabulary.main()
    assert capsys.readouterr().out == "quixotic: A quixotic head\n"

"""Links in pieces, by heads that agree."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.alignment.glosses import glosses
from attention_atlas.model.analysis.alignment.linker import linker, linking_heads, links
from attention_atlas.model.trace.alignment.voters import RowToken, Voter
from attention_atlas.model.trace.tokens import Token, TokenKind
from tests.conftest import SENTENCES

BEGIN, END = Token("<2en>", TokenKind.SYMBOL), Token("</s>", TokenKind.SYMBOL)


def test_words_on_which_rows_and_columns_agree_are_linked_piece_by_piece():
    source = (BEGIN, Token("\u2581ro"), Token("tes"), Token("\u2581Boot"), END)
    target = (Token("\u2581boat"), Token("\u2581re"), Token("d"), END)
    weights = np.full((1, 1, 4, 5), 0.01)
    weights[0, 0, 1, 3] = 0.9  # the row that reads "boat"
    weights[0, 0, 2, 1] = weights[0, 0, 3, 2] = 0.8  # those that read "re" and "d"
    weights[0, 0, 0, 4] = 0.9
    found = links(source, target, weights, [Voter(0, 0, RowToken.READ, False)])
    expected = np.zeros((4, 5), bool)
    expected[0, 3] = True
    expected[1:3, 1:3] = True
    np.testing.assert_array_equal(found, expected)
    assert not links((BEGIN, END), target, weights[..., :2], [Voter(0, 0, RowToken.READ, False)]).any()


def test_a_model_links_its_own_translations(tiny_translator):
    link = linker(linking_heads(tiny_translator, "de-en", SENTENCES[0:4:2]))
    trace = tiny_translator.translate(SENTENCES[0], "de-en")
    found = link(trace.source_tokens, trace.target_tokens, trace.cross.weights)
    assert found.shape == (len(trace.target_tokens), len(trace.source_tokens))
    assert not found[:, 0].any() and not found[:, -1].any() and found.any()


def test_glosses_are_the_words_that_the_heads_pair_both_ways(shipped_translators):
    """The words are those of links(), token by token; without chosen heads all of them link."""
    for translator in shipped_translators.all:
        for direction in translator.directions:
            text = {"de": "Der alte Mann hat keine Zeit.", "en": "The old man has no time."}[direction[:2]]
            trace = translator.translate(text, direction)
            survey = translator.survey.directions.get(direction) if translator.survey else None
            source, target = glosses(trace, survey.linked_by if survey else ())
            assert (len(source), len(target)) == (len(trace.source_tokens), len(trace.target_tokens))
            assert source[0] == source[-1] == target[-1] == ""  # symbols became nothing
            found = dict(zip(trace.source_tokens, source))
            own = {"de-en": ("old", "man"), "en-de": ("alte", "Mann"), "en-fr": ("vieil", "homme")}[direction]
            assert set(own) <= set(source), found
            if survey and survey.linked_by:
                linked = links(trace.source_tokens, trace.target_tokens, trace.cross.weights, survey.linked_by)
                assert [bool(text) for text in source] == linked.any(0).tolist()
                assert [bool(text) for text in target] == linked.any(1).tolist()

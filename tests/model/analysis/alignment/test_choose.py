"""Maps between words, and heads chosen by agreement."""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest

from attention_atlas.model.analysis.alignment.links import (
    all_voters,
    choose_heads,
    encode_words,
    link_by_rows,
    score_maps,
    sum_heads,
)
from attention_atlas.model.trace.alignment import RowToken, Voter, pool_words
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import SENTENCES

GERMAN, ENGLISH = SENTENCES[0].split(), SENTENCES[1].split()


def test_encoding_word_by_word_equals_encoding_the_sentence(tiny_translator):
    pieces = encode_words(tiny_translator, "de-en", GERMAN, ENGLISH)
    tokenizer = tiny_translator.tokenizer
    assert list(pieces.source_ids) == tiny_translator.encode(SENTENCES[0], "de-en")
    assert list(pieces.target_ids) == [*tokenizer.encode(SENTENCES[1]), tokenizer.end_id]
    assert [*chain(*pieces.sources)] == [*range(1, len(pieces.source_ids) - 1)] and len(pieces.sources) == len(GERMAN)
    assert [*chain(*pieces.targets)] == [*range(len(pieces.target_ids) - 1)] and len(pieces.targets) == len(ENGLISH)
    with pytest.raises(ValueError, match="without words"):
        encode_words(tiny_translator, "de-en", [], ENGLISH)


def test_words_beyond_the_maximum_length_have_no_links(tiny_translator):
    pieces = encode_words(tiny_translator, "de-en", ["Hund"] * 100, ["dog"] * 100)
    assert len(pieces.source_ids) <= 64 and len(pieces.target_ids) <= 64
    (maps,) = score_maps(tiny_translator, [pieces])
    links = link_by_rows(sum_heads(maps, [Voter(0, 0, RowToken.READ, False)]))
    assert 0 < len(links) < 100


@pytest.mark.parametrize("row", RowToken)
def test_pooling_to_words_equals_a_plain_loop(tiny_translator, row):
    pieces = encode_words(tiny_translator, "de-en", GERMAN, ENGLISH)
    output = tiny_translator.inspect(pieces.source_ids, pieces.target_ids)
    weights = output.weights(AttentionKind.CROSS)[:, 0].double().numpy()
    pooled = pool_words(weights, pieces.sources, pieces.targets, row)
    for target, positions in enumerate(pieces.targets):
        rows = [i + (row is RowToken.READ) for i in positions]
        for source, columns in enumerate(pieces.sources):
            expected = np.mean([weights[:, :, t, list(columns)].sum(-1) for t in rows], 0)
            np.testing.assert_allclose(pooled[:, :, target, source], expected, atol=1e-12)
    assert pooled.shape[-1] == len(GERMAN) and (pooled.sum(-1) < 1).all()  # symbols have the rest
    (maps,) = score_maps(tiny_translator, [pieces])
    np.testing.assert_allclose(maps[row, False], pooled, atol=1e-6)


def planted_maps(random, links: np.ndarray, noise: float) -> dict:
    """Random maps [2 layers, 4 heads] in which layer 2, head 3, token read, holds the links."""
    size = (2, 4, len(links))
    maps = {
        (row, by_length): random.dirichlet(np.full(links.shape[1], 0.3), size)
        for row in RowToken
        for by_length in (False, True)
    }
    maps[RowToken.READ, False][1, 2] = (1 - noise) * links + noise * maps[RowToken.READ, False][1, 2]
    return maps


@pytest.mark.parametrize("has_reverse", [True, False])
def test_agreement_chooses_the_planted_head(has_reverse):
    random, forward, backward = np.random.default_rng(6), [], []
    for _ in range(30):
        links = np.eye(7)[random.permutation(7)]
        forward.append(planted_maps(random, links, 0.2))
        backward.append(planted_maps(random, links.T, 0.2))
    among = all_voters(SimpleNamespace(num_layers={AttentionKind.CROSS: 2}, num_heads={AttentionKind.CROSS: 4}))
    assert len(among) == 2 * 2 * 8
    heads = choose_heads(forward, backward if has_reverse else None, among=among, backward_among=among)
    assert Voter(1, 2, RowToken.READ, False) == heads.forward[0] == heads.backward[0]
    assert heads.agreement > 0.95
    with pytest.raises(ValueError, match="no sentence"):
        choose_heads([], None, among=among)

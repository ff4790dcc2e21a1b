"""Maps between words, and heads chosen without links by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis.alignment.choose import best_of_rows, choose, score_maps, summed, voters
from attention_atlas.model.analysis.alignment.words import between_words, pieces
from attention_atlas.model.trace.alignment.voters import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import SENTENCES

GERMAN, ENGLISH = SENTENCES[0].split(), SENTENCES[1].split()


def test_word_by_word_gives_the_pieces_of_the_sentence(tiny_translator):
    found = pieces(tiny_translator, "de-en", GERMAN, ENGLISH)
    assert list(found.source_ids) == tiny_translator.encode(SENTENCES[0], "de-en")
    assert list(found.target_ids) == [*tiny_translator.tokenizer.encode(SENTENCES[1]), tiny_translator.tokenizer.end_id]
    assert found.source_words[0] == found.source_words[-1] == -1 and found.target_words[-1] == -1
    assert sorted(set(found.source_words[1:-1])) == list(range(len(GERMAN)))
    with pytest.raises(ValueError, match="without words"):
        pieces(tiny_translator, "de-en", [], ENGLISH)


def test_what_is_too_long_is_cut_and_unlinked(tiny_translator):
    found = pieces(tiny_translator, "de-en", ["Hund"] * 100, ["dog"] * 100)
    assert len(found.source_ids) <= 64 and len(found.target_ids) <= 64
    (maps,) = score_maps(tiny_translator, [found])
    links = best_of_rows(summed(maps, [Voter(0, 0, RowToken.READ, False)]))
    assert 0 < len(links) < 100


@pytest.mark.parametrize("row", RowToken)
def test_maps_between_words_are_a_plain_loops(tiny_translator, row):
    found = pieces(tiny_translator, "de-en", GERMAN, ENGLISH)
    output = tiny_translator.inspect(found.source_ids, found.target_ids)
    weights = output.weights(AttentionKind.CROSS)[:, 0].double().numpy()
    scored = between_words(weights, found, row)
    for target in range(found.targets):
        at = [i + (row is RowToken.READ) for i in np.flatnonzero(found.target_words == target)]
        for source in range(found.sources):
            columns = np.flatnonzero(found.source_words == source)
            expected = np.mean([weights[:, :, t, columns].sum(-1) for t in at], 0)
            np.testing.assert_allclose(scored[:, :, target, source], expected, atol=1e-12)
    np.testing.assert_allclose(scored.sum(-1), 1, atol=1e-5)
    (maps,) = score_maps(tiny_translator, [found])
    np.testing.assert_allclose(maps[row, False], scored, atol=1e-6)


def planted(random, true: np.ndarray, noise: float) -> dict:
    """Maps [2 layers, 4 heads] of which layer 2, head 3, token read, holds the links, and all others chance."""

    def chance(shape):
        found = random.dirichlet(np.full(shape[-1], 0.3), size=shape[:-1])
        return np.concatenate([found, np.zeros((*shape[:-1], 1))], -1)

    maps = {(row, by_length): chance((2, 4, *true.shape)) for row in RowToken for by_length in (False, True)}
    maps[RowToken.READ, False][1, 2, :, :-1] = (1 - noise) * true + noise * maps[RowToken.READ, False][1, 2, :, :-1]
    return maps


@pytest.mark.parametrize("alone", [False, True])
def test_the_head_that_aligns_is_found_by_agreement(alone):
    """In both directions, and by rows and columns where there is one direction only."""
    random, forward, backward = np.random.default_rng(6), [], []
    for _ in range(30):
        true = np.eye(7)[random.permutation(7)]
        forward.append(planted(random, true, 0.2))
        backward.append(planted(random, true.T, 0.2))
    among = voters(2, 4)
    assert len(among) == 2 * 2 * 8
    found = choose(forward, None if alone else backward, among=among, others=among)
    assert Voter(1, 2, RowToken.READ, False) == found.forward[0] == found.backward[0]
    assert found.agreement > 0.95
    with pytest.raises(ValueError, match="no sentence"):
        choose([], None, among=among)

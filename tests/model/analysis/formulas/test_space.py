"""Nearest pieces and sums of words against scipy's cosine over the whole table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from attention_atlas.model.analysis.formulas import space
from attention_atlas.model.trace.tokens import is_byte, is_symbol
from tests.conftest import build_tiny_model, make_translator


def text_pieces(translator) -> list[str]:
    """The text pieces, without the marker of a space."""
    return [
        piece.removeprefix("▁")
        for piece in translator.tokenizer.pieces
        if piece.startswith("▁") and piece.strip("▁") and not is_symbol(piece) and not is_byte(piece)
    ]


def unit_rows(translator) -> np.ndarray:
    table = translator.model.embedding.weight.detach().numpy()
    return table / np.linalg.norm(table, axis=-1, keepdims=True)


def by_scipy(translator, vector: np.ndarray, without: list[int], count: int) -> list[tuple[int, float]]:
    table = translator.model.embedding.weight.detach().numpy()
    cosines, lengths = 1 - cdist(vector[None], table, "cosine")[0], np.linalg.norm(table, axis=-1)
    least = np.median(lengths) / 2
    allowed = [
        i
        for i, piece in enumerate(translator.tokenizer.pieces)
        if not (is_symbol(piece) or is_byte(piece) or i in without or lengths[i] < least)
    ]
    return [(i, float(cosines[i])) for i in sorted(allowed, key=lambda i: -cosines[i])[:count]]


def test_nearest_pieces_equal_scipys(tiny_translator) -> None:
    a, b, c = text_pieces(tiny_translator)[3:6]
    summands, expected = space.parse_sum(f"{a} - {b} + {c}")
    vector, pieces = space.sum_words(tiny_translator, summands)
    ids = [i for (i,) in pieces]
    assert not expected
    unit = unit_rows(tiny_translator)
    expected = unit[ids[0]] - unit[ids[1]] + unit[ids[2]]
    np.testing.assert_allclose(vector.numpy(), expected, atol=1e-6)
    nearest = space.nearest_pieces(tiny_translator, space.cosines(tiny_translator, vector[None], [ids])[0], 7)
    for mine, (theirs, cosine) in zip(nearest, by_scipy(tiny_translator, expected, ids, 7), strict=True):
        assert mine.id == theirs and mine.cosine == pytest.approx(cosine, abs=1e-5)
        assert mine.token == tiny_translator.tokenizer.pieces[mine.id] and mine.id not in ids


def test_a_batch_of_vectors_equals_single_ones(tiny_translator) -> None:
    vectors = torch.randn(3, 32, generator=torch.Generator().manual_seed(0))
    together = space.cosines(tiny_translator, vectors, [[5], [], [9, 10]])
    for row, vector, without in zip(together, vectors, ([5], [], [9, 10])):
        torch.testing.assert_close(row, space.cosines(tiny_translator, vector[None], [without])[0])


@pytest.mark.parametrize(
    ("text", "summands", "expected"),
    [
        ("boat", ((1, "boat"),), ""),
        ("a − b + c", ((1, "a"), (-1, "b"), (1, "c")), ""),
        (" a - b ", ((1, "a"), (-1, "b")), ""),
        ("well-known + x", ((1, "well-known"), (1, "x")), ""),
        ("a - b + c = d", ((1, "a"), (-1, "b"), (1, "c")), "d"),
    ],
)
def test_sums_are_parsed(text, summands, expected) -> None:
    assert space.parse_sum(text) == (summands, expected)


@pytest.mark.parametrize("text", ["", "a b", "a - ", "− a", "a + + b", "a + b = c d", "a = b = c"])
def test_other_texts_are_refused(text) -> None:
    with pytest.raises(ValueError, match="not a word analogy"):
        space.parse_sum(text)


def test_a_word_of_several_pieces_is_the_mean_of_their_rows(tiny_translator) -> None:
    pieces, table = tiny_translator.tokenizer.pieces, tiny_translator.model.target_matrix.detach()
    ids = space.word_ids(tiny_translator, "Donaudampfschiff")
    assert len(ids) > 1 and "".join(pieces[i] for i in ids) == "▁Donaudampfschiff"
    mean = table[ids].mean(0)
    torch.testing.assert_close(space.word_vector(tiny_translator, ids), mean / mean.norm())
    vector, words = space.sum_words(tiny_translator, ((1, "Donaudampfschiff"),))
    assert words == [ids]
    (row,) = space.cosines(tiny_translator, vector[None], words)
    assert space.rank_of(tiny_translator, row, vector, ids) == 1
    for word in text_pieces(tiny_translator)[:5]:
        (i,) = space.word_ids(tiny_translator, word)
        assert pieces[i] == f"▁{word}"
        place = sorted(range(len(row)), key=lambda j: -row[j]).index(i) + 1
        assert space.rank_of(tiny_translator, row, vector, [i]) == place


@pytest.mark.parametrize(
    ("directions", "languages"),
    [(("de-en",), {"de", "en"}), (("en-fr",), {"en", "fr"}), (("deu_Latn-fra_Latn",), {"de", "fr"})],
)
def test_analogies_in_unknown_languages_are_left_out(tiny_translator, directions, languages) -> None:
    translator = make_translator(tiny_translator.model, tiny_translator.tokenizer, directions=directions)
    analogies = space.analogies(translator)
    lines = {line for of, lines in space.ANALOGIES.items() if languages.issuperset(of) for line in lines}
    assert {" ".join((*analogy.terms, analogy.expected)) for analogy in analogies} == lines


def test_hardly_trained_pieces_are_no_neighbours(tiny_translator, tokenizer) -> None:
    model = build_tiny_model(tokenizer)
    with torch.no_grad():
        model.target_matrix[300:340] *= 0.3
    untrained = make_translator(model, tokenizer)
    vector = model.target_matrix[310:311].detach()
    full, short = (space.cosines(translator, vector, [[]])[0] for translator in (tiny_translator, untrained))
    assert 310 in [piece.id for piece in space.nearest_pieces(tiny_translator, full)]
    assert not {piece.id for piece in space.nearest_pieces(untrained, short, 60)} & set(range(300, 340))


def test_shipped_models_hold_some_analogies(shipped_transformers) -> None:
    for translator in shipped_transformers:
        analogies = space.analogies(translator)
        holding = [analogy for analogy in analogies if analogy.holds]
        assert len(holding) >= 8 and analogies[: len(holding)] == holding
        unit, pieces = unit_rows(translator), translator.tokenizer.pieces
        for analogy in analogies:
            if analogy.split_words:
                continue
            a, b, c, expected = (pieces.index(f"▁{word}") for word in (*analogy.terms, analogy.expected))
            best, cosine = by_scipy(translator, unit[a] - unit[b] + unit[c], [a, b, c], 1)[0]
            assert analogy.nearest.id == best and analogy.nearest.cosine == pytest.approx(cosine, abs=1e-5)
            assert analogy.holds == (best == expected)

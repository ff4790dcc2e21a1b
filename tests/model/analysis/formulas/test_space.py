"""Nearest pieces and sums of words, by scipy's cosine over the whole table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from model.analysis.formulas import space
from model.checkpoint import Checkpoint
from model.trace.tokens import is_byte, is_symbol
from model.translator import Translator
from tests.conftest import build_tiny_model


def text_pieces(translator) -> list[str]:
    """Pieces as a person would type them."""
    return [
        piece.removeprefix("▁")
        for piece in translator.tokenizer.pieces
        if piece.startswith("▁") and piece.strip("▁") and not is_symbol(piece) and not is_byte(piece)
    ]


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


def test_the_nearest_are_scipys(tiny_translator) -> None:
    a, b, c = text_pieces(tiny_translator)[3:6]
    vector, ids = space.total(tiny_translator, space.terms(f"{a} - {b} + {c}"))
    table = tiny_translator.model.embedding.weight.detach().numpy()
    unit = table / np.linalg.norm(table, axis=-1, keepdims=True)
    expected = unit[ids[0]] - unit[ids[1]] + unit[ids[2]]
    np.testing.assert_allclose(vector.numpy(), expected, atol=1e-6)
    (found,) = space.nearest(tiny_translator, vector[None], [ids], count=7)
    for mine, (theirs, cosine) in zip(found, by_scipy(tiny_translator, expected, ids, 7), strict=True):
        assert mine.id == theirs and mine.cosine == pytest.approx(cosine, abs=1e-5)
        assert mine.token == tiny_translator.tokenizer.pieces[mine.id] and mine.id not in ids


def test_many_at_once_are_as_one_by_one(tiny_translator) -> None:
    vectors = torch.randn(3, 32, generator=torch.Generator().manual_seed(0))
    together = space.nearest(tiny_translator, vectors, [[5], [], [9, 10]])
    alone = [
        space.nearest(tiny_translator, vector[None], [without])[0]
        for vector, without in zip(vectors, ([5], [], [9, 10]))
    ]
    assert [[n.id for n in row] for row in together] == [[n.id for n in row] for row in alone]


@pytest.mark.parametrize(
    ("text", "summands"),
    [
        ("boat", ((1, "boat"),)),
        ("a − b + c", ((1, "a"), (-1, "b"), (1, "c"))),
        (" a - b ", ((1, "a"), (-1, "b"))),
        ("well-known + x", ((1, "well-known"), (1, "x"))),
    ],
)
def test_sums_are_read_as_they_are_written(text, summands) -> None:
    assert space.terms(text) == summands


@pytest.mark.parametrize("text", ["", "a b", "a - ", "− a", "a + + b"])
def test_what_is_no_sum_is_refused_in_words(text) -> None:
    with pytest.raises(ValueError, match="not a sum of words"):
        space.terms(text)


def test_a_word_of_several_pieces_is_refused_with_its_pieces(tiny_translator) -> None:
    with pytest.raises(ValueError, match=r"'Donaudampfschiff' is \d+ pieces"):
        space.piece_of(tiny_translator, "Donaudampfschiff")
    pieces = tiny_translator.tokenizer.pieces
    whole = [piece.removeprefix("▁") for piece in pieces if piece.strip("▁") and piece.startswith("▁")]
    for word in whole[:5]:
        assert pieces[space.piece_of(tiny_translator, word)] == f"▁{word}"
    inside = next(piece for piece in pieces if piece.isalpha() and len(piece) > 1 and f"▁{piece}" not in pieces)
    with pytest.raises(ValueError, match="pieces in this vocabulary"):
        space.piece_of(tiny_translator, inside)  # as a word of its own it is spelled with a space before it


def test_pieces_that_were_never_trained_are_nobodys_neighbours(tiny_translator, tokenizer) -> None:
    model = build_tiny_model(tokenizer)
    with torch.no_grad():
        model.target_matrix[300:340] *= 0.3
    other = Translator(Checkpoint("short", model, tokenizer, ("de-en",), {}, "5" * 16), torch.device("cpu"))
    vector = model.target_matrix[310:311].detach()
    assert 310 in [one.id for one in space.nearest(tiny_translator, vector, [[]])[0]], "the like, of full length"
    assert not {one.id for one in space.nearest(other, vector, [[]], count=60)[0]} & set(range(300, 340))


def test_the_shipped_tables_hold_some_sums_and_say_so_by_themselves(shipped_transformers) -> None:
    """The examples on the page are those that hold: here each is looked up again, by numpy."""
    for translator in shipped_transformers:
        found = space.analogies(translator)
        holding = [analogy for analogy in found if analogy.holds]
        assert len(holding) >= 8 and found[: len(holding)] == holding
        table, pieces = translator.model.embedding.weight.detach().numpy(), translator.tokenizer.pieces
        unit = table / np.linalg.norm(table, axis=-1, keepdims=True)
        for analogy in found:
            a, b, c, wanted = (pieces.index(f"▁{word}") for word in (*analogy.terms, analogy.expected))
            best, cosine = by_scipy(translator, unit[a] - unit[b] + unit[c], [a, b, c], 1)[0]
            assert analogy.found.id == best and analogy.found.cosine == pytest.approx(cosine, abs=1e-5)
            assert analogy.holds == (best == wanted)

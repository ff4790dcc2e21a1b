"""The embedding as a space: a piece's nearest neighbours by cosine, and what a - b + c comes to.

Analogies as sums of vectors: Mikolov, Yih and Zweig 2013, "Linguistic regularities in continuous space word
representations". The terms themselves are left out of the answers, as there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.trace.language import Refusal
from model.trace.tokens import is_byte, is_symbol
from model.trace.words import SPACE
from model.translator import Translator

RANKS = 50  # how far down an expected piece is looked for
# a, b, c and what a - b + c should come to. Nothing here is claimed: analogies() says which hold in a model's table.
TRIED = (
    "father man woman mother",
    "brother man woman sister",
    "son man woman daughter",
    "boy man woman girl",
    "he man woman she",
    "his he she her",
    "him he she her",
    "men man woman women",
    "dogs dog child children",
    "walking walk play playing",
    "smaller small big bigger",
    "third three four fourth",
    "Germany German French France",
    "Vater Mann Frau Mutter",
    "Bruder Mann Frau Schwester",
    "Sohn Mann Frau Tochter",
    "Junge Mann Frau Mädchen",
    "er Mann Frau sie",
    "Männer Mann Frau Frauen",
    "Hunde Hund Kind Kinder",
    "kleiner klein gut besser",
    "dog Hund Katze cat",
    "man Mann Frau woman",
    "red rot blau blue",
    "two zwei drei three",
    "house Haus Baum tree",
    "père homme femme mère",
    "frère homme femme sœur",
    "hommes homme femme femmes",
    "chien dog cat chat",
    "rouge red blue bleu",
    "deux two three trois",
)


@dataclass(frozen=True)
class Neighbour:
    """A piece of the vocabulary and its cosine to what was asked for."""

    token: str
    id: int
    cosine: float


def piece_of(translator: Translator, word: str) -> int:
    """The id of a word that is one piece of the target's vocabulary: with a space before it, or bare where encoding the
    word gives it alone, as it does not with a piece of longer words. ValueError, in words, for one that is several."""
    tokenizer = translator.tokenizer
    if SPACE + word in tokenizer.pieces:
        return tokenizer.pieces.index(SPACE + word)
    ids = [i for i in tokenizer.encode(word) if not is_symbol(tokenizer.pieces[i])]
    if len(ids) == 1 and tokenizer.pieces[ids[0]] == word:
        return ids[0]
    pieces = tokenizer.tokens(ids)
    raise Refusal(
        "{word} is {n} pieces in this vocabulary: {pieces}. Type one that is a single piece.",
        word=repr(word),
        n=len(pieces),
        pieces=" ".join(pieces),
    )


def terms(text: str) -> tuple[tuple[int, str], ...]:
    """ "a - b + c" -> ((1, "a"), (-1, "b"), (1, "c")). ValueError, in words, for what is no such sum."""
    parts = re.split(r"\s+([+\-−])\s+", text.strip())
    words = [word.strip() for word in parts[0::2]]
    if not all(words) or any(" " in word for word in words):
        raise Refusal(
            "{text} is not a sum of words: write it like a − b + c, with spaces around the signs.", text=repr(text)
        )
    return tuple(zip((1, *(1 if sign == "+" else -1 for sign in parts[1::2])), words))


@torch.inference_mode()
def nearest(
    translator: Translator, vectors: Tensor, without: Sequence[Sequence[int]], *, count: int = 10
) -> list[list[Neighbour]]:
    """The pieces nearest to each of vectors [n, d_model] by cosine, best first; `without`: for each, ids to leave out.
    Symbols and single bytes are no pieces of text, and left out, too; so are pieces that this model was hardly ever
    trained on, whose rows are less than half as long as the median one and lie where they happened to begin."""
    matrix, pieces = translator.model.target_matrix, translator.tokenizer.pieces
    lengths = matrix.norm(dim=-1).clamp_min(1e-12)
    unit = torch.nn.functional.normalize(vectors.to(matrix), dim=-1)
    cosines = (matrix @ unit.T / lengths[:, None]).T.float()  # [n, vocabulary]
    cosines[:, lengths < lengths.median() / 2] = -2.0
    cosines[:, [i for i, piece in enumerate(pieces) if is_symbol(piece) or is_byte(piece)]] = -2.0
    for row, ids in zip(cosines, without, strict=True):
        row[list(ids)] = -2.0
    best, ids = cosines.topk(min(count, len(pieces)), dim=-1)
    return [
        [Neighbour(pieces[i], i, value) for i, value in zip(row.tolist(), values.tolist()) if value > -2.0]
        for row, values in zip(ids, best)
    ]


def total(translator: Translator, summands: Sequence[tuple[int, str]]) -> tuple[Tensor, list[int]]:
    """The sum of unit vectors [d_model], each with its sign, and the ids of the pieces."""
    ids = [piece_of(translator, word) for _, word in summands]
    signs = torch.tensor([sign for sign, _ in summands], device=translator.device)
    rows = torch.nn.functional.normalize(translator.model.target_matrix[ids].detach().float(), dim=-1)
    return signs.float() @ rows, ids


@dataclass(frozen=True)
class Analogy:
    """a - b + c, what was hoped for, and what the table says: the nearest piece, and the rank of the one hoped for."""

    terms: tuple[str, str, str]
    expected: str
    found: Neighbour
    rank: int

    @property
    def holds(self) -> bool:
        return self.rank == 1

    @property
    def text(self) -> str:
        """As one would type it."""
        return "{} − {} + {}".format(*self.terms)


def analogies(translator: Translator) -> list[Analogy]:
    """Those of TRIED whose words are single pieces here, with what becomes of them; those that hold come first."""
    asked, vectors, without = [], [], []
    for line in TRIED:
        *given, expected = line.split()
        try:
            vector, ids = total(translator, tuple(zip((1, -1, 1), given)))
            wanted = piece_of(translator, expected)
        except ValueError:  # a word that this vocabulary spells in pieces
            continue
        asked.append((given, expected, wanted))
        vectors.append(vector)
        without.append(ids)
    if not asked:
        return []
    found = []
    for (given, expected, wanted), row in zip(asked, nearest(translator, torch.stack(vectors), without, count=RANKS)):
        rank = next((i for i, neighbour in enumerate(row, 1) if neighbour.id == wanted), len(row) + 1)
        found.append(Analogy(tuple(given), expected, row[0], rank))
    return sorted(found, key=lambda analogy: analogy.rank)

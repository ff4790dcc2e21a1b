"""The embedding as a space: a piece's nearest neighbours by cosine, and what a - b + c comes to.

Analogies as sums of vectors: Mikolov, Yih and Zweig 2013, "Linguistic regularities in continuous space word
representations". The terms themselves are left out of the answers, as there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import is_byte, is_symbol
from attention_atlas.model.trace.words import SPACE
from attention_atlas.model.translator import Translator

# a, b, c and what a - b + c should come to, by the languages of their words. Nothing here is claimed: analogies() says
# which hold in a model's table.
TRIED = {
    ("en",): (
        "king man woman queen",
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
    ),
    ("de",): (
        "König Mann Frau Königin",
        "Vater Mann Frau Mutter",
        "Bruder Mann Frau Schwester",
        "Sohn Mann Frau Tochter",
        "Junge Mann Frau Mädchen",
        "er Mann Frau sie",
        "Männer Mann Frau Frauen",
        "Hunde Hund Kind Kinder",
        "kleiner klein gut besser",
    ),
    ("de", "en"): (
        "dog Hund Katze cat",
        "man Mann Frau woman",
        "red rot blau blue",
        "two zwei drei three",
        "house Haus Baum tree",
    ),
    ("fr",): (
        "roi homme femme reine",
        "père homme femme mère",
        "frère homme femme sœur",
        "hommes homme femme femmes",
    ),
    ("en", "fr"): (
        "chien dog cat chat",
        "rouge red blue bleu",
        "deux two three trois",
    ),
}


@dataclass(frozen=True)
class Neighbour:
    """A piece of the vocabulary and its cosine to what was asked for."""

    token: str
    id: int
    cosine: float


def pieces_of(translator: Translator, word: str) -> list[int]:
    """The ids of a word in the target's vocabulary: one piece where one stands after a space, else as many as
    encoding gives. A Refusal for a word of which the vocabulary has no pieces."""
    tokenizer = translator.tokenizer
    if SPACE + word in tokenizer.pieces:
        return [tokenizer.pieces.index(SPACE + word)]
    ids = [i for i in tokenizer.encode(word) if not is_symbol(tokenizer.pieces[i])]
    if not ids:
        raise Refusal("This vocabulary has no pieces for {word}.", word=repr(word))
    return ids


def vector_of(translator: Translator, ids: Sequence[int]) -> Tensor:
    """The unit vector of a word, float32 [d_model]: of its row, or of the mean of its pieces' rows."""
    return torch.nn.functional.normalize(translator.model.target_matrix[list(ids)].detach().float().mean(0), dim=0)


def terms(text: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """ "a - b + c = d" -> (((1, "a"), (-1, "b"), (1, "c")), "d"); without "= d", "". ValueError, in words, for what is
    no such sum."""
    total, *expected = re.split(r"\s+=\s+", text.strip())
    parts = re.split(r"\s+([+\-−])\s+", total)
    words = [word.strip() for word in parts[0::2]]
    if len(expected) > 1 or not all(words) or any(" " in word for word in (*words, *expected)):
        raise Refusal(
            "{text} is not a sum of words: write it like a − b + c, with spaces around the signs.", text=repr(text)
        )
    return tuple(zip((1, *(1 if sign == "+" else -1 for sign in parts[1::2])), words)), "".join(expected)


@torch.inference_mode()
def cosines(translator: Translator, vectors: Tensor, without: Sequence[Sequence[int]]) -> Tensor:
    """The cosine of each of vectors [n, d_model] to every piece, float32 [n, vocabulary]; -2 for what is no answer:
    `without`, for each vector, ids to leave out; symbols and single bytes, which are no pieces of text; and pieces that
    this model was hardly ever trained on, whose rows are less than half as long as the median one and lie where they
    happened to begin."""
    matrix, pieces = translator.model.target_matrix, translator.tokenizer.pieces
    lengths = matrix.norm(dim=-1).clamp_min(1e-12)
    unit = torch.nn.functional.normalize(vectors.to(matrix), dim=-1)
    found = (matrix @ unit.T / lengths[:, None]).T.float()  # [n, vocabulary]
    found[:, lengths < lengths.median() / 2] = -2.0
    found[:, [i for i, piece in enumerate(pieces) if is_symbol(piece) or is_byte(piece)]] = -2.0
    for row, ids in zip(found, without, strict=True):
        row[list(ids)] = -2.0
    return found


def best(translator: Translator, row: Tensor, count: int = 10) -> list[Neighbour]:
    """Of cosines [vocabulary] the largest, with their pieces."""
    values, ids = row.topk(min(count, len(row)))
    pieces = translator.tokenizer.pieces
    return [Neighbour(pieces[i], i, value) for i, value in zip(ids.tolist(), values.tolist()) if value > -2.0]


def rank(translator: Translator, row: Tensor, vector: Tensor, expected: Sequence[int]) -> int:
    """At which place of cosines [vocabulary] to vector [d_model] an expected word stands, from 1: a word of several
    pieces where the mean of its pieces would."""
    cosine = row[expected[0]] if len(expected) == 1 else _cosine(vector, vector_of(translator, expected))
    return 1 + int((row > cosine).sum())


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(a.float(), b.float(), dim=0)


def total(translator: Translator, summands: Sequence[tuple[int, str]]) -> tuple[Tensor, list[list[int]]]:
    """The sum of unit vectors [d_model], each with its sign, and each word's ids."""
    ids = [pieces_of(translator, word) for _, word in summands]
    return sum(sign * vector_of(translator, found) for (sign, _), found in zip(summands, ids)), ids


@dataclass(frozen=True)
class Analogy:
    """a - b + c, what was hoped for, and what the table says: the nearest piece, and the rank of the word hoped for.
    several: those of the words that are several pieces, each the mean of its pieces here."""

    terms: tuple[str, str, str]
    expected: str
    found: Neighbour
    rank: int
    several: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the word hoped for is the nearest: of single pieces alone, since the mean of several may have a piece
        in common with the terms."""
        return self.rank == 1 and not self.several

    @property
    def text(self) -> str:
        """As one would type it."""
        return "{} − {} + {}".format(*self.terms)


def analogies(translator: Translator) -> list[Analogy]:
    """Those of TRIED in the languages that the model reads and writes, with what becomes of them; those that hold come
    first."""
    known = {language_of(code) for direction in translator.directions for code in parse_direction(direction)}
    asked = []
    for line in chain.from_iterable(lines for languages, lines in TRIED.items() if known.issuperset(languages)):
        *given, expected = line.split()
        try:
            vector, ids = total(translator, tuple(zip((1, -1, 1), given)))
            asked.append((given, expected, vector, ids, pieces_of(translator, expected)))
        except ValueError:  # a word that this vocabulary cannot spell
            continue
    if not asked:
        return []
    vectors = torch.stack([vector for _, _, vector, *_ in asked])
    rows = cosines(translator, vectors, [[*chain.from_iterable(ids)] for *_, ids, _ in asked])
    found = []
    for (given, expected, vector, ids, wanted), row in zip(asked, rows):
        several = [word for word, pieces in zip((*given, expected), (*ids, wanted)) if len(pieces) > 1]
        (nearest,) = best(translator, row, 1)
        found.append(Analogy(tuple(given), expected, nearest, rank(translator, row, vector, wanted), tuple(several)))
    return sorted(found, key=lambda analogy: (bool(analogy.several), analogy.rank))

"""The embedding as a vector space: nearest neighbours by cosine, and word analogies a - b + c.

Analogies as sums of vectors follow Mikolov, Yih and Zweig 2013, "Linguistic regularities in continuous space word
representations"; as there, the terms themselves are no answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import is_byte, is_symbol
from attention_atlas.model.trace.words import SPACE
from attention_atlas.model.translator import Translator

# a, b, c and the expected a - b + c, by the languages of the words. analogies() measures which hold for a model.
ANALOGIES = {
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
    """A piece of the vocabulary and its cosine to a vector."""

    token: str
    id: int
    cosine: float


def word_ids(translator: Translator, word: str) -> list[int]:
    """Return the ids of a word in the target vocabulary: its piece after a space, or else its encoding. Raises a
    Refusal if the vocabulary has no pieces for it."""
    tokenizer = translator.tokenizer
    if SPACE + word in tokenizer.pieces:
        return [tokenizer.pieces.index(SPACE + word)]
    ids = [i for i in tokenizer.encode(word) if not is_symbol(tokenizer.pieces[i])]
    if not ids:
        raise Refusal("This vocabulary has no pieces for {word}.", word=repr(word))
    return ids


def word_vector(translator: Translator, ids: Sequence[int]) -> Tensor:
    """Return the unit vector of a word, float32 [d_model]: of the mean of its pieces' rows."""
    return normalize(translator.model.target_matrix[list(ids)].detach().float().mean(0), dim=0)


def parse_sum(text: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Parse "a - b + c = d" to (((1, "a"), (-1, "b"), (1, "c")), "d"); without "= d" the last item is "".

    Raises a Refusal for any other text.
    """
    total, *expected = re.split(r"\s+=\s+", text.strip())
    parts = re.split(r"\s+([+\-−])\s+", total)
    words = [word.strip() for word in parts[0::2]]
    if len(expected) > 1 or not all(words) or any(" " in word for word in (*words, *expected)):
        raise Refusal(
            "{text} is not a word analogy: write it as a − b + c, with spaces around the signs.", text=repr(text)
        )
    return tuple(zip((1, *(1 if sign == "+" else -1 for sign in parts[1::2])), words)), "".join(expected)


@torch.inference_mode()
def cosines(translator: Translator, vectors: Tensor, without: Sequence[Sequence[int]]) -> Tensor:
    """Return the cosine of each of vectors [n, d_model] to every piece, float32 [n, vocabulary].

    Pieces that are no answer get -2: the ids of `without` (for each vector), symbols, single bytes, and pieces whose
    rows are less than half as long as the median one, since those were hardly trained.
    """
    matrix, pieces = translator.model.target_matrix, translator.tokenizer.pieces
    lengths = matrix.norm(dim=-1).clamp_min(1e-12)
    unit = normalize(vectors.to(matrix), dim=-1)
    rows = (matrix @ unit.T / lengths[:, None]).T.float()  # [n, vocabulary]
    rows[:, lengths < lengths.median() / 2] = -2.0
    rows[:, [i for i, piece in enumerate(pieces) if is_symbol(piece) or is_byte(piece)]] = -2.0
    for row, ids in zip(rows, without, strict=True):
        row[list(ids)] = -2.0
    return rows


def nearest_pieces(translator: Translator, row: Tensor, count: int = 10) -> list[Neighbour]:
    """Return the pieces with the largest of cosines [vocabulary]."""
    values, ids = row.topk(min(count, len(row)))
    pieces = translator.tokenizer.pieces
    return [Neighbour(pieces[i], i, value) for i, value in zip(ids.tolist(), values.tolist()) if value > -2.0]


def rank_of(translator: Translator, row: Tensor, vector: Tensor, expected: Sequence[int]) -> int:
    """Return the rank, from 1, of an expected word among cosines [vocabulary] to vector [d_model]. A word of several
    pieces ranks where the mean of its pieces would."""
    if len(expected) == 1:
        cosine = row[expected[0]]
    else:
        cosine = cosine_similarity(vector.float(), word_vector(translator, expected), dim=0)
    return 1 + int((row > cosine).sum())


def sum_words(translator: Translator, summands: Sequence[tuple[int, str]]) -> tuple[Tensor, list[list[int]]]:
    """Return the signed sum of the words' unit vectors [d_model], and each word's ids."""
    ids = [word_ids(translator, word) for _, word in summands]
    return sum(sign * word_vector(translator, pieces) for (sign, _), pieces in zip(summands, ids)), ids


@dataclass(frozen=True)
class Analogy:
    """a - b + c with its expected word, the nearest piece, and the rank of the expected word.

    split_words: those of the words that consist of several pieces; each is represented by the mean of its pieces.
    """

    terms: tuple[str, str, str]
    expected: str
    nearest: Neighbour
    rank: int
    split_words: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the expected word is the nearest. Never true with split words, whose means may share a piece with
        the terms."""
        return self.rank == 1 and not self.split_words

    @property
    def text(self) -> str:
        """The sum as one types it."""
        return "{} − {} + {}".format(*self.terms)


def analogies(translator: Translator) -> list[Analogy]:
    """Test the ANALOGIES in the languages of a model; those that hold come first. Analogies with words that the
    vocabulary cannot spell are left out."""
    known = {language_of(code) for direction in translator.directions for code in parse_direction(direction)}
    sums = []
    for line in chain.from_iterable(lines for languages, lines in ANALOGIES.items() if known.issuperset(languages)):
        *terms, expected = line.split()
        try:
            vector, ids = sum_words(translator, tuple(zip((1, -1, 1), terms)))
            sums.append((terms, expected, vector, ids, word_ids(translator, expected)))
        except ValueError:
            continue
    if not sums:
        return []
    vectors = torch.stack([vector for _, _, vector, *_ in sums])
    rows = cosines(translator, vectors, [[*chain.from_iterable(ids)] for *_, ids, _ in sums])
    tested = []
    for (terms, expected, vector, ids, expected_ids), row in zip(sums, rows):
        split = [word for word, pieces in zip((*terms, expected), (*ids, expected_ids)) if len(pieces) > 1]
        (nearest,) = nearest_pieces(translator, row, 1)
        rank = rank_of(translator, row, vector, expected_ids)
        tested.append(Analogy(tuple(terms), expected, nearest, rank, tuple(split)))
    return sorted(tested, key=lambda analogy: (bool(analogy.split_words), analogy.rank))

"""Two sentences that differ in little: how far apart the vectors of the words that both have are, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.again import recorded
from attention_atlas.model.analysis.sentences import FOLDER
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE
from attention_atlas.model.translator import Translator


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences of one language, what differs between them, and a word of both to follow."""

    kind: str
    first: str
    second: str
    word: str


def languages() -> tuple[str, ...]:
    """The languages that have pairs."""
    return tuple(sorted(path.stem.split(".")[1] for path in FOLDER.glob("minimal.*.tsv")))


def minimal_pairs(language: str) -> tuple[MinimalPair, ...]:
    """Twelve of our own, one of each kind; none for a language that has no list."""
    path = FOLDER / f"minimal.{language}.tsv"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else ()
    return tuple(MinimalPair(*line.split("\t")) for line in lines)


@dataclass(frozen=True, eq=False)
class Alike:
    """words: those of the second sentence that the first has, too, as often as both have them. cosine float64 [words,
    layers + 1]: between a word's vector here and there, as it enters the encoder (with its position) and after each
    layer, the last one as the decoder reads it. others [words, layers + 1]: the mean of the cosines between this
    word and all other words of the first sentence, without which a cosine says little: vectors of any two words may
    point one way (Ethayarajh 2019)."""

    words: tuple[str, ...]
    cosine: np.ndarray
    others: np.ndarray


def alike(translator: Translator, first: TranslationTrace, second: TranslationTrace) -> Alike:
    """Of two traces of one model, a word of several pieces being their mean. Refusals for a model that is no
    Transformer, for traces that cannot be run again, and for sentences without a common word."""
    check_transformer(translator.model)
    groups = [content_words(trace.source_tokens) for trace in (first, second)]
    texts = [_texts(trace, found) for trace, found in zip((first, second), groups)]
    pairs = shared(*texts)
    if not pairs:
        raise Refusal("The two sentences have no word in common.")
    there, here = (_states(translator, trace, found) for trace, found in zip((first, second), groups))
    cosines = np.einsum("swd,sxd->swx", here, there)  # [station, word here, word there]
    cosine = np.array([cosines[:, mine, theirs] for theirs, mine in pairs])
    others = np.array([cosines[:, mine].sum(-1) - one for (_, mine), one in zip(pairs, cosine)])
    return Alike(tuple(texts[1][mine] for _, mine in pairs), cosine, others / max(1, there.shape[1] - 1))


def shared(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """(position in the first, in the second) of every word that both have, in the second's order: the same letters,
    large or small; of a word that stands there twice each with its own."""
    free = {}
    for at, word in enumerate(first):
        free.setdefault(word.casefold(), []).append(at)
    return [(free[key].pop(0), at) for at, word in enumerate(second) if free.get(key := word.casefold())]


def _texts(trace: TranslationTrace, groups: Groups) -> list[str]:
    return ["".join(trace.source_tokens[i] for i in group).replace(SPACE, "") for group in groups]


def _states(translator: Translator, trace: TranslationTrace, groups: Groups) -> np.ndarray:
    """[layers + 1, words, d_model], of length 1."""
    output = recorded(translator, trace)
    records = output.layers(Side.ENCODER)
    streams = [records[0].before, *(record.after for record in records[:-1]), output.memory]
    states = np.stack([stream[0].double().cpu().numpy() for stream in streams])
    pooled = np.stack([states[:, list(group)].mean(1) for group in groups], 1)
    return pooled / np.linalg.norm(pooled, axis=-1, keepdims=True)

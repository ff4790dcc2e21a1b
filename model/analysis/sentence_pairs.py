"""Compare two sentences or two translations that differ in little.

Minimal pairs are two source sentences: compare_shared_words() measures how the encoder's vectors of their common words
differ, layer by layer. Contrastive pairs are two translations of one source: contrast() gives the trace of each. Both
kinds ship as lists beside model/analysis/sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.analysis.sentences import FOLDER
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import spell_word
from attention_atlas.model.translator import Translator


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences of one language, the kind of difference between them, and a word of both to follow."""

    kind: str
    first: str
    second: str
    word: str


def minimal_pair_languages() -> tuple[str, ...]:
    """Return the languages that have minimal pairs."""
    return tuple(sorted(path.stem.split(".")[1] for path in FOLDER.glob("minimal.*.tsv")))


def minimal_pairs(language: str) -> tuple[MinimalPair, ...]:
    """Return the minimal pairs of a language, one of each kind; none if it has no list."""
    return tuple(MinimalPair(*row) for row in _read_table(f"minimal.{language}.tsv"))


@dataclass(frozen=True)
class ContrastivePair:
    """A correct and a wrong translation of a source, and the phenomenon that the mistake concerns."""

    phenomenon: str
    source: str
    right: str
    wrong: str


def contrastive_pairs(direction: str) -> tuple[ContrastivePair, ...]:
    """Return the contrastive pairs of a direction; none if it has no list."""
    return tuple(ContrastivePair(*row) for row in _read_table(f"pairs.{direction}.tsv"))


def _read_table(name: str) -> list[list[str]]:
    path = FOLDER / name
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


@dataclass(frozen=True, eq=False)
class SharedWords:
    """The words that two sentences share, and how similar their vectors in the encoder are.

    words     of the second sentence; a word that occurs several times in both is matched several times
    cosine    float64 [words, layers + 1]: between a word's vectors in the two sentences, as it enters the encoder
              (with its position) and after each layer, the last one as the decoder reads it
    baseline  float64 [words, layers + 1]: the mean cosine between this word and all other words of the first sentence.
              A cosine means little without it, because the vectors of any two words may be similar (Ethayarajh 2019)
    """

    words: tuple[str, ...]
    cosine: np.ndarray
    baseline: np.ndarray


def compare_shared_words(translator: Translator, first: TranslationTrace, second: TranslationTrace) -> SharedWords:
    """Compare the common words of two traces of one model; a word of several tokens is their mean.

    Raises a Refusal for a model that is not a Transformer, for traces that cannot be run again, and for sentences
    without a common word.
    """
    check_transformer(translator.model)
    traces = (first, second)
    groups = [content_words(trace.source_tokens) for trace in traces]
    texts = [[spell_word(trace.source_tokens, group) for group in words] for trace, words in zip(traces, groups)]
    pairs = match_words(*texts)
    if not pairs:
        raise Refusal("The two sentences have no word in common.")
    states = (_word_states(translator, trace, words) for trace, words in zip(traces, groups))
    cosines = np.einsum("swd,sxd->swx", *states)  # [layer, word of the first, word of the second]
    cosine = np.array([cosines[:, i, j] for i, j in pairs])
    others = np.array([cosines[:, :, j].sum(-1) - own for (_, j), own in zip(pairs, cosine)])
    return SharedWords(tuple(texts[1][j] for _, j in pairs), cosine, others / max(1, len(texts[0]) - 1))


def match_words(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Return (position in the first, position in the second) of every common word, in the order of the second. Case is
    ignored; repeated words are matched in order."""
    positions = {}
    for i, word in enumerate(first):
        positions.setdefault(word.casefold(), []).append(i)
    return [(positions[key].pop(0), j) for j, word in enumerate(second) if positions.get(key := word.casefold())]


def _word_states(translator: Translator, trace: TranslationTrace, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the unit vectors of words before the encoder and after each layer: [layers + 1, words, d_model]."""
    output = record_pass(translator, trace)
    records = output.layers(Side.ENCODER)
    streams = [records[0].before, *(record.after for record in records[:-1]), output.memory]
    states = np.stack([stream[0].double().cpu().numpy() for stream in streams])
    pooled = np.stack([states[:, list(group)].mean(1) for group in groups], 1)
    return pooled / np.linalg.norm(pooled, axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Contrast:
    """The traces of two targets of one source, and the first step at which their tokens differ (None if equal)."""

    first: TranslationTrace
    second: TranslationTrace
    first_difference: int | None

    def margin(self, *, mean: bool) -> float:
        """Return by how many nats the first target is more probable, as the sum or the mean over its tokens."""
        total = np.mean if mean else np.sum
        return float(total(self.first.log_probability) - total(self.second.log_probability))


def contrast(translator: Translator, direction: str, source: str, targets: tuple[str, str]) -> Contrast:
    """Trace two targets of one source. Raises ValueError for a source or target that cannot be encoded."""
    first, second = (translator.trace(source, direction, target=target) for target in targets)
    steps = zip(first.target_ids, second.target_ids)
    return Contrast(first, second, next((step for step, (a, b) in enumerate(steps) if a != b), None))

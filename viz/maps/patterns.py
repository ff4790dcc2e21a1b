"""Names for the patterns of heads in one trace, from measured statistics; each reading shows its number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps.reduce import View
from attention_atlas.viz.words import Words, say

__all__ = ["Pattern", "head_patterns", "most_telling"]

MIN_SHARE = 0.4  # of the mass, for a pattern to be named
MIN_OVER_CHANCE = 1.5  # times the mass that an evenly spread head puts there
POINTED = 0.5  # a head points if its mean largest weight is above this
EVEN = 0.85  # a head spreads evenly if its entropy is above this share of the largest possible

NAMES = {
    "diagonal": say("diagonal"),
    "previous": say("previous token"),
    "own": say("own position"),
    "next": say("next token"),
    "copies": say("other copies of the same token"),
    "begin": say("begin-of-sentence sink"),
    "language": say("language-symbol sink"),
    "end": say("end-of-sentence sink"),
}


@dataclass(frozen=True)
class Pattern:
    """One head's mean row entropy in bits, its pattern's name, the pattern's share of the mass, and a sentence."""

    entropy: float
    name: Words
    share: float
    reading: Words


def entropy_bits(weights: np.ndarray) -> np.ndarray:
    """Return the Shannon entropy of each row in bits: weights [.., query, key] -> [.., query]; 0 log 0 = 0."""
    weights = weights.astype(np.float64)
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logs).sum(axis=-1)


def pattern_masks(kind: AttentionKind, keys: tuple[str, ...], num_queries: int) -> dict[str, np.ndarray]:
    """Return the cells of each pattern that this kind can have: key of NAMES -> bool [query, key]."""
    query, key = np.indices((num_queries, len(keys)))
    if kind in (AttentionKind.CROSS, AttentionKind.ALIGNMENT):
        slope = (len(keys) - 1) / max(1, num_queries - 1)
        masks = {"diagonal": np.abs(key - query * slope) <= 1}
    else:
        masks = {"previous": key == query - 1, "own": key == query}
        if kind == AttentionKind.ENCODER_SELF:
            masks["next"] = key == query + 1
            masks["copies"] = np.array([[a == b and i != j for j, b in enumerate(keys)] for i, a in enumerate(keys)])
    if is_symbol(keys[0]):
        masks["begin" if keys[0] == "<s>" else "language"] = key == 0
    if keys[-1] == "</s>":
        masks["end"] = key == len(keys) - 1
    return masks


def head_patterns(trace: TranslationTrace, kind: AttentionKind) -> tuple[tuple[Pattern, ...], ...]:
    """Return the pattern of every head of a kind, [layer][head].

    A pattern's share is its mean mass over the rows that can have it and that have several keys (the first row of the
    decoder's self-attention has one).
    """
    measure, interpret = pattern_functions(trace, kind)
    return tuple(tuple(map(interpret, layer)) for layer in trace.maps(kind).map_heads(measure))


def pattern_functions(
    trace: TranslationTrace, kind: AttentionKind
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], Pattern]]:
    """Return measure(weights [.., query, key]) -> [.., numbers], and interpret(one head's numbers) -> Pattern."""
    maps = trace.maps(kind)
    is_causal = kind == AttentionKind.DECODER_SELF
    queries, keys = maps.weights.shape[2:]
    allowed = np.tri(queries, keys, dtype=bool) if is_causal else np.ones((queries, keys), bool)
    free = allowed.sum(axis=1) > 1  # rows with several keys
    if not free.any():
        return (
            lambda weights: entropy_bits(weights).mean(axis=-1, keepdims=True),
            lambda numbers: Pattern(float(numbers[0]), say("one key"), 1.0, say("only one key to attend to")),
        )
    masks, chances = {}, {}
    for name, mask in pattern_masks(kind, maps.key_tokens, queries).items():
        rows = (mask & allowed).any(axis=1) & free
        if rows.any():
            masks[name] = rows, mask[rows].astype(np.float64)
            chances[name] = ((mask & allowed).sum(1) / allowed.sum(1))[rows].mean()
    most = float(np.log2(allowed.sum(axis=1)).mean())

    def measure(weights: np.ndarray) -> np.ndarray:
        masses = [np.einsum("...qk,qk->...q", weights[..., rows, :], mask).mean(-1) for rows, mask in masks.values()]
        pointed = weights[..., free, :].max(axis=-1).mean(axis=-1)
        return np.stack([entropy_bits(weights).mean(axis=-1), pointed, *masses], axis=-1)

    def interpret(numbers: np.ndarray) -> Pattern:
        entropy, pointed, *masses = map(float, numbers)
        return _pattern({name: (mass, chances[name]) for name, mass in zip(masks, masses)}, entropy, most, pointed)

    return measure, interpret


def _pattern(shares: dict[str, tuple[float, float]], entropy: float, most: float, pointed: float) -> Pattern:
    largest, (share, chance) = max(shares.items(), key=lambda item: item[1][0])
    name = NAMES[largest]
    if share >= MIN_SHARE and share >= MIN_OVER_CHANCE * chance:
        reading = say("mostly {name} ({share} of its weight)", name=name, share=f"{share:.0%}")
        return Pattern(entropy, name, share, reading)
    if entropy >= EVEN * most:
        reading = say("spread evenly: {bits} of at most {most} bits", bits=f"{entropy:.2f}", most=f"{most:.2f}")
        return Pattern(entropy, say("even"), entropy / most if most else 1.0, reading)
    if pointed >= POINTED:
        reading = say("usually picks one token per row ({share} of the weight)", share=f"{pointed:.0%}")
        return Pattern(entropy, say("pointed"), pointed, reading)
    reading = say("mixed; the largest share, {share}, is on the {name}", name=name, share=f"{share:.0%}")
    return Pattern(entropy, say("mixed"), share, reading)


def most_telling(trace: TranslationTrace) -> View:
    """Return the cross-attention head that points most clearly.

    Its score is the mean, over the rows that predict a word, of the largest weight on a source word, times the share of
    different words that it points at. If the maps are computed on access, the first head is returned.
    """
    kind = trace.kinds[-1]  # cross-attention, or a recurrent network's alignment
    sources = [i for i, token in enumerate(trace.source_tokens) if not is_symbol(token)]
    rows = [i for i, token in enumerate(trace.target_tokens) if not is_symbol(token)]
    if not sources or not rows or trace.maps(kind).is_computed:
        return View(kind)
    weights = trace.maps(kind).weights[:, :, rows][..., sources]  # [layers, heads, rows, sources]
    pointed = weights.argmax(-1)
    distinct = np.apply_along_axis(lambda row: len(set(row)), -1, pointed) / min(len(rows), len(sources))
    score = weights.max(-1).mean(-1) * distinct  # [layers, heads]
    layer, head = np.unravel_index(score.argmax(), score.shape)
    return View(kind, int(layer), int(head))

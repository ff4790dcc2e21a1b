"""Sentences that are cut into words already, as pieces that know their word; and maps between words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.alignment.voters import RowToken
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.translator import Translator

SYMBOL = -1


@dataclass(frozen=True, eq=False)
class Pieces:
    """source_ids as the encoder reads them, target_ids y1 .. yT `</s>`; beside each the word that it belongs to, −1 for
    symbols. sources, targets: how many words there are; a word of which nothing is left has no piece."""

    source_ids: tuple[int, ...]
    source_words: np.ndarray
    target_ids: tuple[int, ...]
    target_words: np.ndarray
    sources: int
    targets: int


def pieces(translator: Translator, direction: str, source: Sequence[str], target: Sequence[str]) -> Pieces:
    """Word by word, which gives what the whole sentence would, since no piece goes across a space. What is beyond the
    model's length is cut off and stays unlinked. ValueError for a sentence without words."""
    if not source or not target:
        raise ValueError("a sentence without words has no links")
    tokenizer, (from_code, to_code) = translator.tokenizer, parse_direction(direction)
    frame, letter = (tokenizer.encode_source(text, to_code, from_code) for text in ("", "a"))
    before = next((at for at, pair in enumerate(zip(frame, letter)) if pair[0] != pair[1]), len(frame))
    after = len(frame) - before
    longest = translator.config.max_length

    def cut(words: list[list[int]], room: int) -> tuple[list[int], list[int]]:
        flat = [(i, number) for number, ids in enumerate(words) for i in ids][:room]
        return [i for i, _ in flat], [number for _, number in flat]

    own = [tokenizer.encode_source(word, to_code, from_code) for word in source]
    ids, words = cut([found[before : len(found) - after] for found in own], longest - len(frame))
    prefix = translator.forced_prefix(direction)
    written, numbers = cut([tokenizer.encode(word) for word in target], longest - 2 - len(prefix))
    return Pieces(
        (*frame[:before], *ids, *frame[before:]),
        np.array([SYMBOL] * before + words + [SYMBOL] * after),
        (*prefix, *written, tokenizer.end_id),
        np.array([SYMBOL] * len(prefix) + numbers + [SYMBOL]),
        len(source),
        len(target),
    )


def between_words(maps: np.ndarray, found: Pieces, row: RowToken) -> np.ndarray:
    """maps [.., query, key] of a teacher-forced pass -> float64 [.., target word, source word + 1]: summed over a
    source word's pieces, averaged over a target word's (Kobayashi et al. 2020); the last column is what symbols got."""
    written = len(found.target_ids) - 1
    rows = maps[..., 1 : written + 1, :] if row is RowToken.READ else maps[..., :written, :]
    columns = np.zeros((len(found.source_words), found.sources + 1))
    columns[np.arange(len(found.source_words)), found.source_words] = 1.0  # −1 is the last one
    lines = (found.target_words[:written] == np.arange(found.targets)[:, None]).astype(np.float64)
    return (lines / np.maximum(lines.sum(1, keepdims=True), 1)) @ (rows.astype(np.float64) @ columns)

"""Maps between the words of a sentence that is in pieces. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.trace.alignment.voters import RowToken
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.words import word_groups


def words_of(tokens: Sequence[str]) -> Groups:
    """Positions by word, symbols left out."""
    return tuple(group for group in word_groups(tokens) if not is_symbol(tokens[group[0]]))


def between_words(maps: np.ndarray, source: Sequence[str], target: Sequence[str], row: RowToken) -> np.ndarray:
    """maps [.., query, key] of a decoder over a source -> float64 [.., target word, source word]: summed over a source
    word's pieces, a mean over a target word's (Kobayashi et al. 2020). target: y1 .. yT; what symbols got is not asked.
    The last token is read by no row: the row that predicted it stands for it."""
    maps, steps = maps.astype(np.float64), maps.shape[-2]
    across = np.stack([maps[..., list(group)].sum(-1) for group in words_of(source)], -1)
    rows = [[min(i + (row is RowToken.READ), steps - 1) for i in group] for group in words_of(target)]
    return np.stack([across[..., group, :].mean(-2) for group in rows], -2)

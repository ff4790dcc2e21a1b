"""What a row of the tokens' matrix stands over: words of the source, then words of the prefix. Importable without
torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE, word_groups


@dataclass(frozen=True)
class Columns:
    """source, prefix: groups of positions, in order, each position in one group; of source_tokens `<2en> x1 .. </s>`
    and of prefix_tokens `<s> y1 .. yt`, which the decoder had read when it wrote y(t+1)."""

    source: Groups
    prefix: Groups
    source_tokens: tuple[str, ...]
    prefix_tokens: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.source) + len(self.prefix)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each column says: pieces put together, without the space mark."""
        return tuple(
            "".join(tokens[i] for i in group).replace(SPACE, " ").strip() or SPACE
            for tokens, groups in self._sides
            for group in groups
        )

    @property
    def special(self) -> np.ndarray:
        """bool [column]: begin, end and language symbols, which no word of the sentence is."""
        return np.array([is_symbol(tokens[group[0]]) for tokens, groups in self._sides for group in groups], bool)

    @property
    def _sides(self) -> tuple:
        return (self.source_tokens, self.source), (self.prefix_tokens, self.prefix)

    def gather(self, source: np.ndarray, prefix: np.ndarray) -> np.ndarray:
        """float64 [column]: values of source [source] and prefix [prefix] positions, summed over each column's."""
        return np.array(
            [
                values[list(group)].sum()
                for values, groups in ((source, self.source), (prefix, self.prefix))
                for group in groups
            ],
            np.float64,
        )

    def masks(self) -> tuple[np.ndarray, np.ndarray]:
        """bool [column, source] and [column, prefix]: the positions of each column."""
        found = (
            np.zeros((len(self), len(self.source_tokens)), bool),
            np.zeros((len(self), len(self.prefix_tokens)), bool),
        )
        for column, group in enumerate(self.source):
            found[0][column, list(group)] = True
        for column, group in enumerate(self.prefix, start=len(self.source)):
            found[1][column, list(group)] = True
        return found


def columns(trace: TranslationTrace, step: int, *, words: bool = True) -> Columns:
    """The columns for row `step` of a trace: whole words, or single pieces."""
    source, prefix = trace.source_tokens, trace.decoder_inputs[: step + 1]
    if words:
        return Columns(word_groups(source), word_groups(prefix), source, prefix)
    return Columns(_singles(len(source)), _singles(len(prefix)), source, prefix)


def _singles(length: int) -> Groups:
    return tuple((i,) for i in range(length))

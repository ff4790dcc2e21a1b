"""The masks of a batch of two sentences, as the model makes them, and once more from lengths alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model.nets.masks import causal_mask, pad, padding_mask
from model.trace.translation import TranslationTrace
from model.translator import Translator


@dataclass(frozen=True, eq=False)
class BatchMasks:
    """True = may attend.

    tokens        the two sentences, padded to one length
    lengths       int [2]
    padding       bool [2, key]: the model's padding_mask() of the ids
    from_lengths  bool [2, key]: key < length
    causal        bool [target, target]: of the current translation's decoder
    """

    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    lengths: np.ndarray
    padding: np.ndarray
    from_lengths: np.ndarray
    causal: np.ndarray

    @property
    def agree(self) -> bool:
        return np.array_equal(self.padding, self.from_lengths)


def of_two(translator: Translator, trace: TranslationTrace, second: str | None = None) -> BatchMasks:
    """The trace's sentence beside `second`, or beside its own first words. ValueError if `second` is too long."""
    if second is None:
        words = trace.source_text.split()
        second = " ".join(words[:max(1, len(words) // 2)])
    ids = [list(trace.source_ids), translator.encode(second, trace.direction)]
    batch = pad(ids, translator.tokenizer.pad_id)  # [2, key]
    lengths = np.array([len(row) for row in ids])
    tokens = tuple(translator.tokenizer.tokens(row) for row in batch.tolist())
    return BatchMasks(
        (tokens[0], tokens[1]), lengths, padding_mask(batch, translator.tokenizer.pad_id)[:, 0, 0].numpy(),
        np.arange(batch.shape[1])[None] < lengths[:, None], causal_mask(len(trace.target_ids))[0, 0].numpy())

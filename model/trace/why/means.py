"""What heads and embeddings are on average over many sentences: what an ablation or an occlusion puts in place of one.
Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind

EARLY = 3  # positions 0, 1 and 2 have means of their own: begin symbols and first words are unlike all others


@dataclass(frozen=True, eq=False)
class Means:
    """digest: of the weights; sentences: over how many.

    source_embedding, target_embedding   float32 [d_model], of scaled token embeddings, without positions and symbols
    heads   kind -> float32 [layers, heads, d_head], of each head's output before the output projection
    early   kind -> float32 [3, layers, heads, d_head], the same at positions 0, 1 and 2 alone
    """

    digest: str
    sentences: int
    source_embedding: np.ndarray
    target_embedding: np.ndarray
    heads: dict[AttentionKind, np.ndarray]
    early: dict[AttentionKind, np.ndarray]

    def at(self, kind: AttentionKind, length: int) -> np.ndarray:
        """The mean output of each head by position: [layers, heads, length, d_head]."""
        layers, heads, width = self.heads[kind].shape
        found = np.broadcast_to(self.heads[kind][:, :, None], (layers, heads, length, width)).copy()
        first = min(EARLY, length)
        found[:, :, :first] = np.moveaxis(self.early[kind][:first], 0, 2)
        return found

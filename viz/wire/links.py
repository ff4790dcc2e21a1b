"""What travels to the page of word links: both sentences' words, how much each two have of each other, the links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def links(source: Sequence[str], target: Sequence[str], scores: np.ndarray, chosen: Sequence[tuple[int, int]]) -> dict:
    """A block. scores [target word, source word], shares of 1; chosen: (source word, target word)."""
    return {
        "type": "links",
        "words": {
            "source": [{"cell": "token", "text": word} for word in source],
            "target": [{"cell": "token", "text": word} for word in target],
        },
        "scores": np.round(scores, 3).tolist(),
        "links": [list(map(int, link)) for link in chosen],
    }

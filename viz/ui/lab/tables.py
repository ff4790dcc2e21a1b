"""What several panels on positions share."""

from __future__ import annotations

import numpy as np

from model.config import ModelConfig
from viz.ui.lab.panel import Scene
from viz.words import say

SECTION = say("Paper, section {n}", n="3.5")


def model_table(scene: Scene, length: int) -> np.ndarray:
    """What the model itself adds at positions 0 .. length - 1: float32 [length, d_model]."""
    return scene.translator.model.source_positions(0, length).detach().float().cpu().numpy()


def longest(config: ModelConfig) -> int:
    """How many positions a panel shows at most."""
    return min(256, config.max_length)


def last_pair(config: ModelConfig) -> int:
    """The index of the last pair of dimensions, a sine and a cosine."""
    return config.d_model // 2 - 1

"""What panels need of a model."""

from __future__ import annotations

from model.config import Activation, PositionCode
from viz.ui.lab.panel import Need
from viz.words import say

PAPERS_POSITIONS = Need(
    lambda scene: scene.translator.config.position_code is PositionCode.INTERLEAVED and
    not scene.translator.config.position_offset,
    say("This model tells positions apart in another way than the paper: what is shown here holds for sines and "
        "cosines side by side."))
RELU = Need(
    lambda scene: scene.translator.config.activation is Activation.RELU,
    say("This model's feed-forward has no ReLU: no unit of it is ever quite silent."))

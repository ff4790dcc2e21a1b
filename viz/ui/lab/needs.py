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
# Parts that a toy can be built without (model.config.PARTS).
MASKED = Need(
    lambda scene: scene.translator.config.look_ahead_mask,
    say("This network was built without the look-ahead mask, which this panel shows."))
SCALED = Need(
    lambda scene: scene.translator.config.scale_scores,
    say("This network was built without the division by √d_k, which this panel shows."))
RESIDUAL = Need(
    lambda scene: scene.translator.config.residual,
    say("This network was built without residual connections: there is no stream that layers add to."))
TOLD_POSITIONS = Need(
    lambda scene: scene.translator.config.position_code is not PositionCode.NONE,
    say("This network is told no positions: nothing is added to its embeddings."))

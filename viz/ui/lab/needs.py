"""What panels need of a model."""

from __future__ import annotations

from model.config import PositionCode
from viz.ui.lab.panel import Need
from viz.words import say

# Parts that a toy can be built without (model.config.PARTS).
MASKED = Need(
    lambda scene: scene.translator.config.look_ahead_mask,
    say("This network was built without the look-ahead mask, which this panel shows."),
)
SCALED = Need(
    lambda scene: scene.translator.config.scale_scores,
    say("This network was built without the division by √d_k, which this panel shows."),
)
DIVIDED_OR_BIASED = Need(
    lambda scene: "scale_scores" not in scene.translator.config.without,
    say("This network was built without the division by √d_k, which this panel shows."),
)
RESIDUAL = Need(
    lambda scene: scene.translator.config.residual,
    say("This network was built without residual connections: there is no stream that layers add to."),
)
TOLD_POSITIONS = Need(
    lambda scene: scene.translator.config.adds_positions,
    say("This network is told no positions: nothing is added to its embeddings."),
)
RELATIVE = Need(
    lambda scene: scene.translator.config.position_code is PositionCode.RELATIVE,
    say("This model adds its positions to the embeddings, and nothing to the scores of attention."),
)
WAVES = Need(
    lambda scene: scene.translator.config.position_code.has_waves,
    say("This model’s positions are not pairs of a sine and a cosine: there are no such waves in them to look at."),
)

"""What panels need of a model."""

from __future__ import annotations

from model.config import PositionCode
from viz.ui.lab.panel import Need
from viz.words import say

WAVES = Need(
    lambda scene: scene.translator.config.position_code is not PositionCode.LEARNED,
    say("This model learned its positions, a row of numbers for each: there are no waves in them to look at."))

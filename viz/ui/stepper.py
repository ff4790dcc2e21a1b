"""The stepper tab: decode token by token, choose otherwise, and compare what becomes of it (viz/questions/steps.py)."""

from __future__ import annotations

from model.trace.translation import TranslationTrace
from viz.questions.registry import Context
from viz.ui.component import add_component


def build(context: Context, first: TranslationTrace | None) -> None:
    """Lay out the tab."""
    add_component("stepper", elem_id="stepper")

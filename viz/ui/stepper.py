"""The stepper tab: decode token by token, choose otherwise, and compare what becomes of it (viz/questions/steps.py)."""

from __future__ import annotations

from viz.questions.registry import Context
from viz.ui.component import Component
from viz.ui.header import Header


def build(context: Context, header: Header) -> None:
    """Lay out the tab."""
    Component("stepper", elem_id="stepper")

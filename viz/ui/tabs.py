"""The tabs of the page, in their order. Each is a module of its own with build(translators, header)."""

from __future__ import annotations

import gradio as gr

from model.translator import Translators
from viz.ui import explorer, stepper
from viz.ui.header import Header
from viz.ui.lab import checks, inside, positions
from viz.ui.language import label

TABS = (  # (title, id, module)
    (label("Attention"), "explorer", explorer),
    (label("Step by step"), "stepper", stepper),
    (label("Positions"), "positions", positions),
    (label("Inside"), "inside", inside),
    (label("Verify"), "verify", checks),
)


def build(translators: Translators, header: Header) -> None:
    """Lay out the tabs. header.session holds what they share, header.first what the page opens with."""
    with gr.Tabs(elem_id="tabs"):
        for title, name, module in TABS:
            with gr.Tab(title, id=name, elem_id=f"tab-{name}"):
                module.build(translators, header)

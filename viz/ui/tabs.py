"""The tabs of the page, in their order. Each is a module of its own with build(translators, header)."""

from __future__ import annotations

import gradio as gr

from model.translator import Translators
from viz.ui import explorer, lab_checks, lab_inside, lab_positions, stepper
from viz.ui.language import label
from viz.ui.translate import Header

TABS = (  # (title, id, module)
    (label("Attention"), "explorer", explorer),
    (label("Step by step"), "stepper", stepper),
    (label("Positions"), "positions", lab_positions),
    (label("Inside"), "inside", lab_inside),
    (label("Verify"), "verify", lab_checks),
)


def build(translators: Translators, header: Header) -> None:
    """Lay out the tabs. header.session holds what they share, header.first what the page opens with."""
    with gr.Tabs(elem_id="tabs"):
        for title, name, module in TABS:
            with gr.Tab(title, id=name, elem_id=f"tab-{name}"):
                module.build(translators, header)

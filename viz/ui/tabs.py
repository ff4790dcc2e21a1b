"""The tabs of the page, in their order."""

from __future__ import annotations

from functools import partial

import gradio as gr

from model.translators import Translators
from viz.ui import explorer, stepper, train
from viz.ui.header import Header
from viz.ui.lab import lab, registry
from viz.ui.language import label

TABS = (  # (title, id, build(translators, header))
    (label("Attention"), "explorer", explorer.build),
    (label("Step by step"), "stepper", stepper.build),
    *((tab.title, tab.name, partial(lab.build, tab, before=train.TOY if tab.name == "train" else None))
      for tab in registry.TABS),
)


def build(translators: Translators, header: Header) -> None:
    """Lay out the tabs. header.session holds what they share, header.first what the page opens with."""
    with gr.Tabs(elem_id="tabs") as tabs:
        for title, name, build_tab in TABS:
            with gr.Tab(title, id=name, elem_id=f"tab-{name}"):
                build_tab(translators, header)
    header.result.open(lab.opened, outputs=tabs, **lab.PRIVATE)  # a link names one

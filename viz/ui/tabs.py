"""The tabs of the page, in their order."""

from __future__ import annotations

from functools import partial

import gradio as gr

from model.trace.translation import TranslationTrace
from viz.questions.registry import Context
from viz.ui import explorer, stepper, train
from viz.ui.lab import lab, registry
from viz.ui.language import label
from viz.ui.tours import guide
from viz.words import say

TABS = (  # (title, id, build(context, first))
    (say("Attention"), "explorer", explorer.build),
    (say("Step by step"), "stepper", stepper.build),
    *(
        (tab.title, tab.name, partial(lab.build, tab, before=train.place if tab.name == "train" else None))
        for tab in registry.TABS
    ),
)


LABELS = tuple(title for title, *_ in TABS)


def build(context: Context, first: TranslationTrace | None) -> None:
    """Lay out the tabs. first: the translation that the page opens with."""
    with gr.Tabs(elem_id="tabs"):
        for title, name, build_tab in TABS:
            with gr.Tab(label(title), id=name, elem_id=f"tab-{name}"):
                build_tab(context, first)
    guide.build()

"""The tabs of the page, in their order."""

from __future__ import annotations

from functools import partial

import gradio as gr

from model.translators import Translators
from viz.ui import explorer, stepper, train
from viz.ui.header import Header
from viz.ui.lab import lab, registry
from viz.ui.language import label
from viz.ui.server.later import postpone
from viz.ui.tours import guide
from viz.words import say

TABS = (  # (title, id, build(translators, header))
    (say("Attention"), "explorer", explorer.build),
    (say("Step by step"), "stepper", stepper.build),
    *(
        (tab.title, tab.name, partial(lab.build, tab, before=train.TOY if tab.name == "train" else None))
        for tab in registry.TABS
    ),
)


def build(translators: Translators, header: Header) -> None:
    """Lay out the tabs. header.session holds what they share, header.first what the page opens with."""
    panels: dict[str, gr.Tabs] = {}  # of the tabs that have some
    behind: list[gr.Tab] = []  # the first
    with gr.Tabs(elem_id="tabs") as tabs:
        for title, name, build_tab in TABS:
            with gr.Tab(label(title), id=name, elem_id=f"tab-{name}") as tab:
                if (within := build_tab(translators, header)) is not None:
                    panels[name] = within
            behind.append(tab)

    def follow(event: gr.EventData) -> list:
        """A link names a tab, and perhaps a panel of it."""
        tab, panel = str(event._data["tab"]), event._data.get("panel")
        return [
            gr.Tabs(selected=tab),
            *(gr.Tabs(selected=str(panel)) if panel and name == tab else gr.skip() for name in panels),
        ]

    header.result.open(follow, outputs=[tabs, *panels.values()], **lab.PRIVATE)
    guide.build(translators, header.session)
    postpone(behind[1:])

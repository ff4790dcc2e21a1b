"""The tabs of the page, in their order."""

from __future__ import annotations

from functools import partial

import gradio as gr

from viz.questions.registry import Context
from viz.ui import explorer, stepper, train
from viz.ui.component import PRIVATE
from viz.ui.gradio6.lazy_tabs import postpone
from viz.ui.header import Header
from viz.ui.lab import lab, registry
from viz.ui.language import label
from viz.ui.rpc import fills
from viz.ui.tours import guide
from viz.words import say

TABS = (  # (title, id, build(context, header))
    (say("Attention"), "explorer", explorer.build),
    (say("Step by step"), "stepper", stepper.build),
    *(
        (tab.title, tab.name, partial(lab.build, tab, before=train.TOY if tab.name == "train" else None))
        for tab in registry.TABS
    ),
)


LABELS = tuple(title for title, *_ in TABS)


def build(context: Context, header: Header) -> None:
    """Lay out the tabs."""
    within: list[
        tuple[str, gr.Tabs | gr.Accordion, dict[str, dict]]
    ] = []  # (tab, what is opened in it, panel -> as what)
    behind: list[gr.Tab] = []  # the first
    with gr.Tabs(elem_id="tabs") as tabs:
        for title, name, build_tab in TABS:
            with gr.Tab(label(title), id=name, elem_id=f"tab-{name}") as tab:
                within += [(name, *way) for way in build_tab(context, header) or ()]
            behind.append(tab)

    def follow(wanted: object) -> list:
        """A link names a tab, and perhaps a panel of it. The server knows of it, too: of a tab that was not opened yet,
        that is what it is opened with."""
        link = wanted if isinstance(wanted, dict) else {}
        tab, panel = str(link.get("tab")), str(link.get("panel"))
        return [
            gr.Tabs(selected=tab),
            *(ways.get(panel, gr.skip()) if name == tab else gr.skip() for name, _, ways in within),
        ]

    # What is wanted comes as the value of the component, as it is when the event is sent: of links in quick succession
    # Gradio waits with the second and drops none that is the last.
    header.result.open(
        follow,
        header.result,
        [tabs, *(opened for _, opened, _ in within)],
        js=fills("atlas-open", "link"),
        trigger_mode="always_last",
        **PRIVATE,
    )
    guide.build()
    postpone(behind[1:])

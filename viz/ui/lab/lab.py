"""A tab of the lab on the page: its panels, each with its controls, and content that is computed when it is seen.

In a tab that asks (registry.Tab.asks) a panel is declared as anywhere else, and its compute finds what is asked in its
scene: scene.question (the pinned token, its contrast), scene.case (for model.analysis.why, the pass recorded once). It
is computed again for another question as for another sentence, and a Refusal of either is shown in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from inspect import isgeneratorfunction

import gradio as gr

from model.translators import Translators
from viz.questions.registry import Context
from viz.ui.component import PRIVATE, Component
from viz.ui.header import Header
from viz.ui.lab import frame, registry
from viz.ui.lab.controls import Control, Slider, Text
from viz.ui.lab.panel import Panel
from viz.ui.language import label
from viz.ui.rpc import dispatches, fills, tells_itself, told
from viz.ui.session import serving
from viz.words import Words

EVENTS = ("read", "fill", "translate", "set")


@dataclass(frozen=True)
class Beside:
    """Something of another build that stands before a tab's panels: its title, its id, and what lays it out."""

    title: Words
    name: str
    build: Callable[[Context, Header], None]


# What is opened within a tab, a strip of tabs or a fold, and as what it opens a panel, by the panel's name.
Ways = list[tuple[gr.Tabs | gr.Accordion, dict[str, dict]]]


def build(tab: registry.Tab, context: Context, header: Header, *, before: Beside | None = None) -> Ways:
    """Lay out and wire the panels that the registry has for this tab."""
    lab = Lab(context.translators, header, follows=("address", "asked") if tab.asks else ("address",))
    if tab.asks:
        frame.build()
    found: Ways = []
    if tab.folded:
        fold = gr.Accordion(label(tab.folded), open=False, elem_id=f"{tab.name}-fold")
        found.append((fold, {panel.name: gr.update(open=True) for panel in registry.PANELS[tab.name]}))
    names = {before.name: gr.update(selected=before.name)} if before else {}
    with fold if tab.folded else nullcontext(), gr.Tabs(elem_id=f"{tab.name}-tabs") as outer:
        found.append((outer, names))
        if before:
            with gr.Tab(label(before.title), id=before.name):
                before.build(context, header)
        for place, panels in tab.places():
            names |= {panel.name: gr.update(selected=place.name) for panel in panels}
            with gr.Tab(label(place.title), id=place.name, elem_id=f"{tab.name}-{place.name}"):
                if isinstance(place, Panel):
                    lab.add(place)
                    continue
                with gr.Tabs(elem_id=f"{tab.name}-{place.name}-tabs", elem_classes="atlas-chapter") as inner:
                    for panel in panels:
                        with gr.Tab(label(panel.title), id=panel.name):
                            lab.add(panel)
            found.append((inner, {panel.name: gr.update(selected=panel.name) for panel in panels}))
    return found


class Lab:
    """The panels of one tab of the page. Each computes when it is opened, when the sentence changes while it is open,
    and when one of its controls does."""

    def __init__(self, translators: Translators, header: Header, follows: Sequence[str] = ("address",)) -> None:
        """follows: fields of the page's store; panels ask again when one of them changes (viz/web/store/store.js)."""
        self.translators, self.header, self.follows = translators, header, follows

    def add(self, panel: Panel) -> Component:
        """The panel, here: what to look for, its controls, its content."""
        link = {"url": panel.paper, "text": panel.section}
        Component("prose", {"title": panel.title, "text": panel.look, "link": link})
        controls, button = self._controls(panel)
        linked = dict(zip(panel.fields, controls))
        content = Component(
            "panel",
            told(stale=True),
            plotly=True,
            events=EVENTS,
            elem_id=f"panel-{panel.name}",
            options={
                "name": panel.name,
                "checks_page": panel.checks_page,
                "stops": panel.stops,
                "follows": self.follows,
                "linked": {
                    field: "number" if isinstance(control, Slider) else "text"
                    for field, control in zip(panel.fields, panel.controls)
                },
            },
        )
        content.elem_classes = ["atlas-controlled"] if controls or button else []
        if linked:
            content.set(None, outputs=[*linked.values(), content], js=fills(f"atlas-set-{panel.name}", *linked, "told"))
            told_so = dispatches(f"atlas-read-{panel.name}", *linked)
            content.read(None, [*linked.values()], js=told_so, trigger_mode="multiple", **PRIVATE)
        if button:
            button.click(None, outputs=content, js=tells_itself(stale=True), **PRIVATE)
        streams = isgeneratorfunction(panel.compute)
        for control in () if button else controls:
            # A textbox reports as input what is typed, but not what is pasted or cleared.
            listen = control.change if isinstance(control, gr.Textbox) else control.input
            # The panel asks again. A stream that is under way ends; all else is waited for.
            told_so = tells_itself(stale=True) if streams else tells_itself(stale=True, waits=True)
            listen(None, outputs=content, js=told_so, **PRIVATE)
        self._wire(panel, content, controls)
        return content

    def _wire(self, panel: Panel, content: Component, controls: list[gr.components.Component]) -> None:
        """What a panel's blocks may ask for that other parts of the page show."""
        if panel.fills:
            line = next(control for control in controls if isinstance(control, gr.Textbox))
            content.fill(None, outputs=line, js=fills(f"atlas-fill-{panel.name}", "text"), **PRIVATE)

    def _controls(self, panel: Panel) -> tuple[list[gr.components.Component], gr.Button | None]:
        configs = [translator.config for translator in self.translators.values()]

        def built() -> tuple[list[gr.components.Component], gr.Button | None]:
            controls = [self._begun(control).build(configs) for control in panel.controls]
            return controls, panel.again and panel.again.build()

        if len(panel.controls) > 1 or panel.again:
            with gr.Row():
                controls, button = built()
        else:
            controls, button = built()
        return controls, button

    def _begun(self, control: Control) -> Control:
        """With what is known of the translation that the page opens with."""
        first = self.header.first
        if first is not None and isinstance(control, Slider) and control.of:
            return replace(control, high=control.until(first, serving(self.translators, first)))
        if first is None or not isinstance(control, Text) or not control.known:
            return control
        return replace(control, start=control.known(first, serving(self.translators, first)))

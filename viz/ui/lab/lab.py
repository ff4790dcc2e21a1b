"""A tab of the lab on the page: its panels, each with its controls, and content that is computed when it is seen.

In a tab that asks (registry.Tab.asks) a panel is declared as anywhere else, and its compute finds what is asked in its
scene: scene.question (the pinned token, its contrast), scene.case (for model.analysis.why, the pass recorded once). It
is computed again for another question as for another sentence, and a Refusal of either is shown in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from inspect import isgeneratorfunction

import gradio as gr
from gradio.context import get_blocks_context
from gradio.events import Dependency

from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.ui.asked import Asked
from viz.ui.component import Component
from viz.ui.header import Header
from viz.ui.lab import frame, registry
from viz.ui.lab.controls import Control, Text
from viz.ui.lab.panel import Panel, Scene
from viz.ui.language import label
from viz.ui.rpc import Question, stale, told
from viz.ui.session import TRANSLATES, Selection, serving
from viz.wire import blocks
from viz.wire.summary import INVITATION
from viz.words import Words, say

EVENTS = ("needed", "act", "fill", "translate", "stop", "open")
PRIVATE = {"show_progress": "hidden", "api_visibility": "private"}


@dataclass(frozen=True)
class Beside:
    """Something of another build that stands before a tab's panels: its title, its id, and what lays it out."""

    title: Words
    name: str
    build: Callable[[Translators, Header], None]


def build(tab: registry.Tab, translators: Translators, header: Header, *, before: Beside | None = None) -> gr.Tabs:
    """Lay out and wire the panels that the registry has for this tab; they are the tabs that are returned."""
    lab = Lab(translators, header)
    if tab.asks:
        frame.build(translators, header)
    with gr.Tabs(elem_id=f"{tab.name}-tabs") as tabs:
        if before:
            with gr.Tab(label(before.title), id=before.name):
                before.build(translators, header)
        for panel in registry.PANELS[tab.name]:
            with gr.Tab(label(panel.title), id=panel.name):
                content = lab.add(panel)
            if panel.opens:
                content.open(opened, outputs=tabs, **PRIVATE)
    lab.follow(header.session.trace)
    if tab.asks:
        lab.follow(header.session.asked)
    return tabs


def opened(event: gr.EventData) -> gr.Tabs:
    """The tab that an event names."""
    return gr.Tabs(selected=str(event._data["tab"]))


class Lab:
    """The panels of one tab of the page. Each computes when it is opened, when the sentence changes while it is open,
    and when one of its controls does."""

    def __init__(self, translators: Translators, header: Header) -> None:
        self.translators, self.header, self.session = translators, header, header.session
        self.components: list[Component] = []
        self.streams: list[Dependency] = []  # of panels that show results in place of one another

    def add(self, panel: Panel) -> Component:
        """The panel, here: what to look for, its controls, its content."""
        Component("prose", {"text": panel.look, "link": {"url": panel.paper, "text": panel.section}})
        controls, button = self._controls(panel)
        streams = isgeneratorfunction(panel.compute)
        content = Component(
            "panel",
            told(stale=True),
            plotly=True,
            events=EVENTS,
            elem_id=f"panel-{panel.name}",
            options={"checks_page": panel.checks_page, "stops": panel.stops},
        )
        answer = self._stream(panel) if streams else self._show(panel)
        session = self.session
        asks = {
            "inputs": [session.trace, session.selection, session.asked, *controls],
            "outputs": content,
            "concurrency_id": "model",
            **PRIVATE,
        }
        once = {**asks, "queue": streams}  # the queue costs more than most panels do
        # Not "always_last": Gradio 6.31 then sends the later question with the data, and so the number, of the earlier
        # one, and the page waits for an answer that never comes.
        needed = content.needed(answer, trigger_mode="multiple", **once)
        if panel.acts:
            content.act(self._act(panel), trigger_mode="multiple", queue=False, **asks)
        if button:
            # By way of the panel, whose question also says what the page draws.
            button.click(None, outputs=content, js=stale(), **PRIVATE)
        if streams:
            self.streams.append(needed)
        for control in () if button else controls:
            # A textbox reports as input what is typed, but not what is pasted or cleared.
            listen = control.change if isinstance(control, gr.Textbox) else control.input
            if streams:  # what is under way ends, and the panel asks again
                listen(None, outputs=content, cancels=needed, js=stale(), **PRIVATE)
            else:
                listen(answer, trigger_mode="always_last", **once)
        self._wire(panel, content, controls, asks)
        if panel.stops:
            content.stop(None, cancels=needed, **PRIVATE)
        self.components.append(content)
        return content

    def _wire(self, panel: Panel, content: Component, controls: list[gr.components.Component], asks: dict) -> None:
        """What a panel's blocks may ask for that other parts of the page show."""
        if panel.fills:
            line = next(control for control in controls if isinstance(control, gr.Textbox))
            content.fill(self._giving(panel, panel.fills, str), **{**asks, "outputs": [content, line]})
        if panel.translates:
            content.translate(
                self._giving(panel, panel.translates, lambda trace: trace, self.header.showing),
                **{**asks, **TRANSLATES, "outputs": [content, self.session.trace, self.header.result]},
            )

    def _giving(
        self, panel: Panel, find: Callable[..., object], *ways: Callable[[object], object]
    ) -> Callable[..., tuple]:
        """A handler that gives other parts of the page what find(scene, what the page sent, *values of the controls)
        finds, each in its way; the panel itself is only told why there is nothing."""

        def give(
            event: gr.EventData, trace: TranslationTrace | None, selection: Selection, asked: Asked, *values
        ) -> tuple:
            question = Question.of(event)
            if trace is None:
                return question.answer(), *[gr.skip()] * len(ways)
            try:
                scene = self.scene(trace, selection, asked)
                panel.require(scene)
                found = find(scene, question.data, *panel.fitted(scene, values))
                return question.answer(), *(way(found) for way in ways)
            except ValueError as error:
                return question.failed(error), *[gr.skip()] * len(ways)

        return give

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
        for declared, control in zip(panel.controls, controls):
            if isinstance(declared, Text) and declared.known:
                self._follow(control, declared)
        return controls, button

    def _begun(self, control: Control) -> Control:
        """With what is known of the translation that the page opens with."""
        first = self.session.trace.value
        if first is None or not isinstance(control, Text) or not control.known:
            return control
        return replace(control, start=control.known(first, serving(self.translators, first)))

    def _follow(self, box: gr.Textbox, declared: Text) -> None:
        def known_for(trace: TranslationTrace) -> str:
            return declared.known(trace, serving(self.translators, trace))

        def changed(trace: TranslationTrace | None, about: tuple[str, str, str] | None):
            now = trace and _sentence(trace)
            return (gr.skip(), gr.skip()) if now in (None, about) else (known_for(trace), now)

        first = self.session.trace.value
        about = gr.State(_sentence(first) if first else None)
        # Once loaded, too: the page may have gone on before the tab came.
        gr.on(
            [self.session.trace.change, get_blocks_context().root_block.load],
            changed,
            [self.session.trace, about],
            [box, about],
            **PRIVATE,
        )

    def _show(self, panel: Panel) -> Callable[..., dict]:
        return self._answering(lambda scene, data, *values: panel.missing(scene) or panel.content(scene, *values))

    def _act(self, panel: Panel) -> Callable[..., dict]:
        return self._answering(panel.act)

    def _answering(self, blocks_for: Callable[..., list[dict]]) -> Callable[..., dict]:
        """A handler that answers with blocks_for(scene, what the page sent, *values of the controls)."""

        def show(
            event: gr.EventData, trace: TranslationTrace | None, selection: Selection, asked: Asked, *values
        ) -> dict:
            question = Question.of(event)
            if trace is None:
                return question.answer(blocks=[blocks.text(INVITATION)])
            try:
                with self.session.turns.one():
                    scene = self.scene(trace, selection, asked, question.data.get("drawn"))
                    return question.answer(blocks=blocks_for(scene, question.data, *values), about=about(trace))
            except ValueError as error:
                return question.failed(error)

        return show

    def _stream(self, panel: Panel) -> Callable[..., Iterator[dict]]:
        def stream(
            event: gr.EventData, trace: TranslationTrace | None, selection: Selection, asked: Asked, *values
        ) -> Iterator[dict]:
            question = Question.of(event)
            if trace is None:
                yield question.answer(blocks=[blocks.text(INVITATION)])
                return
            try:
                scene = self.scene(trace, selection, asked, question.data.get("drawn"))
                missing, whole = panel.missing(scene), {}
                for part, found in enumerate([missing] if missing else panel.content(scene, *values)):
                    whole = {"blocks": found, "about": about(trace), "drawing": [question.at, part]}
                    yield question.answer(**whole, more=True)
                # Once more the same, which the page need not draw again: of values that come at once, as from a stream
                # that is slow to open, Gradio's page passes on the last one alone.
                yield question.answer(**whole, more=False)
            except ValueError as error:
                yield question.failed(error)

        return stream

    def scene(
        self, trace: TranslationTrace, selection: Selection, asked: Asked = Asked(), drawn: object = None
    ) -> Scene:
        """drawn: what the page says that it draws. ValueError if the trace's checkpoint is no longer served."""
        return Scene(
            trace,
            selection.fitted(trace),
            serving(self.translators, trace),
            drawn,
            asked,
            self.session.shelf,
            self.translators,
        )

    def follow(self, state: gr.State) -> None:
        """Call once for a state, after all panels: its changes make them stale and end what is under way; only an open
        one asks for more."""
        state.change(
            None, outputs=self.components, cancels=self.streams or None, js=stale(len(self.components)), **PRIVATE
        )


def about(trace: TranslationTrace) -> Words:
    """Which translation a panel is about, and how it was decoded."""
    return say(
        "{source} → {target} · decoding: {how}",
        source=shortened(trace.source_text),
        target=shortened(trace.translation) or say("(nothing)"),
        how=trace.decoded_by,
    )


def shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _sentence(trace: TranslationTrace) -> tuple[str, str, str]:
    return trace.source_text, trace.direction, trace.digest

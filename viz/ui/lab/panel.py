"""A lab panel: one idea, a sentence on what to look for, its controls, and content that is computed when it is seen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import isgeneratorfunction

import gradio as gr
from gradio.i18n import I18nData

from model.nets.records import ForwardOutput
from model.trace.translation import TranslationTrace
from model.translator import Translator, Translators
from viz.ui.component import Component
from viz.ui.session import Selection, Session, serving
from viz.wire import blocks
from viz.wire.summary import INVITATION
from viz.words import Words, for_page, known

PAPER = "https://arxiv.org/abs/1706.03762"


@dataclass(frozen=True)
class Panel:
    """name: its id in the page; title: of its tab; look: what to look for; section: where the paper says it."""

    name: str
    title: I18nData
    look: Words
    section: Words


@dataclass(frozen=True, eq=False)
class Scene:
    """What a panel is about: the current translation, the explorer's selection in it, and the model."""

    trace: TranslationTrace
    selection: Selection
    translator: Translator

    def inspect(self) -> ForwardOutput:
        """The model's records of this translation."""
        return self.translator.inspect(self.trace.source_ids, self.trace.target_ids)


class Lab:
    """The panels of one tab of the page. Each computes when it is opened, when the sentence changes while it is open,
    and when one of its controls does."""

    def __init__(self, translators: Translators, session: Session) -> None:
        self.translators, self.session = translators, session
        self.components: list[Component] = []

    def add(self, panel: Panel, compute: Callable[..., list[dict]], *, controls: Sequence[gr.components.Component] = (),
            buttons: Sequence[gr.Button] = ()) -> Component:
        """The panel's content, here. compute(scene, *values of the controls) -> blocks, or a generator of them, each in
        place of the one before; a ValueError is shown in words.

        buttons: each computes again, too; with buttons, controls alone do not.
        """
        content = Component("panel", _answer(stale=True), plotly=True, events=("needed", "open"),
                            elem_id=f"panel-{panel.name}")
        inputs = [self.session.trace, self.session.selection, *controls]

        def show(trace: TranslationTrace | None, selection: Selection, *values) -> dict:
            if trace is None:
                return _answer(blocks=[blocks.text(INVITATION)])
            try:
                with self.session.turns.one():
                    found = compute(self.scene(trace, selection), *values)
                return _answer(blocks=found)
            except ValueError as error:
                return _answer(error=known(str(error)))

        def stream(trace: TranslationTrace | None, selection: Selection, *values) -> Iterator[dict]:
            if trace is None:
                yield _answer(blocks=[blocks.text(INVITATION)])
                return
            try:
                for found in compute(self.scene(trace, selection), *values):
                    yield _answer(blocks=found)
            except ValueError as error:
                yield _answer(error=known(str(error)))

        answer = stream if isgeneratorfunction(compute) else show
        once = {"inputs": inputs, "outputs": content, "show_progress": "hidden", "api_visibility": "private",
                "concurrency_id": "model",
                "queue": isgeneratorfunction(compute)}  # the queue costs more than most panels do
        content.needed(answer, trigger_mode="always_last", **once)
        for button in buttons:
            button.click(answer, **once)
        for control in () if buttons else controls:
            # A textbox reports as input what is typed, but not what is pasted or cleared.
            listen = control.change if isinstance(control, gr.Textbox) else control.input
            listen(answer, trigger_mode="always_last", **once)
        self.components.append(content)
        return content

    def follow(self, box: gr.Textbox, words: Callable[[TranslationTrace, Translator], str]) -> None:
        """Put words(trace, translator) into the box whenever there is another sentence: what a person typed there stays
        while other translations of the same one are looked at."""
        def changed(trace: TranslationTrace, about: tuple[str, str, str] | None):
            now = (trace.source_text, trace.direction, trace.digest)
            if now == about:
                return gr.skip(), gr.skip()
            return words(trace, serving(self.translators, trace)), now

        first = self.session.trace.value
        if first is not None:
            box.value = words(first, serving(self.translators, first))
        about = gr.State((first.source_text, first.direction, first.digest) if first else None)
        self.session.trace.change(changed, [self.session.trace, about], [box, about], show_progress="hidden",
                                  api_visibility="private")

    def scene(self, trace: TranslationTrace, selection: Selection) -> Scene:
        """ValueError if the trace's checkpoint is no longer served."""
        return Scene(trace, selection.fitted(trace), serving(self.translators, trace))

    def follow_the_sentence(self) -> None:
        """Call once, after all panels: a new translation makes them stale; only an open one asks for more."""
        def stale() -> list[dict]:
            return [_answer(stale=True)] * len(self.components)

        def single() -> dict:
            return stale()[0]

        self.session.trace.change(stale if len(self.components) > 1 else single, outputs=self.components,
                                  show_progress="hidden", api_visibility="private")


def _answer(**value) -> dict:
    # As text: of a nested value Gradio's page would make thousands of observed objects first. With the time: Gradio
    # tells the page nothing of a value that equals the last one, and the panel would wait for ever.
    return {"json": json.dumps(for_page(value), allow_nan=False), "at": time.time_ns()}


def heading(panel: Panel) -> None:
    """The sentence on what to look for, and the paper's section."""
    Component("prose", {"text": panel.look, "link": {"url": PAPER, "text": panel.section}})

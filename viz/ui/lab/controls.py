"""What a panel declares to be set by a person. The Lab builds it, and fits what was set to the model at hand.

A link that opens a panel can set its controls: the field of a control's name (Panel.fields) says to what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import gradio as gr

from model.config import ModelConfig
from model.trace import is_number
from model.trace.translation import TranslationTrace
from model.translator import Translator
from viz.ui.language import choices, label
from viz.words import Words

Bound = Callable[[ModelConfig], int]  # an end that depends on the model


@dataclass(frozen=True)
class Slider:
    """Whole numbers from low to high. Where high is a Bound the slider reaches the largest of the models served, and a
    panel is never given more than the bound of its own model. of: how many there are in a sentence or its model, where
    it goes no further than that. Eight fields, therefore."""

    label: Words | str
    low: int
    high: int | Bound
    start: int
    step: int = 1
    info: Words | None = None
    name: str = ""
    of: Callable[[TranslationTrace, Translator], int] | None = None

    def until(self, trace: TranslationTrace, translator: Translator) -> int:
        """How far it goes for a sentence and its model."""
        return max(self.low + 1, self.of(trace, translator))

    def build(self, configs: Sequence[ModelConfig]) -> gr.Slider:
        high = max(self._high(config) for config in configs)
        return gr.Slider(
            self.low,
            high,
            min(self.start, high),
            step=self.step,
            label=label(self.label),
            info=label(self.info),
            min_width=190,  # both ends beside each other
        )

    def fitted(self, value: object, config: ModelConfig) -> int:
        """What the panel is given. Of what is no number, such as an emptied field: what it started with."""
        return int(max(self.low, min(value if is_number(value) else self.start, self._high(config))))

    def _high(self, config: ModelConfig) -> int:
        return self.high if isinstance(self.high, int) else self.high(config)


@dataclass(frozen=True)
class Choice:
    """One of a few: value -> label. No value may be a label of the page's table (viz.ui.language.choices). folded: a
    menu that opens, for many or long labels. scale: its share of a row."""

    label: Words | str
    options: Mapping[str, Words]
    start: str
    folded: bool = False
    scale: int | None = None
    name: str = ""

    def build(self, configs: Sequence[ModelConfig]) -> gr.Radio | gr.Dropdown:
        options = choices(self.options)
        if self.folded:
            return gr.Dropdown(options, value=self.start, label=label(self.label), scale=self.scale, min_width=190)
        return gr.Radio(options, value=self.start, label=label(self.label), scale=self.scale)

    def fitted(self, value: object, config: ModelConfig) -> str:
        """What the panel is given. ValueError for what is not on the menu."""
        if not isinstance(value, str) or value not in self.options:
            raise ValueError(f"{value!r} is none of the choices: {', '.join(self.options)}.")
        return value


@dataclass(frozen=True)
class Text:
    """A line that a person types. known: what stands there of itself whenever there is another sentence; what was typed
    stays while other translations of the same one are looked at."""

    label: Words | str
    placeholder: str | None = None
    known: Callable[[TranslationTrace, Translator], str] | None = None
    scale: int | None = None
    elem_id: str | None = None
    start: str = ""
    name: str = ""

    def build(self, configs: Sequence[ModelConfig]) -> gr.Textbox:
        return gr.Textbox(
            self.start,
            label=label(self.label),
            placeholder=self.placeholder,
            scale=self.scale,
            elem_id=self.elem_id,
            min_width=190,  # on a phone a sentence has a line to itself
        )

    def fitted(self, value: object, config: ModelConfig) -> str:
        """What the panel is given: without outer white space."""
        return value.strip() if isinstance(value, str) else ""


def tokens(trace: TranslationTrace, translator: Translator) -> int:
    """Of the longer side of a sentence."""
    return max(len(trace.source_tokens), len(trace.target_tokens))


Control = Slider | Choice | Text


@dataclass(frozen=True)
class Button:
    """Pressed, the panel computes again; where there is one, the controls alone do not."""

    label: Words | str
    elem_id: str | None = None
    min_width: int = 160

    def build(self) -> gr.Button:
        return gr.Button(label(self.label), variant="primary", scale=0, min_width=self.min_width, elem_id=self.elem_id)

"""The controls that a panel declares. The page draws them (viz/web/lab/controls.js), and `fitted` limits what it sends
back to what the model at hand has.

A link that opens a panel can set its controls: the field of a control's name (Panel.fields) holds the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace import is_number
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.words import Words

Bound = Callable[[ModelConfig], int]  # an end that depends on the model


@dataclass(frozen=True)
class Slider:
    """Whole numbers from low to high.

    high   a Bound reaches the largest of the models served until a model is known; then its own
    of     how many there are in a sentence or its model, where the slider ends earlier than at high
    """

    label: Words | str
    low: int
    high: int | Bound
    start: int
    step: int = 1
    info: Words | None = None
    name: str = ""
    of: Callable[[TranslationTrace, Translator], int] | None = None

    def to_plain(self, configs: Sequence[ModelConfig]) -> dict:
        """Return its description for the page. configs: of the models served."""
        high = max(self._high(config) for config in configs)
        return {
            "type": "slider",
            "label": self.label,
            "info": self.info,
            "low": self.low,
            "high": high,
            "step": self.step,
            "start": min(self.start, high),
        }

    def until(self, trace: TranslationTrace, translator: Translator) -> int:
        """Return its end for a sentence and its model."""
        high = self._high(translator.config)
        return min(high, max(self.low + 1, self.of(trace, translator))) if self.of else high

    def begin(self, trace: TranslationTrace, translator: Translator) -> int:
        """Return the value of a control that nobody has set."""
        return self.start

    def fitted(self, value: object, config: ModelConfig) -> int:
        """Return a value inside the model's bounds; the start for what is no number, such as an emptied field."""
        return int(max(self.low, min(value if is_number(value) else self.start, self._high(config))))

    def _high(self, config: ModelConfig) -> int:
        return self.high if isinstance(self.high, int) else self.high(config)


@dataclass(frozen=True)
class Choice:
    """One of a few: value -> label. folded: a menu, for many or long labels; otherwise all are seen beside each other.
    scale: its share of a row."""

    label: Words | str
    options: Mapping[str, Words]
    start: str
    folded: bool = False
    scale: int | None = None
    name: str = ""

    def to_plain(self, configs: Sequence[ModelConfig]) -> dict:
        """Return its description for the page."""
        return {
            "type": "choice",
            "label": self.label,
            "options": [[value, words] for value, words in self.options.items()],
            "folded": self.folded,
            "scale": self.scale,
            "start": self.start,
        }

    def begin(self, trace: TranslationTrace, translator: Translator) -> str:
        """Return the value of a control that nobody has set."""
        return self.start

    def fitted(self, value: object, config: ModelConfig) -> str:
        """Return the value. ValueError for what is not on the menu."""
        if not isinstance(value, str) or value not in self.options:
            raise ValueError(f"{value!r} is none of the choices: {', '.join(self.options)}.")
        return value


@dataclass(frozen=True)
class Text:
    """A line that a person types. known: the text for each new sentence; a typed text stays while other translations of
    the same sentence are looked at."""

    label: Words | str
    placeholder: str | None = None
    known: Callable[[TranslationTrace, Translator], str] | None = None
    scale: int | None = None
    elem_id: str | None = None
    start: str = ""
    name: str = ""

    def to_plain(self, configs: Sequence[ModelConfig]) -> dict:
        """Return its description for the page. known: whether each new sentence brings a text of its own."""
        return {
            "type": "text",
            "label": self.label,
            "placeholder": self.placeholder,
            "known": self.known is not None,
            "scale": self.scale,
            "id": self.elem_id,
            "start": self.start,
        }

    def begin(self, trace: TranslationTrace, translator: Translator) -> str:
        """Return the value of a control that nobody has set for this sentence."""
        return self.known(trace, translator) if self.known else self.start

    def fitted(self, value: object, config: ModelConfig) -> str:
        """Return the value without outer white space."""
        return value.strip() if isinstance(value, str) else ""


def tokens(trace: TranslationTrace, translator: Translator) -> int:
    """Return the number of tokens of the longer side of a sentence."""
    return max(len(trace.source_tokens), len(trace.target_tokens))


Control = Slider | Choice | Text


@dataclass(frozen=True)
class Button:
    """Pressed, the panel computes again; where there is one, the controls alone do not."""

    label: Words | str
    elem_id: str | None = None

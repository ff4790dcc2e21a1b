"""A panel of the page, the controls that it declares, and what a model must have for it.

A panel module defines PANEL, a Panel whose `compute` returns the blocks to draw (viz/wire/blocks.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace import is_number
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire.fields import read_entry
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.words import Words, say

Blocks = list[dict]  # of viz/wire/blocks.py
PAPER = "https://arxiv.org/abs/1706.03762"  # Vaswani et al. 2017


@dataclass(frozen=True)
class Slider:
    """A slider over the integers from low to high.

    high  a number, or a function of the model's configuration
    of    a function that counts what this sentence or its model has; the slider ends there if that is below high
    name  the field of a link that sets it (Panel.fields)
    """

    label: Words | str
    low: int
    high: int | Callable[[ModelConfig], int]
    start: int
    step: int = 1
    info: Words | None = None
    name: str = ""
    of: Callable[[TranslationTrace, Translator], int] | None = None

    def to_plain(self, configs: Sequence[ModelConfig]) -> dict:
        """Return the description for the page. configs: of all served models; the slider reaches the largest bound."""
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

    def upper_bound(self, trace: TranslationTrace, translator: Translator) -> int:
        """Return the largest value for a sentence and its model."""
        high = self._high(translator.config)
        return min(high, max(self.low + 1, self.of(trace, translator))) if self.of else high

    def initial(self, trace: TranslationTrace, translator: Translator) -> int:
        """Return the value before the visitor changes it."""
        return self.start

    def coerce(self, value: object, config: ModelConfig) -> int:
        """Return the value, limited to the model's bounds. Not a number (an emptied field): the start."""
        return int(max(self.low, min(value if is_number(value) else self.start, self._high(config))))

    def _high(self, config: ModelConfig) -> int:
        return self.high if isinstance(self.high, int) else self.high(config)


@dataclass(frozen=True)
class Choice:
    """One of several options, value -> label.

    folded  drawn as a menu, for many or long labels; otherwise all options are visible
    scale   its share of the row's width
    """

    label: Words | str
    options: Mapping[str, Words]
    start: str
    folded: bool = False
    scale: int | None = None
    name: str = ""

    def to_plain(self, configs: Sequence[ModelConfig]) -> dict:
        """Return the description for the page."""
        return {
            "type": "choice",
            "label": self.label,
            "options": [[value, words] for value, words in self.options.items()],
            "folded": self.folded,
            "scale": self.scale,
            "start": self.start,
        }

    def initial(self, trace: TranslationTrace, translator: Translator) -> str:
        """Return the value before the visitor changes it."""
        return self.start

    def coerce(self, value: object, config: ModelConfig) -> str:
        """Return the value. ValueError if it is not among the options."""
        if not isinstance(value, str) or value not in self.options:
            raise ValueError(f"{value!r} is none of the choices: {', '.join(self.options)}.")
        return value


@dataclass(frozen=True)
class Text:
    """A line of text.

    placeholder  an example, which an empty field shows
    suggest      a function of the scene and the values of all the panel's controls that returns the example
    known  a function that proposes the text for each new sentence. What the visitor types replaces the proposal until
           the sentence changes
    """

    label: Words | str
    placeholder: str | None = None
    suggest: Callable[..., str] | None = None
    known: Callable[[TranslationTrace, Translator], str] | None = None
    scale: int | None = None
    elem_id: str | None = None
    name: str = ""

    def to_plain(self, configs: Sequence[ModelConfig]) -> dict:
        """Return the description for the page. known: whether each new sentence brings its own text."""
        return {
            "type": "text",
            "label": self.label,
            "placeholder": self.placeholder,
            "known": self.known is not None,
            "scale": self.scale,
            "id": self.elem_id,
            "start": "",
        }

    def initial(self, trace: TranslationTrace, translator: Translator) -> str:
        """Return the value before the visitor changes it."""
        return self.known(trace, translator) if self.known else ""

    def coerce(self, value: object, config: ModelConfig) -> str:
        """Return the text without surrounding white space; "" if the value is no text."""
        return value.strip() if isinstance(value, str) else ""


Control = Slider | Choice | Text


def count_tokens(trace: TranslationTrace, translator: Translator) -> int:
    """Return the number of tokens of the longer side, for Slider.of."""
    return max(len(trace.source_tokens), len(trace.target_tokens))


@dataclass(frozen=True)
class Button:
    """A button that computes the panel. A panel that has one does not follow its controls."""

    label: Words | str
    elem_id: str | None = None


@dataclass(frozen=True)
class Need:
    """A property that a panel needs of the model or the trace, and the message shown without it."""

    is_met: Callable[[Scene], bool]
    message: Words


TRANSFORMER = Need(
    lambda scene: isinstance(scene.translator.model, Transformer),
    say("This panel is about Transformers; this model is a recurrent network."),
)

# Parts that a toy can be built without (model.config.PARTS).
MASKED = Need(
    lambda scene: scene.translator.config.look_ahead_mask,
    say("This network was built without the look-ahead mask, which this panel shows."),
)
SCALED = Need(
    lambda scene: scene.translator.config.scale_scores,
    say("This network was built without the division by √d_k, which this panel shows."),
)
DIVIDED_OR_BIASED = Need(
    lambda scene: "scale_scores" not in scene.translator.config.without,
    say("This network was built without the division by √d_k, which this panel shows."),
)
RESIDUAL = Need(
    lambda scene: scene.translator.config.residual,
    say("This network was built without residual connections, so it has no residual stream."),
)
ADDED_POSITIONS = Need(
    lambda scene: scene.translator.config.adds_positions,
    say("This network has no position encoding: nothing is added to its embeddings."),
)
RELATIVE = Need(
    lambda scene: scene.translator.config.position_code is PositionCode.RELATIVE,
    say("This model adds positions to its embeddings, not to its attention scores."),
)
WAVES = Need(
    lambda scene: scene.translator.config.position_code.has_waves,
    say("This model’s positions are not pairs of sines and cosines, so there are no waves to show."),
)


@dataclass(frozen=True)
class Panel:
    """One panel of a tab.

    name            its identifier in the page and in links
    title           of its place in the tab's strip, in English; it becomes translatable Words, as does look
    look            the lead. All text above the picture has at most 25 words (tests/leads.py)
    section         the section of the paper, or the paper's authors
    compute         compute(scene, *values of the controls) -> blocks, or a generator of successive versions of them.
                    The page shows the message of a ValueError
    needs           properties without which nothing is computed; the page says which is missing
    of_any_network  whether it also applies to networks other than Transformers
    button          computes the panel on request
    checks_page     whether the page sends what it draws (scene.drawn)
    actions         what its blocks can request: name -> action(scene, data, *values of the controls), which returns
                    blocks for a blocks.slot(), or a file. `data` comes from the page and is not validated
    fill_text       fill_text(scene, data, *values) -> the new text of the panel's Text control
    translate       translate(scene, data) -> the translation to open in every tab. If data has a step (and a token id),
                    the tab "Why" then asks about it
    stops           whether the page offers a button that stops the generator
    paper           the paper's address
    method          how to read the content, and how it was computed: the text below it
    """

    name: str
    title: str | Words
    look: str | Words
    section: Words
    compute: Callable[..., Blocks | Iterator[Blocks]]
    controls: tuple[Control, ...] = ()
    needs: tuple[Need, ...] = ()
    of_any_network: bool = False
    button: Button | None = None
    checks_page: bool = False
    actions: Mapping[str, Callable[..., Blocks | File]] = field(default_factory=dict)
    fill_text: Callable[..., str] | None = None
    translate: Callable[..., TranslationTrace] | None = None
    stops: bool = False
    paper: str = PAPER
    method: Words | None = None

    def __post_init__(self) -> None:
        for name in ("title", "look"):  # written as plain sentences
            if not isinstance(text := getattr(self, name), Words):
                object.__setattr__(self, name, Words(text, {}))

    @property
    def fields(self) -> list[str]:
        """The fields of a link that set the controls: their names, or set1, set2, … by position."""
        return [control.name or f"set{number}" for number, control in enumerate(self.controls, 1)]

    def unmet_needs(self, scene: Scene) -> tuple[Need, ...]:
        """Return the needs that this scene does not meet."""
        if not self.of_any_network and not TRANSFORMER.is_met(scene):
            return (TRANSFORMER,)  # the other needs are about Transformers
        return tuple(need for need in self.needs if not need.is_met(scene))

    def require(self, scene: Scene) -> None:
        """Raise a Refusal with the message of the first unmet need."""
        for need in self.unmet_needs(scene):
            raise Refusal.of(need.message)

    def content(self, scene: Scene, *values: object) -> Blocks | Iterator[Blocks]:
        """Compute the blocks for a scene. values: of the controls, as the page sends them."""
        return self.compute(scene, *self.coerce(scene, values))

    def act(self, scene: Scene, data: Mapping[str, object], *values: object) -> Blocks | File:
        """Run the action that data["act"] names. A Refusal for an unknown action or an unmet need."""
        return self.call(read_entry(data, "act", self.actions), scene, data, *values)

    def call(self, function: Callable, scene: Scene, data: Mapping[str, object], *values: object) -> object:
        """Call an action or fill_text with coerced values of the controls. A Refusal for an unmet need."""
        self.require(scene)
        return function(scene, data, *self.coerce(scene, values))

    def coerce(self, scene: Scene, values: Sequence[object]) -> list[object]:
        """Return the values of the controls, limited to what this model has."""
        config = scene.translator.config
        return [control.coerce(value, config) for control, value in zip(self.controls, values, strict=True)]

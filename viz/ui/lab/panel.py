"""A lab panel: one idea, a sentence on what to look for, its controls, and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gradio.i18n import I18nData

from model.nets.records import ForwardOutput
from model.trace.translation import TranslationTrace
from model.translator import Translator
from viz.ui.lab.controls import Button, Control
from viz.ui.session import Selection
from viz.wire import blocks
from viz.words import Words

Blocks = list[dict]  # of viz/wire/blocks.py


@dataclass(frozen=True, eq=False)
class Scene:
    """What a panel is about: the current translation, the explorer's selection in it, and the model."""

    trace: TranslationTrace
    selection: Selection
    translator: Translator
    drawn: object = None  # what the page says that it draws, for a panel that checks it: anything at all may come

    def inspect(self) -> ForwardOutput:
        """The model's records of this translation."""
        return self.translator.inspect(self.trace.source_ids, self.trace.target_ids)


@dataclass(frozen=True)
class Need:
    """Something that a model or a trace must have. words: what the page says where it does not."""

    met: Callable[[Scene], bool]
    words: Words


@dataclass(frozen=True)
class Panel:
    """name: its id in the page; title: of its tab; look: what to look for; section: where the paper says it.

    compute   compute(scene, *values of the controls) -> blocks, or a generator of them, each in place of the one
              before. A ValueError is shown in words. A slider's value is a whole number, inside this model's bounds
    needs     without them it is not computed; the page says what is missing
    again     a button that computes again
    opens     whether its blocks open other panels of the tab
    checks_page  whether the page is to say what it draws: scene.drawn
    """

    name: str
    title: I18nData
    look: Words
    section: Words
    compute: Callable[..., Blocks | Iterator[Blocks]]
    controls: tuple[Control, ...] = ()
    needs: tuple[Need, ...] = ()
    again: Button | None = None
    opens: bool = False
    checks_page: bool = False

    def missing(self, scene: Scene) -> Blocks:
        """What this scene lacks, in words; empty: it has all that the panel needs."""
        return [blocks.text(need.words) for need in self.needs if not need.met(scene)]

    def content(self, scene: Scene, *values: object) -> Blocks | Iterator[Blocks]:
        """Computed for this scene, with the values that the controls were set to. ValueError for what cannot be."""
        config = scene.translator.config
        fitted = [control.fitted(value, config) for control, value in zip(self.controls, values, strict=True)]
        return self.compute(scene, *fitted)

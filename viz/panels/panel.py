"""A lab panel: one idea, a sentence on what to look for, its controls, and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.panels.controls import Button, Control
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.fields import entry
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.words import Words, say

Blocks = list[dict]  # of viz/wire/blocks.py
PAPER = "https://arxiv.org/abs/1706.03762"  # Vaswani et al. 2017


@dataclass(frozen=True)
class Need:
    """Something that a model or a trace must have. words: what the page says where it does not."""

    met: Callable[[Scene], bool]
    words: Words


TRANSFORMER = Need(
    lambda scene: isinstance(scene.translator.model, Transformer),
    say("This panel takes a Transformer apart; this model is a recurrent network."),
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
    say("This network was built without residual connections: there is no stream that layers add to."),
)
TOLD_POSITIONS = Need(
    lambda scene: scene.translator.config.adds_positions,
    say("This network is told no positions: nothing is added to its embeddings."),
)
RELATIVE = Need(
    lambda scene: scene.translator.config.position_code is PositionCode.RELATIVE,
    say("This model adds its positions to the embeddings, and nothing to the scores of attention."),
)
WAVES = Need(
    lambda scene: scene.translator.config.position_code.has_waves,
    say("This model’s positions are not pairs of a sine and a cosine: there are no such waves in them to look at."),
)


@dataclass(frozen=True)
class Panel:
    """name: its id in the page; title: of its tab; look: what to look for; section: where the paper says it; paper: its
    address.

    compute   compute(scene, *values of the controls) -> blocks, or a generator of them, each in place of the one
              before. A ValueError is shown in words. A slider's value is a whole number, inside this model's bounds
    of_any_network  whether it is for other networks than Transformers, too
    needs     without them it is not computed; the page says what is missing
    again     a button that computes again
    checks_page  whether the page is to say what it draws: scene.drawn
    stops     whether a generator's work can be stopped by a button
    acts      what its blocks may ask for besides: name -> act(scene, data, *values of the controls) -> blocks, which
              take the place of one blocks.slot(), or a file. data is what the block sent: anything at all may come
    fills     what the panel's line of text becomes when a block asks for it: fills(scene, data, *values) -> text
    translates  the translation that every tab shows when a block asks for it: translates(scene, data) -> trace. Where
              data has a step, and maybe the id of another token, the tab "Why" is then asked about those
    """

    name: str
    title: Words
    look: Words
    section: Words
    compute: Callable[..., Blocks | Iterator[Blocks]]
    controls: tuple[Control, ...] = ()
    needs: tuple[Need, ...] = ()
    of_any_network: bool = False
    again: Button | None = None
    checks_page: bool = False
    acts: Mapping[str, Callable[..., Blocks | File]] = field(default_factory=dict)
    fills: Callable[..., str] | None = None
    translates: Callable[..., TranslationTrace] | None = None
    stops: bool = False
    paper: str = PAPER

    @property
    def fields(self) -> list[str]:
        """The fields of a link that set its controls: their names, `set1` and so on for those without one."""
        return [control.name or f"set{number}" for number, control in enumerate(self.controls, 1)]

    def missing(self, scene: Scene) -> Blocks:
        """What this scene lacks, in words; empty: it has all that the panel needs."""
        return [blocks.text(need.words) for need in self.unmet(scene)]

    def unmet(self, scene: Scene) -> tuple[Need, ...]:
        """Which needs this scene does not meet. Of another network than a Transformer nothing else is asked."""
        if not self.of_any_network and not TRANSFORMER.met(scene):
            return (TRANSFORMER,)
        return tuple(need for need in self.needs if not need.met(scene))

    def require(self, scene: Scene) -> None:
        """A Refusal for the first need that this scene does not meet: before anything besides content is asked."""
        for need in self.unmet(scene)[:1]:
            raise Refusal.of(need.words)

    def content(self, scene: Scene, *values: object) -> Blocks | Iterator[Blocks]:
        """Computed for this scene, with the values that the controls were set to. ValueError for what cannot be."""
        return self.compute(scene, *self.fitted(scene, values))

    def act(self, scene: Scene, data: Mapping[str, object], *values: object) -> Blocks | File:
        """What a block of this panel asks for: data["act"] names it. ValueError for what cannot be."""
        return self.given(entry(data, "act", self.acts), scene, data, *values)

    def given(self, find: Callable, scene: Scene, data: Mapping[str, object], *values: object) -> object:
        """What `fills` or `translates` gives when a block asks for it. ValueError for what cannot be."""
        self.require(scene)
        return find(scene, data, *self.fitted(scene, values))

    def fitted(self, scene: Scene, values: Sequence[object]) -> list[object]:
        """What the controls were set to, inside this model's bounds."""
        config = scene.translator.config
        return [control.fitted(value, config) for control, value in zip(self.controls, values, strict=True)]


def preparing_means(scene: Scene) -> Iterator[Blocks]:
    """The model's means are made, where there are none and can be some, and how far that is."""
    for step in scene.prepare_means():
        yield [blocks.note("Averaging each head's output: {n} of {all} sentences.", n=step.done, all=step.total)]

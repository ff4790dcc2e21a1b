"""The scene of a stop: a translation of its sentence, a pair of words, and a head that is chosen by a property."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from attention_atlas.model.analysis.survey.run import find_survey
from attention_atlas.model.analysis.why import questions
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.attribution import Against, Question
from attention_atlas.model.trace.words import SPACE, word_groups
from attention_atlas.viz.panels.scene import Scene, most_telling
from attention_atlas.viz.tours.tour import Pair
from attention_atlas.viz.wire.address import query_fields

Head = tuple[AttentionKind, int, int]  # kind, layer, head, from 0


@dataclass(frozen=True, eq=False)
class StopScene(Scene):
    """A scene with the head and the pair of words of a stop, if any. other: the words in another order, or ""."""

    pair: Pair | None = None
    head: Head | None = None
    other: str = ""

    @cached_property
    def source(self) -> tuple[int, ...]:
        """Positions of the pair's source word; empty if it does not occur."""
        return _find(self.trace.source_tokens, (self.pair.source,)) if self.pair and self.pair.source else ()

    @cached_property
    def target(self) -> tuple[int, ...]:
        """Steps that wrote the pair's translation; empty if it was not written."""
        return _find(self.trace.target_tokens, self.pair.targets) if self.pair else ()

    @property
    def weights(self) -> np.ndarray:
        """The map of the head [query, key]."""
        assert self.head is not None, "a measure of a head, at a stop that names none"
        kind, layer, head = self.head
        return self.trace.maps(kind).weights[layer, head]

    @property
    def source_weights(self) -> np.ndarray | None:
        """The weights [layers, heads] of cross-attention on the pair's source word in the step that writes its
        translation; None if either word is missing."""
        if not (self.source and self.target):
            return None
        rows = self.trace.maps(AttentionKind.CROSS).weights[:, :, self.target[0]]  # [layers, heads, key]
        return rows[..., list(self.source)].sum(-1)

    @cached_property
    def question(self) -> Question:
        """The question why the pair's translation was written, without a contrast."""
        return questions.make_question(self.translator, self.trace, self.target[0], Against.NOTHING)

    @property
    def written(self) -> str:
        """The pair's translation as written, or its first possible one."""
        return text_of(self.trace.target_tokens, self.target) or (self.pair.targets[0] if self.pair else "")

    def link(self, *, pinned: bool = True, row: int | None = None) -> dict[str, str]:
        """Return the fields of a link to the sentence and head and, if pinned, the tokens of the pair.

        row: of the decoder; None for the one that writes the pair's translation.
        """
        link = query_fields(self.trace)
        if self.head:
            kind, layer, head = self.head
            link |= {"kind": kind.value, "layer": str(layer + 1), "head": str(head + 1)}
        if not pinned:
            return link
        kind = self.head[0] if self.head else AttentionKind.CROSS
        if self.target and kind.side is Side.DECODER:
            step = str((self.target[0] if row is None else row) + 1)
            link |= {"query": step, "step": step, "alone": "1"}
        if self.source and kind is not AttentionKind.DECODER_SELF:
            link["key"] = str(self.source[0] + 1)
        return link


def text_of(tokens: Sequence[str], positions: Sequence[int]) -> str:
    """Return the text of tokens without spaces."""
    return "".join(tokens[i] for i in positions).replace(SPACE, "")


def display_text(token: str) -> str:
    """Return the text of a token, with a sign for a single space."""
    return token.replace(SPACE, "") or "␣"


def _find(tokens: Sequence[str], words: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the first of these words that occurs."""
    groups = word_groups(tokens)
    for word in words:
        for group in groups:
            if text_of(tokens, group).casefold() == word.casefold():
                # Leave out a separate token for the space.
                return group[1:] if len(group) > 1 and not text_of(tokens, group[:1]) else group
    return ()


def clearest_head(scene: StopScene) -> Head:
    """Return the cross-attention head that points most clearly in this sentence."""
    selection = most_telling(scene.trace)
    return selection.kind, selection.layer, selection.head


def reading_head(scene: StopScene) -> Head:
    """Return the cross-attention head with the largest weight on the pair's source word in the step that writes its
    translation, or clearest_head() if that was not written."""
    weights = scene.source_weights
    return clearest_head(scene) if weights is None else (AttentionKind.CROSS, *_largest(weights))


def aligning_head(scene: StopScene) -> Head:
    """Return the cross-attention head that aligns best with the word written next, or reading_head() without a
    survey."""
    try:
        return surveyed_head(scene, AttentionKind.CROSS, "alignment_predicted")
    except Refusal:
        return reading_head(scene)


def surveyed_head(scene: StopScene, kind: AttentionKind, statistic: str) -> Head:
    """Return the head with the largest value of a statistic in the survey. A Refusal if it was not measured."""
    survey = find_survey(scene.translator, scene.trace.direction)
    if survey is None:
        raise Refusal(
            "This model's heads have not been surveyed, so their general habits are unknown. "
            "Run a survey under More → All heads."
        )
    kind_survey = survey.kinds.get(kind)
    if kind_survey is None or statistic not in kind_survey.statistics:
        raise Refusal("The survey of this model's heads does not measure this.")
    return kind, *_largest(kind_survey.statistics[statistic].value)


def _largest(values: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(int(np.nanargmax(values)), values.shape)
    return int(layer), int(head)


# A stop names a property, never a head by number, so that it fits any model.
HEADS: Mapping[str, Callable[[StopScene], Head]] = {
    "points": clearest_head,
    "reads": reading_head,
    "previous_encoder": partial(surveyed_head, kind=AttentionKind.ENCODER_SELF, statistic="previous"),
    "previous_decoder": partial(surveyed_head, kind=AttentionKind.DECODER_SELF, statistic="previous"),
    "aligned": aligning_head,
    "aligned_read": partial(surveyed_head, kind=AttentionKind.CROSS, statistic="alignment_read"),
}

"""What a stop is about: a model, what it made of the stop's sentence, a word, and a head by what it does."""

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
    """head, pair: None where the stop names none. other: its words in another order; "": none is named."""

    pair: Pair | None = None
    head: Head | None = None
    other: str = ""

    @cached_property
    def source(self) -> tuple[int, ...]:
        """Positions of the pair's source word; empty: it is not there."""
        return _find(self.trace.source_tokens, (self.pair.source,)) if self.pair and self.pair.source else ()

    @cached_property
    def target(self) -> tuple[int, ...]:
        """Steps that wrote its translation; empty: none of the words that it may be was written."""
        return _find(self.trace.target_tokens, self.pair.targets) if self.pair else ()

    @property
    def weights(self) -> np.ndarray:
        """The head's map [query, key]."""
        assert self.head is not None, "a measure of a head, at a stop that names none"
        kind, layer, head = self.head
        return self.trace.maps(kind).weights[layer, head]

    @property
    def given(self) -> np.ndarray | None:
        """What each cross-attention head [layers, heads] gives to the pair's source word when its translation is about
        to be written; None: there is no such word, or it was not written."""
        if not (self.source and self.target):
            return None
        rows = self.trace.maps(AttentionKind.CROSS).weights[:, :, self.target[0]]  # [layers, heads, key]
        return rows[..., list(self.source)].sum(-1)

    @cached_property
    def question(self) -> Question:
        """Why the pair's translation was written, compared with nothing."""
        return questions.make_question(self.translator, self.trace, self.target[0], Against.NOTHING)

    @property
    def written(self) -> str:
        """The pair's translation as it was written; where it was not, as it might have been."""
        return text_of(self.trace.target_tokens, self.target) or (self.pair.targets[0] if self.pair else "")

    def link(self, *, pinned: bool = True, row: int | None = None) -> dict[str, str]:
        """The fields of a link: which sentence, head and, if pinned, tokens. row: of the decoder; None: the one that is
        about to write the pair's translation."""
        found = query_fields(self.trace)
        if self.head:
            kind, layer, head = self.head
            found |= {"kind": kind.value, "layer": str(layer + 1), "head": str(head + 1)}
        if not pinned:
            return found
        kind = self.head[0] if self.head else AttentionKind.CROSS
        if self.target and kind.side is Side.DECODER:
            step = str((self.target[0] if row is None else row) + 1)
            found |= {"query": step, "step": step, "alone": "1"}
        if self.source and kind is not AttentionKind.DECODER_SELF:
            found["key"] = str(self.source[0] + 1)
        return found


def text_of(tokens: Sequence[str], positions: Sequence[int]) -> str:
    """Pieces as they are written."""
    return "".join(tokens[i] for i in positions).replace(SPACE, "")


def shown(tokens: Sequence[str], positions: Sequence[int]) -> str:
    """The same to be read: a space that stands alone has a sign."""
    return text_of(tokens, positions) or "␣"


def _find(tokens: Sequence[str], words: Sequence[str]) -> tuple[int, ...]:
    groups = word_groups(tokens)
    for word in words:
        for group in groups:
            if text_of(tokens, group).casefold() == word.casefold():
                # A space that stands as a piece of its own is not what the word is about.
                return group[1:] if len(group) > 1 and not text_of(tokens, group[:1]) else group
    return ()


def points(scene: StopScene) -> Head:
    """The cross-attention head that points most clearly in this sentence."""
    found = most_telling(scene.trace)
    return found.kind, found.layer, found.head


def reads(scene: StopScene) -> Head:
    """The cross-attention head that gives most to the pair's source word when its translation is about to be written;
    where that was not written, the one that points most clearly."""
    given = scene.given
    return points(scene) if given is None else (AttentionKind.CROSS, *_largest(given))


def aligned(scene: StopScene) -> Head:
    """The cross-attention head whose weights align best to the word about to be written; without a survey that says
    so, the one that `reads` picks."""
    try:
        return named_for(scene, AttentionKind.CROSS, "alignment_predicted")
    except Refusal:
        return reads(scene)


def named_for(scene: StopScene, kind: AttentionKind, statistic: str) -> Head:
    """The head of a kind that has most of a statistic over many sentences. A Refusal where nobody counted it."""
    survey = find_survey(scene.translator, scene.trace.direction)
    if survey is None:
        raise Refusal(
            "There is no survey of this model's heads beside its weights, so nothing is known about what they do in "
            "general. The tab Heads can run one."
        )
    found = survey.kinds.get(kind)
    if found is None or statistic not in found.statistics:
        raise Refusal("The survey of this model's heads does not count this.")
    return kind, *_largest(found.statistics[statistic].value)


def _largest(values: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(int(np.nanargmax(values)), values.shape)
    return int(layer), int(head)


# By what they do: a stop says which property it wants, never which head.
HEADS: Mapping[str, Callable[[StopScene], Head]] = {
    "points": points,
    "reads": reads,
    "previous_encoder": partial(named_for, kind=AttentionKind.ENCODER_SELF, statistic="previous"),
    "previous_decoder": partial(named_for, kind=AttentionKind.DECODER_SELF, statistic="previous"),
    "aligned": aligned,
    "aligned_read": partial(named_for, kind=AttentionKind.CROSS, statistic="alignment_read"),
}

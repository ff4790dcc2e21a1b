"""The question: why this token, and not that one. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from attention_atlas.model.trace.language import Refusal


class Against(Enum):
    """What a token is compared with where no word is named: the most probable other token, or nothing."""

    RUNNER_UP = "runner-up"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Question:
    """Why did row `step` of the decoder write this token?

    With a contrast the metric is log p(token) - log p(contrast), in nats: the normaliser cancels, so it is the
    difference of two logits and can be split exactly. Without, it is log p(token), and what can be split exactly is the
    token's logit less the mean logit of the vocabulary: never log p itself.
    note: how a typed contrast of several pieces was read; empty otherwise.
    """

    step: int
    token_id: int
    token: str
    contrast_id: int | None = None
    contrast: str | None = None
    note: str = ""

    @property
    def in_words(self) -> str:
        """In a line."""
        return self.token if self.contrast is None else f"{self.token} rather than {self.contrast}"

    def __post_init__(self) -> None:
        if self.token_id == self.contrast_id:
            raise Refusal("{token} cannot be compared with itself: choose another contrast", token=repr(self.token))

"""What a checkpoint reads and writes: ids for texts, within its limits and directions.

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> translator.encode("Der Hund schläft.")[-1] == translator.tokenizer.end_id
True
>>> translator.fits("Der Hund schläft."), translator.fits("Hund, " * 1_000)
(True, False)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_atlas.model.checkpoint import Checkpoint, Example
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.text.tidy import tidy
from attention_atlas.model.trace.directions import Languages, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.recipe import Recipe
from attention_atlas.model.trace.survey.survey import Survey
from attention_atlas.model.trace.tokens import whole_ids
from attention_atlas.model.trace.translation import TranslationTrace

__all__ = ["Sentence", "Texts"]

Sentence = str | Sequence[int] | TranslationTrace  # a text, its ids, or a trace that holds both sides' ids


class Texts:
    """Everything about a checkpoint but its network."""

    def __init__(self, checkpoint: Checkpoint, limits: BatchLimits) -> None:
        self.name: str = checkpoint.name
        self.digest: str = checkpoint.digest
        self.metrics: dict[str, Any] = checkpoint.metrics
        self.directions: tuple[str, ...] = checkpoint.directions
        self.tokenizer: TextTokenizer = checkpoint.tokenizer
        self.languages: Languages | None = checkpoint.languages  # of which any pair is a direction; None: of none
        self.examples: Mapping[str, tuple[Example, ...]] = checkpoint.examples
        self.survey: Survey | None = checkpoint.survey
        self.folder: Path | None = checkpoint.folder
        self.recipe: Recipe | None = checkpoint.recipe
        self.config: ModelConfig = checkpoint.model.config
        self.max_tokens: int = limits.longest(self.config)  # that each side of a text may have

    def encode(self, text: str, direction: str | None = None) -> list[int]:
        """Source ids of a text: `<2xx>` .. `</s>`.

        ValueError, in words, if it is empty, longer than the limit, or the direction is not this checkpoint's.
        """
        text = tidy(text)
        if not text:
            raise Refusal("The text is empty: type a sentence to translate.")
        return self._within(self._source_ids(text, direction))

    def encode_typed(self, text: str, *, joined: bool = False) -> list[int]:
        """Ids of text that a person types into a target. joined: without the space that starts a word. ValueError, in
        words, for empty text."""
        if not (text := tidy(text)):
            raise Refusal("There is no text: type a word or more.")
        return (self.tokenizer.encode_joined if joined else self.tokenizer.encode)(text)

    def encode_target(self, text: str, direction: str | None = None) -> list[int]:
        """Ids of a whole translation: the forced prefix, the text's ids, `</s>`. ValueError for empty text."""
        return [*self.forced_prefix(direction), *self.encode_typed(text), self.tokenizer.end_id]

    def source_ids(self, sentence: Sentence, direction: str | None = None) -> list[int]:
        """The source ids of a text, of ids or of a trace, whose ids are taken as they are. ValueError, in words, as in
        encode(), and for ids that are not the vocabulary's."""
        if isinstance(sentence, str):
            return self.encode(sentence, direction)
        ids = sentence.source_ids if isinstance(sentence, TranslationTrace) else sentence
        return self._within(whole_ids(ids, self.config.vocabulary_size))

    def target_ids(self, sentence: Sentence, direction: str | None = None) -> list[int]:
        """The target ids of a text, of ids or of a trace: a trace's ids are those that the model wrote, which encoding
        its translation need not give. ValueError, in words, as in encode_target()."""
        if isinstance(sentence, str):
            return self.encode_target(sentence, direction)
        ids = sentence.target_ids if isinstance(sentence, TranslationTrace) else sentence
        return whole_ids(ids, self.config.num_target_tokens)

    def check_target(self, target_ids: Sequence[int]) -> list[int]:
        """The ids as a list. ValueError if there are none, too many, an unknown one, or `</s>` before the end."""
        ids, limit = whole_ids(target_ids, self.config.num_target_tokens), self.max_tokens - 1
        if not ids:
            raise Refusal("The target is empty: there is nothing to follow.")
        if len(ids) > limit:
            raise Refusal("The target is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=limit)
        if self.tokenizer.end_id in ids[:-1]:
            raise Refusal("Nothing can follow the end of the sentence.")
        return ids

    def fits(self, text: str, direction: str | None = None) -> bool:
        """Whether a text is within the limit."""
        return len(self._source_ids(tidy(text), direction)) <= self.max_tokens

    def check_direction(self, direction: str | None) -> str:
        """The direction itself, the checkpoint's first for None; ValueError if the checkpoint does not have it."""
        direction = self.directions[0] if direction is None else direction
        if direction not in self.directions and not (self.languages and direction in self.languages):
            raise Refusal(
                "Unknown direction {direction}: this model translates {all}.",
                direction=repr(direction),
                all=", ".join(self.directions),
            )
        return direction

    def forced_prefix(self, direction: str | None = None) -> tuple[int, ...]:
        """The ids that every translation in this direction begins with: in most models none."""
        return self.tokenizer.forced_prefix(parse_direction(self.check_direction(direction))[1])

    def step_limit(self, source_length: int) -> int:
        """How many tokens a translation may have, including a given beginning: a little more than twice the source,
        within max_tokens."""
        return min(self.max_tokens - 1, 2 * source_length + 10)

    def _within(self, ids: list[int]) -> list[int]:
        if not ids:
            raise Refusal("The text is empty: type a sentence to translate.")
        if len(ids) > self.max_tokens:
            raise Refusal(
                "The text is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=self.max_tokens
            )
        return ids

    def _source_ids(self, text: str, direction: str | None) -> list[int]:
        source, target = parse_direction(self.check_direction(direction))
        return self.tokenizer.encode_source(text, target, source)

    def _begun(self, prefix: str | Sequence[int] | None, direction: str | None) -> tuple[int, ...]:
        if isinstance(prefix, str):
            prefix = [*self.forced_prefix(direction), *self.encode_typed(prefix)] if prefix.strip() else ()
        ids = () if prefix is None else whole_ids(prefix, self.config.num_target_tokens)
        return tuple(self.check_target(ids)) if ids else ()

    def _decoder_ids(self, target_ids: Sequence[int]) -> list[int]:
        return [self.tokenizer.begin_id, *target_ids[:-1]]

    def _limits(self, sources: Sequence[Sequence[int]], prefix: tuple[int, ...]) -> list[int]:
        room, given = self.max_tokens - 1 - len(prefix), len(prefix)
        # A long prefix still gets a few steps of its own, as far as the model reaches.
        return [min(max(self.step_limit(len(ids)) - given, 10), room) for ids in sources]

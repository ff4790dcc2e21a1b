"""The address of a translation: JSON from which any process can make it again. Importable without torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from attention_atlas.model.trace import decoding, interventions_file, is_integer
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.trace.translation import TranslationTrace

TEXTS = ("text", "direction", "checkpoint", "digest")
FIELDS = (*TEXTS, "source_ids", "target_ids", "decoding", "interventions", "recipe")


@dataclass(frozen=True)
class Address:
    """A text to translate, or a translation that was made.

    text           what was typed; beside source_ids it is their label
    direction      such as "de-en"; "" for the first that is served
    checkpoint     the model's name; "" for the first that has the direction
    digest         of the model's weights; "" for whatever weights the checkpoint has now
    source_ids     None: those that the text is encoded as
    target_ids     with `</s>` where the translation is finished; None: those that the model writes
    decoding       how the target was found, with the number of forced tokens; None: not known
    interventions  what the model was changed by
    recipe         of a toy: how its weights are trained again; None for every other model
    """

    text: str
    direction: str = ""
    checkpoint: str = ""
    digest: str = ""
    source_ids: tuple[int, ...] | None = None
    target_ids: tuple[int, ...] | None = None
    decoding: Decoding | None = GREEDY
    interventions: Interventions = NO_INTERVENTIONS
    recipe: ToyRecipe | None = None

    @classmethod
    def of(cls, trace: TranslationTrace) -> Address | None:
        """The address of a trace; None for one whose interventions cannot be run again: nobody else can make it."""
        if trace.identity.unique:
            return None
        return cls(
            trace.source_text,
            trace.direction,
            trace.checkpoint,
            trace.digest,
            tuple(trace.source_ids),
            tuple(trace.target_ids),
            trace.decoding,
            trace.interventions,
            trace.recipe,
        )

    @classmethod
    def from_plain(cls, data: object) -> Address:
        """From JSON that anybody may have written. ValueError, in words, for what is no address."""
        if not isinstance(data, dict) or not set(data) <= set(FIELDS):
            raise ValueError(f"An address is an object with the fields {', '.join(FIELDS)}.")
        for name in TEXTS:
            if not isinstance(data.get(name, ""), str):
                raise ValueError(f"{name} must be a text.")
        try:
            changes = interventions_file.from_plain(data.get("interventions") or {})
        except ValueError as error:
            raise ValueError(f"The interventions cannot be read: {error}.") from error
        return cls(
            *(data.get(name, "") for name in TEXTS),
            _ids(data, "source_ids"),
            _ids(data, "target_ids"),
            decoding.from_plain(data["decoding"]) if "decoding" in data else GREEDY,
            changes,
            None if data.get("recipe") is None else ToyRecipe.from_plain(data["recipe"]),
        )

    def to_plain(self) -> dict:
        """JSON-ready. Equal addresses give the same JSON text."""
        return {
            **{name: getattr(self, name) for name in TEXTS},
            "source_ids": None if self.source_ids is None else list(self.source_ids),
            "target_ids": None if self.target_ids is None else list(self.target_ids),
            "decoding": decoding.to_plain(self.decoding),
            "interventions": interventions_file.to_plain(self.interventions),
            **({} if self.recipe is None else {"recipe": self.recipe.to_plain()}),
        }

    @property
    def key(self) -> str:
        """A short name: the SHA-256 of its JSON text, in hex."""
        text = json.dumps(self.to_plain(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _ids(data: dict, name: str) -> tuple[int, ...] | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(is_integer(one, 0) for one in value):
        raise ValueError(f"{name} must be a list of token numbers.")
    return tuple(value)

"""The address of a translation: JSON from which any process can make it again."""

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
IDS = ("source_ids", "target_ids")
FIELDS = (*TEXTS, *IDS, "decoding", "interventions", "recipe")


@dataclass(frozen=True)
class Address:
    """A text to translate, or a translation that was made.

    text           the text as typed; only a label if there are source_ids
    direction      the language pair, such as "de-en"; "" for the first that the server has
    checkpoint     the model's name; "" for the first that serves the direction
    digest         the digest of the model's weights; "" for the checkpoint's current weights
    source_ids     None: the tokenizer's encoding of the text
    target_ids     with `</s>` if the translation is finished; None: the model's own translation
    decoding       the search, and the number of given tokens; None: unknown
    interventions  changes to the model
    recipe         how to train the model again if it is a toy; None for every other model
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
        """Return the address of a trace, or None if its interventions cannot be repeated."""
        if trace.unique:
            return None
        return cls(trace.source_text, **{name: getattr(trace, name) for name in FIELDS if name != "text"})

    @classmethod
    def from_plain(cls, data: object) -> Address:
        """Read untrusted JSON. ValueError, naming the field, for anything that is no address."""
        if not isinstance(data, dict) or not set(data) <= set(FIELDS):
            raise ValueError(f"An address is an object with the fields {', '.join(FIELDS)}.")
        values = {name: data.get(name, "") for name in TEXTS}
        for name, text in values.items():
            if not isinstance(text, str):
                raise ValueError(f"{name} must be a text.")
        for name in IDS:
            ids = data.get(name)
            if ids is not None and not (isinstance(ids, list) and all(is_integer(i, 0) for i in ids)):
                raise ValueError(f"{name} must be a list of token numbers.")
            values[name] = None if ids is None else tuple(ids)
        try:
            values["interventions"] = interventions_file.from_plain(data.get("interventions") or {})
        except ValueError as error:
            raise ValueError(f"The interventions cannot be read: {error}.") from error
        if "decoding" in data:
            values["decoding"] = decoding.from_plain(data["decoding"])
        if data.get("recipe") is not None:
            values["recipe"] = ToyRecipe.from_plain(data["recipe"])
        return cls(**values)

    def to_plain(self) -> dict:
        """Convert to JSON-ready data. Equal addresses give the same JSON text."""
        return {
            **{name: getattr(self, name) for name in TEXTS},
            **{name: None if (ids := getattr(self, name)) is None else list(ids) for name in IDS},
            "decoding": decoding.to_plain(self.decoding),
            "interventions": interventions_file.to_plain(self.interventions),
            **({} if self.recipe is None else {"recipe": self.recipe.to_plain()}),
        }

    @property
    def key(self) -> str:
        """The SHA-256 of its JSON text, in hex."""
        text = json.dumps(self.to_plain(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

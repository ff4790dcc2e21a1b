"""The recipe of a toy (a small model trained in the page), from which any process trains the same weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from attention_atlas.model.trace import is_integer


@dataclass(frozen=True)
class ToyRecipe:
    """How a toy is trained.

    corpus    one sentence pair a line, its sides separated by a bar (model.training.toy.corpora)
    settings  of the network and the optimiser (model.training.toy.settings), as a JSON object with sorted keys
    updates   the number of optimiser updates
    """

    corpus: str
    settings: str
    updates: int

    @classmethod
    def of(cls, corpus: str, settings: dict[str, Any], updates: int) -> ToyRecipe:
        """Make a recipe from settings as plain values."""
        return cls(corpus, json.dumps(settings, sort_keys=True), updates)

    @classmethod
    def from_plain(cls, data: object) -> ToyRecipe:
        """Read untrusted JSON. ValueError for anything that is no recipe; the values of the settings are checked when a
        toy is trained."""
        if not isinstance(data, dict) or set(data) != {"corpus", "settings", "updates"}:
            raise ValueError("A recipe is an object with the fields corpus, settings and updates.")
        settings = data["settings"]
        if not isinstance(data["corpus"], str):
            raise ValueError("corpus must be a text.")
        if not isinstance(settings, dict) or not all(isinstance(v, str | int | float) for v in settings.values()):
            raise ValueError("settings must be an object of texts, numbers, true and false.")
        if not is_integer(data["updates"], 0):
            raise ValueError("updates must be a whole number, 0 or more.")
        return cls.of(data["corpus"], settings, data["updates"])

    def to_plain(self) -> dict[str, Any]:
        """Convert to JSON-ready data. Equal recipes give the same JSON text."""
        return {"corpus": self.corpus, "settings": json.loads(self.settings), "updates": self.updates}

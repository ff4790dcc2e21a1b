"""Read a model's name and licence from its card. A card is a stranger's text: it is displayed and never executed."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from attention_atlas.model.families.folder import Folder, model_name
from attention_atlas.model.files import MAX_CONFIG_BYTES

CARD = "README.md"
UNKNOWN = "not stated"
MAX_CHARACTERS = 120  # of a licence


@dataclass(frozen=True)
class Origin:
    """name: the repository's, or the folder's; licence: as the card states it, or "not stated"."""

    name: str
    licence: str


def read_origin(folder: Folder) -> Origin:
    """Read the front matter of a folder's card. A card that is missing, too long or not YAML states nothing."""
    try:
        text = folder.bytes(CARD, MAX_CONFIG_BYTES).decode("utf-8") if folder.has(CARD) else ""
        front = yaml.safe_load(text[4 : text.index("\n---", 4)]) if text.startswith("---\n") else {}
    except (yaml.YAMLError, RecursionError, ValueError):  # ValueError: no UTF-8, no end, or a link out of the folder
        front = {}
    fields = [front.get(key) for key in ("license_name", "license")] if isinstance(front, dict) else []
    licence = next((field for field in fields if isinstance(field, str) and field.strip()), UNKNOWN)
    printable = "".join(character for character in licence if character.isprintable())
    return Origin(model_name(folder.path), " ".join(printable.split())[:MAX_CHARACTERS] or UNKNOWN)

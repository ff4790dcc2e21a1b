"""Where a model comes from and under which licence, as its own card says: text of strangers, shown and never run."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from attention_atlas.model.families.folder import Folder, name_of
from attention_atlas.model.files import MAX_CONFIG_BYTES

CARD = "README.md"
UNKNOWN = "not stated"
MAX_WORDS = 120  # characters of a field that are kept


@dataclass(frozen=True)
class Origin:
    """name: the repository's, or the folder's; licence: the card's word for it, or "not stated"."""

    name: str
    licence: str


def origin(folder: Folder) -> Origin:
    """Read the front matter of a folder's card. A card that is missing, too long or not YAML states nothing."""
    return Origin(name_of(folder.path), _licence(folder))


def _licence(folder: Folder) -> str:
    if not folder.has(CARD):
        return UNKNOWN
    try:
        text = folder.bytes(CARD, MAX_CONFIG_BYTES).decode("utf-8")
    except ValueError:  # too large, a link that leads out, or no UTF-8
        return UNKNOWN
    if not text.startswith("---\n") or "\n---" not in text[4:]:
        return UNKNOWN
    try:
        front = yaml.safe_load(text[4 : text.index("\n---", 4)])
    except (yaml.YAMLError, RecursionError, ValueError):
        return UNKNOWN
    found = [front.get(key) for key in ("license_name", "license") if isinstance(front, dict)]
    said = next((f for f in found if isinstance(f, str) and f.strip()), UNKNOWN)
    return " ".join("".join(c for c in said if c.isprintable()).split())[:MAX_WORDS] or UNKNOWN

"""Names of translation directions. Importable without torch."""

from __future__ import annotations


def parse_direction(direction: str) -> tuple[str, str]:
    """"de-en" -> ("de", "en"). ValueError for anything else."""
    parts = tuple(direction.split("-"))
    if len(parts) != 2 or not all(part.isalpha() and part.islower() for part in parts) or parts[0] == parts[1]:
        raise ValueError(f"a direction is two different language codes such as 'de-en', found {direction!r}")
    return parts

"""Names of translation directions. Importable without torch."""

from __future__ import annotations

import re

_CODE = re.compile(r"[A-Za-z]{1,20}(_[A-Za-z0-9]{1,20}){0,2}")


def is_code(code: object) -> bool:
    """Whether it names a language, or a group of them, in any of the published ways: de, deu_Latn, de_DE, ROMANCE."""
    return isinstance(code, str) and _CODE.fullmatch(code) is not None


def parse_direction(direction: str) -> tuple[str, str]:
    """"de-en" -> ("de", "en"), "eng_Latn-deu_Latn" likewise. ValueError for anything else."""
    parts = tuple(direction.split("-"))
    if len(parts) != 2 or not all(map(is_code, parts)) or parts[0] == parts[1]:
        raise ValueError(f"a direction is two different language codes such as 'de-en', found {direction!r}")
    return parts

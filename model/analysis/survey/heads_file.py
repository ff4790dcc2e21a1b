"""A survey's file beside the weights that it is of."""

from __future__ import annotations

import json
from pathlib import Path

from model.files import read_json, replace_file
from model.trace.survey.survey import Survey, from_json, to_json

FILE = "heads.json"
LARGEST = 8_000_000  # bytes


def save(path: Path, survey: Survey) -> None:
    """Write it, whole or not at all."""
    text = json.dumps(to_json(survey), separators=(",", ":"), ensure_ascii=False) + "\n"
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def load(path: Path, digest: str) -> Survey:
    """Read a file of save(). ValueError, naming the file, if it is damaged or of other weights than the digest's."""
    values = read_json(path, limit=LARGEST)
    try:
        found = from_json(values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if found.digest != digest:
        raise ValueError(f"{path} is of other weights ({found.digest}, here {digest}): "
                         "run python -m model.survey again")
    return found

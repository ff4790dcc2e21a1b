"""A file as the answer to a question, which the page saves."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from attention_atlas.model.trace.language import Refusal

MAX_BYTES = 64_000_000  # of a file


@dataclass(frozen=True)
class File:
    """A file with its name and its media type, as in HTTP. Raises a Refusal if it is too large."""

    name: str
    media_type: str
    content: bytes

    def __post_init__(self) -> None:
        check_size(len(self.content))

    def to_plain(self) -> dict:
        """Return the file as JSON, for an answer that is part of a stream."""
        data = base64.b64encode(self.content).decode("ascii")
        return {"file": {"name": self.name, "type": self.media_type, "data": data}}


def check_size(size: int) -> None:
    """Raise a Refusal if a file has more bytes than the server sends."""
    if size > MAX_BYTES:
        raise Refusal(
            "This file would be {n} MB; the page sends at most {limit} MB. In Python, trace.save() writes it.",
            n=size // 1_000_000,
            limit=MAX_BYTES // 1_000_000,
        )

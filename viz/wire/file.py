"""Files that the server makes and the page saves."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from attention_atlas.model.trace.language import Refusal

LARGEST = 64_000_000  # bytes of a file


@dataclass(frozen=True)
class File:
    """A file as the answer to a question. media_type: as in HTTP. A Refusal if it is too large."""

    name: str
    media_type: str
    content: bytes

    def __post_init__(self) -> None:
        check_size(len(self.content))

    def to_plain(self) -> dict:
        """Return it as JSON, for an answer that is a part of a stream."""
        data = base64.b64encode(self.content).decode("ascii")
        return {"file": {"name": self.name, "type": self.media_type, "data": data}}


def check_size(size: int) -> None:
    """Raise a Refusal for a file of more bytes than the page sends."""
    if size > LARGEST:
        raise Refusal(
            "This file would have {n} MB, and the page sends up to {limit} MB. In Python, trace.save() writes it.",
            n=size // 1_000_000,
            limit=LARGEST // 1_000_000,
        )

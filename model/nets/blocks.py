"""Logits some rows at a time: those of a long sentence over 256,000 tokens are 170 MB, those of a lens through twelve
layers 2 GB."""

from __future__ import annotations

ROOM = 1 << 22  # logits that are held at once: 16 MB in float32


def blocks(rows: int, vocabulary: int, *, room: int = ROOM) -> list[slice]:
    """Slices of `rows` rows whose logits over `vocabulary` tokens fit into the room, at least one row each."""
    size = max(1, room // vocabulary)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]

"""Split checkpoints into parts of limited size, without the optimiser's state, and join them again."""

from __future__ import annotations

import hashlib
from pathlib import Path

from attention_atlas.model.files import replace_file

PART_BYTES = 15 * 2**20
SUMS = "sums.txt"  # SHA-256, two spaces, the file's path in the checkpoints' folder


def split(checkpoints: Path, out: Path, *, part_bytes: int = PART_BYTES) -> list[Path]:
    """Write every file below `checkpoints` into `out` as NAME.000, NAME.001 and so on, folders joined by "--", and
    their checksums beside them. Returns what was written."""
    out.mkdir(parents=True, exist_ok=True)
    written, sums = [], []
    for path in sorted(path for path in checkpoints.rglob("*") if path.is_file()):
        name, content = path.relative_to(checkpoints).as_posix(), path.read_bytes()
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
        for number, start in enumerate(range(0, max(1, len(content)), part_bytes)):
            part = out / f"{name.replace('/', '--')}.{number:03d}"
            piece = content[start : start + part_bytes]
            replace_file(part, lambda partial, piece=piece: partial.write_bytes(piece))
            written.append(part)
    replace_file(out / SUMS, lambda partial: partial.write_text("".join(sums), encoding="utf-8"))
    return [*written, out / SUMS]


def join(parts: Path, checkpoints: Path) -> list[Path]:
    """Join split files. Raises ValueError if a part is missing or damaged."""
    paths = []
    for line in (parts / SUMS).read_text(encoding="utf-8").splitlines():
        wanted, name = line.split("  ", 1)
        pieces = sorted(parts.glob(f"{name.replace('/', '--')}.[0-9][0-9][0-9]"))
        content = b"".join(piece.read_bytes() for piece in pieces)
        if hashlib.sha256(content).hexdigest() != wanted:
            raise ValueError(f"{name} is not whole: {len(pieces)} parts were found in {parts}")
        path = checkpoints / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda partial, content=content: partial.write_bytes(content))
        paths.append(path)
    return paths

"""Folders that are split into parts are joined again, unless a part is missing."""

from __future__ import annotations

import pytest

from recipes.parts import join, split


def test_split_files_join_to_the_same_content(tmp_path):
    (tmp_path / "from" / "a").mkdir(parents=True)
    files = {"a/large": bytes(range(256)) * 10, "a/empty": b"", "small": b"x"}
    for name, content in files.items():
        (tmp_path / "from" / name).write_bytes(content)
    parts = split(tmp_path / "from", tmp_path / "parts", part_bytes=1000)
    assert len(parts) == 3 + 1 + 1 + 1 and all(part.stat().st_size <= 1000 for part in parts)
    join(tmp_path / "parts", tmp_path / "to")
    assert {name: (tmp_path / "to" / name).read_bytes() for name in files} == files
    (tmp_path / "parts" / "a--large.001").unlink()
    with pytest.raises(ValueError, match="a/large is not whole: 2 parts"):
        join(tmp_path / "parts", tmp_path / "again")

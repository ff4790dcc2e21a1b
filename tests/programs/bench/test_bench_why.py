"""python -m bench.why: it times the works of the page and counts their operations."""

from __future__ import annotations

import json

from attention_atlas.model import checkpoint
from bench import why


def test_it_reports_each_work_with_its_bound(tiny_checkpoint, capsys, tmp_path):
    why.main(["--checkpoint", str(tiny_checkpoint), "--runs", "1", "--json", str(tmp_path / "why.json")])
    first, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert json.loads((tmp_path / "why.json").read_text()) == [first, *rows]
    assert first["tokens"] == [16, 16] and first["gigaflops_per_second"] > 0
    assert len(rows) == 9 and all(row["seconds"] > 0 and row["times_the_bound"] > 0 for row in rows)
    assert all(row["bar_seconds"] in why.BARS["shipped"].values() for row in rows)
    assert {bar for bar, _ in why.works(*why.inputs(checkpoint.load(tiny_checkpoint).model), None).values()} == set(
        why.BARS["shipped"]
    )
    assert any(row["what"].startswith("32 heads") for row in rows)

"""python -m bench.toy: it runs and prints what it measured."""

from __future__ import annotations

import json

import pytest

from bench import toy


@pytest.mark.long
def test_it_measures_runs_with_and_without_frames_and_translations_beside_them(capsys, tiny_checkpoint, tmp_path):
    toy.main(
        ["--checkpoint", str(tiny_checkpoint), "--updates", "3", "--rounds", "1", "--json", str(tmp_path / "toy.json")]
    )
    measurements = json.loads((tmp_path / "toy.json").read_text())
    printed = capsys.readouterr().out
    assert all(row["value"] > 0 and row["name"] in printed for row in measurements)
    assert {"updates_bare_3", "updates_watched_3"} <= {row["name"] for row in measurements}

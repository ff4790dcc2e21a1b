"""The toy's benchmark runs and says what it measured; how long it took is no test's business."""

from __future__ import annotations

import json
import re

import pytest

from bench import toy


@pytest.mark.long
def test_it_measures_runs_with_and_without_frames_and_translations_beside_them(capsys, tiny_checkpoint, tmp_path):
    toy.main(
        ["--checkpoint", str(tiny_checkpoint), "--updates", "3", "--rounds", "1", "--json", str(tmp_path / "toy.json")]
    )
    assert all(one["value"] > 0 for one in json.loads((tmp_path / "toy.json").read_text()))
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"3 updates: bare [\d.]+ s, watched [\d.]+ s, [\d.]+ times as long; first frame after \d+ ms", first
    )
    assert re.fullmatch(r"a translation: \d+ ms alone, \d+ ms while three train, [\d.]+ times as long", second)

"""python -m bench.parts: each part is reported beside its bound."""

from __future__ import annotations

import json
import time

import pytest
import torch
from torch import nn

from attention_atlas.model.nets.products import packed, packing_is_supported
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.wire import blocks
from bench import parts, why


def test_it_reports_each_part_with_its_bound(tiny_checkpoint, capsys, tmp_path):
    options = ["--sections", "maps", "why", "--lengths", "4", "--runs", "1", "--json", str(tmp_path / "parts.json")]
    before = torch.get_num_threads()
    parts.main(["--checkpoint", str(tiny_checkpoint), *options])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == json.loads((tmp_path / "parts.json").read_text()) and torch.get_num_threads() == before
    assert all(row["milliseconds"] > 0 and row["bound_milliseconds"] >= 0 for row in rows)
    named = [row.get("part") or row["why"] for row in rows]
    assert named[:4] == ["encoder", "steps", "what each step chose by", "maps and trace"]
    assert set(named[5:]) == set(parts.METHODS) and len(named) == len(set(named))
    of = {name: row["bound_milliseconds"] for name, row in zip(named, rows)}
    assert of["integrated_gradients"] > 20 * of["gradient_x_input"] > 0


@pytest.mark.skipif(not packing_is_supported(), reason="this processor's PyTorch packs no float16")
@pytest.mark.parametrize("rows", [1, 100])
def test_products_of_packed_matrices_are_counted(rows):
    """Otherwise a method that multiplies by them would take less time than its bound."""
    product = packed(nn.Parameter(torch.randn(16, 48).half().float().t()))
    assert why.count_flops(lambda: product(torch.randn(rows, 3, 16))) == 2 * rows * 3 * 16 * 48


def test_a_panel_is_timed_to_its_first_part_and_to_its_last(tiny_checkpoint, capsys, monkeypatch):
    def streams(scene):
        yield [blocks.text("first")]
        time.sleep(0.05)  # takes no processor time: a visitor waits for it
        yield [blocks.text(f"{scene.output.hidden.shape[1]} rows")]

    words = ("title", "look", "section")
    panels = [
        Panel("streams", *words, streams),
        Panel("at-once", *words, lambda scene: []),
        Panel("other", *words, None),
    ]
    monkeypatch.setattr(parts.registry, "PANELS", {"tab": panels})
    options = ["--sections", "panels", "--panels", "streams", "at-once", "--runs", "1"]
    parts.main(["--checkpoint", str(tiny_checkpoint), *options])
    first, at_once = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["milliseconds"] >= first["first part, milliseconds"] + 50 and first["bound_milliseconds"] > 0
    assert at_once["milliseconds"] == at_once["first part, milliseconds"] < 50 and at_once["bound_milliseconds"] == 0

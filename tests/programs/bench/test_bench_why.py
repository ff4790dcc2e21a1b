"""python -m bench.why: what is timed is what the page asks for, and the operations are counted."""

from __future__ import annotations

import json

import pytest
from torch.utils.flop_counter import FlopCounterMode

from attention_atlas.model import checkpoint
from bench import why


def test_it_reports_each_work_with_its_bound(tiny_checkpoint, capsys, tmp_path):
    why.main(["--checkpoint", str(tiny_checkpoint), "--runs", "1", "--json", str(tmp_path / "why.json")])
    first, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert json.loads((tmp_path / "why.json").read_text()) == [first, *rows]
    assert first["tokens"] == [16, 16] and first["gigaflops_per_second"] > 0
    assert len(rows) == 9 and all(row["seconds"] > 0 and row["times_the_bound"] > 0 for row in rows)
    assert all(row["bar_seconds"] in why.BARS["shipped"].values() for row in rows)
    assert {work.bar for work in why.works(*why.inputs(checkpoint.load(tiny_checkpoint).model), None)} == set(
        why.BARS["shipped"]
    )
    assert any(row["what"].startswith("32 heads") for row in rows)


def test_operations_are_those_that_torch_counts(tiny_model):
    """Without attention's own products; nobody asks for logits."""
    case, _ = why.inputs(tiny_model)
    with FlopCounterMode(display=False) as counted:
        tiny_model(case.source_ids, case.decoder_ids)
    config = tiny_model.config
    products = 2 * 2 * 16 * 16 * config.d_model * (config.num_encoder_layers + 2 * config.num_decoder_layers)
    assert why.operations(config)[0] == pytest.approx(counted.get_total_flops() - products, rel=1e-6)


@pytest.mark.parametrize("arguments", [["--runs", "0"], ["--size", "gpt"]])
def test_strange_settings_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        why.main(arguments)
    capsys.readouterr()

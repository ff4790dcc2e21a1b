"""python -m bench.cuda on the CPU: every part gives figures, and a failing part does not stop the others."""

from __future__ import annotations

import json
import sys
import time

import pytest
import torch

from attention_atlas.model.training.batches import Batch
from attention_atlas.model.translator import Translator
from bench import cuda
from tests import run
from tests.conftest import SENTENCES


@pytest.fixture()
def small(monkeypatch):
    for name, value in {
        "SENTENCES": 6,
        "LENGTHS": (4, 6),
        "BATCHES": (1, 2),
        "UPDATES": (128, 256),
        "REPEATED": 1,
    }.items():
        monkeypatch.setattr(cuda, name, value)
    monkeypatch.setattr(cuda, "source_texts", lambda _, count: list(SENTENCES[:count]))  # the tiny model's limit is low


def test_every_part_is_reported_even_where_one_fails(small, monkeypatch, tiny_checkpoint, tmp_path):
    def broken(bench):
        raise RuntimeError("no kernel")

    monkeypatch.setitem(cuda.PARTS, "half_precision", broken)
    cuda.main(["--checkpoint", str(tiny_checkpoint), "--device", "cpu", "--json", str(tmp_path / "out.json")])
    report = json.loads((tmp_path / "out.json").read_text())
    assert set(report) == {"device", "checkpoint", "digest", *cuda.PARTS}
    assert report["same_as_cpu"]["passed"] and report["same_as_cpu"]["largest_map_difference"] == 0
    assert report["half_precision"]["failed"] == "RuntimeError: no kernel" and "failed" in report["memory"]
    assert [row["tokens_an_update"] for row in report["training"]["bfloat16"]] == [128, 256]
    assert all(row["tokens_a_second"] > 0 and row["mfu"] is None for row in report["training"]["bfloat16"])
    rows = report["translation"]["with_all_maps"]
    assert [(row["tokens"], row["batch"]) for row in rows] == [(4, 1), (4, 2), (6, 1), (6, 2)]
    assert all(row[f"{name}_ms"] > 0 for row in rows for name in ("gpu", "left_on_gpu", "cpu"))


def test_no_part_begins_after_the_end(tiny_checkpoint):
    translator = Translator.load(tiny_checkpoint, "cpu")
    bench = cuda.Bench(translator, translator, time.monotonic() - 1)
    assert cuda.run_part(cuda.same_as_cpu, bench)["failed"] == "no time was left"


def test_operations_count_each_weight_six_times_a_token(tiny_model):
    ids = torch.ones((2, 3), dtype=torch.long)
    weights = [
        sum(p.numel() for p in stack.parameters() if p.ndim > 1) for stack in (tiny_model.encoder, tiny_model.decoder)
    ]
    batch = Batch(ids, ids[:, :2], ids[:, :2], 4)
    expected = 6 * (weights[0] * 6 + weights[1] * 4 + tiny_model.embedding.weight.numel() * 4)
    assert cuda.update_operations(tiny_model, batch, pad_id=0) == expected


@pytest.mark.long
def test_it_needs_nothing_but_torch_and_sentencepiece():
    """Importing it brings no package that only development has."""
    code = (
        "import sys; import bench.cuda; "
        "print([m for m in ('sacrebleu', 'scipy', 'transformers', 'gradio', 'faker') if m in sys.modules])"
    )
    assert run([sys.executable, "-c", code]).strip() == "[]"

"""python -m bench.speed: decoding and the report, on the tiny model."""

from __future__ import annotations

import json

import pytest
import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.decode.trace_builder import Request
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from bench import speed
from tests.conftest import build_tiny_model

SMALL = "--device cpu --lengths 4 8 --repeats 1 --sentences 8 --updates 1 --starts 1"
SOURCE = (4, 20, 31, 45, 2)


def test_naive_and_cached_decoding_do_the_same_work(tiny_translator):
    (cached,) = speed.decode_cached(tiny_translator, [list(SOURCE)], 20)
    assert cached == speed.decode_naive(tiny_translator, SOURCE, 20) and len(cached) == 20
    request = Request("x", SOURCE, "de-en", NO_INTERVENTIONS)
    (trace,) = speed.translate_with_maps(tiny_translator, [request], 20)
    assert trace.target_ids == tuple(cached) and trace.cross.weights.shape == (3, 4, 20, 5)


@pytest.mark.long
def test_the_report_is_complete(tokenizer, tmp_path, capsys):
    threads, folder = torch.get_num_threads(), tmp_path / "tiny"
    model = build_tiny_model(tokenizer, max_length=256)  # with room for captions in its tiny vocabulary
    checkpoint.save(folder, model, tokenizer, ("de-en",), half=False)
    speed.main(["--checkpoint", str(folder), *SMALL.split(), "--json", str(tmp_path / "report.json")])
    report = json.loads((tmp_path / "report.json").read_text())
    assert all(m.keys() == {"name", "value", "unit"} for m in report)
    values = {m["name"]: m["value"] for m in report}
    works = ("translate_maps", "decode_cached", "decode_naive", "maps_overhead", "cached_speedup")
    assert values.keys() == {f"{work}_{n}" for work in works for n in (4, 8)} | {
        "batch_translations_per_second",
        "train_tokens_per_second",
        "peak_memory",
        "startup",
        *(f"startup_{part}" for part in ("python", "import_torch", "import_rest", "load", "translate")),
    }
    assert values["startup"] == pytest.approx(sum(v for name, v in values.items() if name.startswith("startup_")))
    assert all(v > 0 for name, v in values.items() if not name.startswith("maps_overhead"))
    assert values["cached_speedup_8"] == pytest.approx(values["decode_naive_8"] / values["decode_cached_8"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in values)
    assert torch.get_num_threads() == threads

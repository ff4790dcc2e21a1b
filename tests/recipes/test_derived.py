"""Derived files carry the digest of their weights, and outdated ones are rebuilt."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from attention_atlas.model import checkpoint
from recipes import derived


@pytest.fixture()
def folder(tiny_checkpoint, tmp_path):
    shutil.copytree(tiny_checkpoint, tmp_path / "all" / "tiny")
    return tmp_path / "all" / "tiny"


def digest(folder) -> str:
    return checkpoint.load(folder).digest


@pytest.mark.long
def test_missing_files_and_files_of_other_weights_are_listed_and_rebuilt(folder, capsys, monkeypatch):
    def build_survey(where, data):
        assert (where / "means.safetensors").is_file()  # it is built first
        survey = {"format": 1, "checkpoint": "tiny", "digest": digest(where), "directions": {}}
        (where / "heads.json").write_text(json.dumps(survey))

    def build_faithfulness(where, data):
        (where / "faithfulness.json").write_text(json.dumps({"digest": digest(where)}))

    def build_lenses(where, data):
        save_file({}, where / "lenses.safetensors", {"digest": digest(where)})

    monkeypatch.setitem(derived.BUILDERS, "lenses.safetensors", build_lenses)
    monkeypatch.setitem(derived.BUILDERS, "heads.json", build_survey)
    monkeypatch.setitem(derived.BUILDERS, "faithfulness.json", build_faithfulness)
    (folder / "metrics.json").write_text(json.dumps({"digest": digest(folder), "scores": []}))
    np.savez(folder / "history.npz", facts=np.array(json.dumps({"digest": digest(folder)})))
    np.savez(folder / "table.npz", digest=np.array(digest(folder)))
    missing = ["means.safetensors", "lenses.safetensors", "heads.json", "faithfulness.json", "truth.json"]
    assert derived.stale(folder) == missing
    derived.main(["--checkpoints", str(folder.parent), "--data", str(folder)])  # without links made by hand
    assert derived.stale(folder) == []
    np.savez(folder / "history.npz", facts=np.array(json.dumps({"digest": "0" * 16})))
    np.savez(folder / "table.npz", digest=np.array("1" * 16))
    assert derived.stale(folder) == ["history.npz", "table.npz"]
    with pytest.raises(SystemExit):
        derived.main(["--checkpoints", str(folder.parent), "--list"])
    assert "history.npz is of other weights" in capsys.readouterr().out


def test_outdated_files_are_rebuilt_once(folder, monkeypatch):
    def build(where, data):
        (where / "metrics.json").write_text(json.dumps({"digest": digest(where)}))
        built.append(where)

    built: list = []
    monkeypatch.setattr(derived, "BUILDERS", {"metrics.json": build})
    for _ in range(2):
        derived.main(["--checkpoints", str(folder.parent)])
    assert built == [folder]


def test_a_recurrent_network_needs_only_scores(recurrent_checkpoint):
    assert derived.stale(recurrent_checkpoint) == ["metrics.json"]

"""The reader of training histories, against scipy and against the recorder."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.training import learned
from attention_atlas.model.training.history import NAME, History, Probe
from tests.conftest import build_tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    """Three records: two networks, the second one twice."""
    run_folder = tmp_path_factory.mktemp("learned")
    probes = (Probe("de-en", "Zwei Kinder", "Two children"), Probe("de-en", "rotes Boot", "red boat"))
    history = History(run_folder / NAME, probes, tokenizer, before=100)
    for update, seed in ((0, 1), (5, 2), (9, 2)):
        history.record(build_tiny_model(tokenizer, seed=seed), update)
    lines = {"update": 50, "loss": 3.0}, {"update": 50, "dev": {}}, {"update": 100, "loss": 2.5}
    (run_folder / learned.LOG).write_text("\n".join(map(json.dumps, lines)))
    return run_folder


def test_recorded_maps_are_read_back_with_their_tokens(folder, tokenizer):
    history = learned.read(folder)
    assert history.updates.tolist() == [100, 105, 109] and history.kinds == TRANSFORMER_KINDS
    for kind in history.kinds:
        rows, columns = history.sides(kind, 1)
        maps = history.maps(kind, 1)
        assert maps.shape[3:] == (len(rows), len(columns)) and np.abs(maps.sum(-1) - 1).max() < len(columns) / 255
    rows, columns = history.sides(AttentionKind.CROSS, 0)
    assert rows[0] == "<s>" and columns[0] == "<2en>" and columns[-1] == "</s>"
    assert history.loss.shape == (3, 2) and history.translations.shape == (3, 2)


def test_a_head_has_settled_once_its_distance_stays_small(folder):
    history = learned.read(folder)
    distances = history.distances(AttentionKind.CROSS, 1, 2)
    expected = []
    for probe in range(2):
        maps = history.maps(AttentionKind.CROSS, probe)[:, 1, 2]
        expected += [jensenshannon(a, b, base=2) ** 2 for a, b in zip(maps[0], maps[-1])]
    assert distances[0] == pytest.approx(np.mean(expected), abs=1e-6) and distances[0] > learned.NEAR
    assert distances[1:].tolist() == [0, 0]
    assert history.settled(AttentionKind.CROSS, 1, 2) == 1


def test_the_curve_is_read_from_the_log_and_damaged_files_are_named(folder, tmp_path):
    updates, losses = learned.curve(folder)
    assert updates.tolist() == [50, 100] and losses.tolist() == [3.0, 2.5]
    (tmp_path / NAME).write_bytes(b"PK")
    (tmp_path / learned.LOG).write_text("{")
    for read in (learned.read, learned.curve):
        with pytest.raises(ValueError, match=str(tmp_path)):
            read(tmp_path)

"""Trace files: interventions read back as the objects that they were, and files of the former version still open."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace

import numpy as np
import pytest

from model.trace import interventions_file, storage
from model.trace.interventions import (
    Edge,
    HeadOutput,
    Interventions,
    Patch,
    Positions,
    Stream,
    SubLayerOutput,
    positions_off,
)
from model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side, SubLayerName
from model.trace.translation import TranslationTrace
from tests import ROOT
from tests.model.nets.test_interventions import EVERY_KIND

SAMPLES = ROOT / "tests" / "samples"  # written by the version before this one
PATCHES = Interventions(
    patches=frozenset(
        {
            Patch(HeadOutput(AttentionKind.CROSS, 1, 2)),
            Patch(Stream(Side.DECODER, 0), (0, 3)),
            Patch(Stream(Side.ENCODER, 1, SubLayerName.FEED_FORWARD), (2,)),
            Patch(SubLayerOutput(Side.DECODER, 2, SubLayerName.CROSS_ATTENTION), ()),
        }
    )
)


@pytest.mark.parametrize(
    "changes",
    [*EVERY_KIND.values(), PATCHES, Interventions(in_words="a head off")],
    ids=[*EVERY_KIND, "patches", "in words"],
)
def test_interventions_read_back_equal(hand_made_trace, changes):
    trace = replace(hand_made_trace, interventions=changes)
    for found in (storage.from_json(storage.to_json(trace)), storage.from_npz(storage.to_npz(trace))):
        assert found.interventions == changes and hash(found.interventions) == hash(changes)
        assert bool(found.interventions) == bool(changes)
    assert json.loads(storage.to_json(trace))["interventions"] == changes.describe()
    assert interventions_file.to_plain(Interventions()) == {}


def test_a_trace_read_back_can_be_run_again(tiny_translator):
    changes = Interventions(
        heads_off=frozenset({(AttentionKind.CROSS, 2, 1)}),
        cut_edges=frozenset({Edge(AttentionKind.DECODER_SELF, 1, 0)}),
    )
    trace = tiny_translator.translate("Der kleine Hund schläft.", interventions=changes)
    found = storage.from_npz(storage.to_npz(trace))
    again = tiny_translator.translate(found.source_text, found.direction, interventions=found.interventions)
    assert again.target_ids == trace.target_ids and (again.cross.weights == trace.cross.weights).all()


@pytest.mark.parametrize("name", ["trace-v1.json", "trace-v1.npz", "trace-v1-interventions.npz"])
def test_files_of_version_1_open_and_their_interventions_stay_prose(name):
    data = (SAMPLES / name).read_bytes()
    trace = storage.from_json(data.decode()) if name.endswith("json") else storage.from_npz(data)
    assert trace.translation.startswith("Where is") and trace.kinds == TRANSFORMER_KINDS
    words = trace.interventions.in_words
    assert trace.interventions == Interventions(in_words=words) and trace.interventions.describe() == words
    if name == "trace-v1.npz":
        assert not trace.interventions
    else:
        assert words == "cross layer 2 head 3 off; 1 edges cut" and trace.interventions
    assert storage.from_json(storage.to_json(trace)).interventions == trace.interventions


def test_what_is_known_in_words_only_is_not_run(tiny_translator):
    with pytest.raises(ValueError, match="known in words only and cannot be run again: a head off"):
        tiny_translator.translate("Der Hund", interventions=Interventions(in_words="a head off"))


@pytest.mark.parametrize(
    "written",
    [
        [],
        {"heads": []},
        {"heads_off": [["cross", 1]]},
        {"heads_off": [["sideways", 1, 2]]},
        {"heads_off": [["cross", 1.5, 2]]},
        {"cut_edges": [{"kind": "cross", "query": 0, "key": 1, "colour": 2}]},
        {"cut_edges": ["cross"]},
        {"source_positions": {"enabled": 1, "shift": 0}},
        {"in_words": 3},
        {"patches": 3},
        {"patches": [{"place": "nowhere", "layer": 1, "positions": None}]},
        {"zeroed_edges": [{"kind": "cross"}]},
    ],
)
def test_interventions_that_cannot_be_read_are_refused_in_words(hand_made_trace, written):
    found = json.loads(storage.to_json(hand_made_trace)) | {"interventions_data": written}
    with pytest.raises(ValueError, match=r"\w"):
        storage.from_json(json.dumps(found))


def test_a_trace_of_a_model_with_one_kind_of_attention_is_kept_as_it_is(hand_made_trace):
    """As a recurrent network with one alignment map would leave it behind."""
    one = replace(hand_made_trace, encoder_self=None, decoder_self=None, interventions=positions_off())
    assert one.kinds == (AttentionKind.CROSS,)
    with pytest.raises(ValueError, match="hand-made has no decoder_self attention"):
        one.maps(AttentionKind.DECODER_SELF)
    for found in (storage.from_json(storage.to_json(one)), storage.from_npz(storage.to_npz(one))):
        assert found.kinds == one.kinds and (found.cross.weights == one.cross.weights).all()
    damaged = json.loads(storage.to_json(one)) | {"kinds": ["cross", "encoder_self"]}
    with pytest.raises(ValueError, match="lacks encoder_self"):
        storage.from_json(json.dumps(damaged))


def test_positions_are_written_in_words_of_json():
    shifted = Interventions(target_positions=Positions(shift=2))
    assert interventions_file.to_plain(shifted) == {"target_positions": {"enabled": True, "shift": 2}}


def test_numbers_are_written_as_the_shortest_text_that_reads_back():
    random = np.random.default_rng(0)
    anything = random.integers(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    weights = np.concatenate([random.random(20_000, np.float32), 10 ** random.uniform(-14, 0, 20_000)])
    edges = [0.0, -0.0, 1.0, 0.1, 0.5, 0.099999994, 1e-12, 9.999999e-13, 1e-45, np.inf, -np.inf, np.nan]
    for numbers in (anything[~np.isnan(anything)], weights.astype(np.float32), np.array([edges], np.float32)):
        texts = json.loads(json.dumps(storage._numbers(numbers)))
        assert list(map(repr, np.ravel(texts))) == list(map(repr, numbers.astype("U").astype(np.float64).ravel()))
        np.testing.assert_array_equal(np.array(texts, np.float64).astype(np.float32), numbers)


@pytest.mark.parametrize(
    "changed",
    [{"source_ids": 5}, {"top_ids": 5}, {"cross": 5}, {"chosen_rank": [10**30]}, {"top_tokens": 7}, {"decoding": 5}],
)
def test_fields_of_another_form_are_refused_in_words(hand_made_trace, changed):
    found = json.loads(storage.to_json(hand_made_trace)) | changed
    with pytest.raises(ValueError, match=r"\w"):
        storage.from_json(json.dumps(found))


@pytest.mark.parametrize("name", ["trace.npz", "trace.json"])
def test_a_save_that_fails_keeps_the_file_that_was_there(hand_made_trace, tmp_path, monkeypatch, name):
    path = tmp_path / name
    hand_made_trace.save(path)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        hand_made_trace.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_what_is_no_trace_is_named_with_its_file(tmp_path):
    for name, data in (("a.npz", b"No trace."), ("b.npy", b"\x93NUMPY\x01\x00"), ("c.json", b"[" * 100_000)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name}: not "):
            TranslationTrace.load(tmp_path / name)

"""Trace files read back equal, old versions open, and damaged or hostile files are refused."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import pickle
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from attention_atlas.model.trace import interventions_file, storage
from attention_atlas.model.trace.interventions import (
    HeadOutput,
    Interventions,
    Patch,
    Stream,
    SubLayerOutput,
    positions_off,
)
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from tests import ROOT
from tests.conftest import Malicious
from tests.model.nets.test_interventions import EVERY_KIND

SAMPLES = ROOT / "tests" / "samples"  # written by the version before this one
PATCHES = Interventions(
    patches={
        Patch(HeadOutput("cross", 1, 2)),
        Patch(Stream("decoder", 0), (0, 3)),
        Patch(Stream("encoder", 1, "feed_forward"), (2,)),
        Patch(SubLayerOutput("decoder", 2, "cross_attention"), ()),
    }
)


@pytest.mark.parametrize(
    "changes",
    [*EVERY_KIND.values(), PATCHES, Interventions(in_words="a head off")],
    ids=[*EVERY_KIND, "patches", "in words"],
)
def test_interventions_read_back_equal(hand_made_trace, changes):
    trace = replace(hand_made_trace, interventions=changes)
    for copy in (storage.from_json(storage.to_json(trace)), storage.from_npz(storage.to_npz(trace))):
        assert copy.interventions == changes and hash(copy.interventions) == hash(changes)
        assert bool(copy.interventions) == bool(changes)
    assert json.loads(storage.to_json(trace))["interventions"] == changes.describe()
    assert interventions_file.to_plain(Interventions()) == {}


@pytest.mark.parametrize("name", ["trace-v1.json", "trace-v1.npz", "trace-v1-interventions.npz"])
def test_files_of_version_1_open_with_interventions_as_text(name):
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


def test_a_trace_with_one_kind_of_attention_reads_back(hand_made_trace):
    """As a recurrent network with one alignment map would leave it behind."""
    trace = replace(hand_made_trace, encoder_self=None, decoder_self=None, interventions=positions_off())
    assert trace.kinds == (AttentionKind.CROSS,)
    with pytest.raises(ValueError, match="hand-made has no decoder_self attention"):
        trace.maps(AttentionKind.DECODER_SELF)
    for copy in (storage.from_json(storage.to_json(trace)), storage.from_npz(storage.to_npz(trace))):
        assert copy.kinds == trace.kinds and (copy.cross.weights == trace.cross.weights).all()
    damaged = json.loads(storage.to_json(trace)) | {"kinds": ["cross", "encoder_self"]}
    with pytest.raises(ValueError, match="lacks encoder_self"):
        storage.from_json(json.dumps(damaged))


def test_every_float32_reads_back_from_its_text():
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = [0.0, -0.0, 1.0, 0.1, 0.099999994, 9.999999e-13, 1e-45, np.inf, -np.inf, np.nan]
    for numbers in (bits[~np.isnan(bits)], np.array([edges], np.float32)):
        texts = json.loads(json.dumps(storage._array_to_lists(numbers)))
        np.testing.assert_array_equal(np.array(texts, np.float64).astype(np.float32), numbers)
        assert (np.signbit(texts) == np.signbit(numbers)).all()


@pytest.mark.parametrize("changed", [{"top_ids": 5}, {"cross": 5}, {"chosen_rank": [10**30]}])
def test_arrays_of_the_wrong_type_are_refused_in_json(hand_made_trace, changed):
    fields = json.loads(storage.to_json(hand_made_trace)) | changed
    with pytest.raises(ValueError, match=r"\w"):
        storage.from_json(json.dumps(fields))


@pytest.mark.parametrize("name", ["trace.npz", "trace.json"])
def test_a_failed_save_keeps_the_existing_file(hand_made_trace, tmp_path, monkeypatch, name):
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


def test_load_names_files_that_are_no_traces(tmp_path):
    for name, data in (("a.npz", b"No trace."), ("b.npy", b"\x93NUMPY\x01\x00"), ("c.json", b"[" * 100_000)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name}: not "):
            TranslationTrace.load(tmp_path / name)


def entries_of(trace: TranslationTrace) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(storage.to_npz(trace))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(entries: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return written.getvalue()


def npy(array: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.lib.format.write_array(written, array, allow_pickle=True)
    return written.getvalue()


def npy_header(text: str) -> bytes:
    data = text.encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data


def test_pickles_are_refused_and_not_run(hand_made_trace, tmp_path):
    """In each entry that a trace has, in one that it has not, and in place of the whole file."""
    entries, code = entries_of(hand_made_trace), np.array([Malicious(tmp_path / "ran")], object)
    files = [archive_of(entries | {name: npy(code)}) for name in entries]
    assert len(files) > 5
    for data in (*files, pickle.dumps(code), b"\x93NUMPY" + pickle.dumps(code)):
        with pytest.raises(ValueError, match=r"\w"):
            storage.from_npz(data)
    with contextlib.suppress(ValueError):
        storage.from_npz(archive_of(entries | {"unknown.npy": npy(code)}))
    assert not (tmp_path / "ran").exists()


def test_memory_is_bounded_by_the_size_of_the_file(hand_made_trace, monkeypatch):
    monkeypatch.setattr(storage, "MAX_BYTES", 1_000_000)
    entries, zeros = entries_of(hand_made_trace), npy(np.zeros(2_000_000, np.float32))
    bomb = archive_of(entries | {"evil.npy": zeros, "cross.extra.npy": zeros})
    assert len(bomb) < 100_000
    tracemalloc.start()
    storage.from_npz(bomb)  # entries that nobody needs are not read
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    for name in ("cross.weights", "cross.queries", "entropy"):
        tracemalloc.reset_peak()
        bomb = archive_of(entries | {f"{name}.npy": zeros})
        with pytest.raises(ValueError, match="would take"):
            storage.from_npz(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "entry",
    [
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6, }\n"),
        npy_header("((((((((\n"),
        npy_header("(" * 9000),
        npy_header("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
        npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (6,), }\n") + bytes(48),
        npy(np.array([{}] * 6)),
        npy(np.array(["a"] * 6)),
        npy(np.zeros(6, np.float64)),
        npy(np.full(6, np.inf, np.float32)),
        npy(np.full(6, np.nan, np.float32)),
        npy(np.full(6, -1, np.float32)),
        npy(np.zeros((6, 1), np.float32)),
        b"",
        b"\x93NUMPY\x07\x00",
    ],
)
def test_invalid_arrays_are_refused(hand_made_trace, entry):
    with pytest.raises(ValueError, match=r"\w"):
        storage.from_npz(archive_of(entries_of(hand_made_trace) | {"entropy.npy": entry}))


def test_unsupported_archives_are_refused(hand_made_trace):
    entries = entries_of(hand_made_trace)
    encrypted = bytearray(archive_of(entries))
    for start in (b"PK\x03\x04\x14\x00", b"PK\x01\x02\x14\x03\x14\x00"):
        encrypted[encrypted.index(start) + len(start)] |= 1
    for data in (bytes(encrypted), archive_of(entries, zipfile.ZIP_LZMA), archive_of({})):
        with pytest.raises(ValueError, match="not a trace"):
            storage.from_npz(data)


HOSTILE = {
    "source_text": [5, None, "\ud800"],
    "translation": [["a"]],
    "device": [5],
    "checkpoint": [{"a": 1}, "\udfff"],
    "digest": [None],
    "direction": [7],
    "source_ids": [5, ["<b>"] * 8, [-1] * 8, [1.5] * 8, [True] * 8, [10**30] * 8, "12345678"],
    "source_tokens": [[1] * 8, "abcdefgh"],
    "top_tokens": [7, ["▁candidate"] * 6, [[]] * 6, [["a"] * 9] * 6],
    "finished": [1, "yes"],
    "seconds": [float("nan"), float("inf"), -1, "1", True, 10**400],
    "attention_only": [1, "x"],
    "decoding": [5, {"width": 10**9}, {"given": float("nan")}],
    "token_facts": [{"source_tokens": {"kinds": "t" * 8, "words": ["<b>"] * 8}}],
    "interventions_data": [
        [],
        {"heads": []},
        {"heads_off": [["cross", 1]]},
        {"heads_off": [["sideways", 1, 2]]},
        {"heads_off": [["cross", 1.5, 2]]},
        {"cut_edges": [{"kind": "cross", "query": 0, "key": 1, "colour": 2}]},
        {"cut_edges": ["cross"]},
        {"source_positions": {"enabled": 1, "shift": 0}},
        {"in_words": 3},
        {"in_words": "\ud800"},
        {"patches": 3},
        {"patches": [{"place": "nowhere", "layer": 1, "positions": None}]},
        {"zeroed_edges": [{"kind": "cross"}]},
    ],
    "version": ["2", [2], {}],
}


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("name", HOSTILE)
def test_each_field_is_checked(hand_made_trace, name):
    entries, text = entries_of(hand_made_trace), storage.to_json(hand_made_trace)
    fields = json.loads(str(np.load(io.BytesIO(entries["fields.npy"]))))
    for value in [*HOSTILE[name], nested(400), nested(900)]:
        written = npy(np.array(json.dumps(fields | {name: value})))
        with pytest.raises(ValueError, match=r"\w"):
            storage.from_npz(archive_of(entries | {"fields.npy": written}))
        with pytest.raises(ValueError, match=r"\w"):
            storage.from_json(json.dumps(json.loads(text) | {name: value}))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[]", '{"schema": []}'])
def test_deeply_nested_or_foreign_fields_are_refused(hand_made_trace, text):
    with pytest.raises(ValueError, match="not a trace"):
        storage.from_npz(archive_of(entries_of(hand_made_trace) | {"fields.npy": npy(np.array(text))}))


@pytest.mark.parametrize(
    "how",
    [5, {"cross": 5}, {"sideways": {}}, {"cross": {"causal": 1}}, {"cross": {"cut": [[[None, 1, 0]]]}}, nested(400)],
)
def test_parameters_of_computed_maps_are_checked(hand_made_trace, how):
    queries, keys = (npy(np.zeros((1, 4, rows, 2), np.float32)) for rows in (6, 8))
    entries = entries_of(hand_made_trace) | {"cross.queries.npy": queries, "cross.keys.npy": keys}
    fields = json.loads(str(np.load(io.BytesIO(entries["fields.npy"])))) | {"version": 3}
    good = npy(np.array(json.dumps(fields | {"computed": {"cross": {}}})))
    assert storage.from_npz(archive_of(entries | {"fields.npy": good})).cross.is_computed
    wrong = npy(np.array(json.dumps(fields | {"computed": how})))
    with pytest.raises(ValueError, match=r"\w"):
        storage.from_npz(archive_of(entries | {"fields.npy": wrong}))

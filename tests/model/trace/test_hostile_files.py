"""Pickles in trace files are never run."""

from __future__ import annotations

import contextlib
import io
import pickle

import numpy as np
import pytest

from attention_atlas.model.trace import storage
from tests.conftest import Malicious


def test_pickles_are_refused_and_not_run(hand_made_trace, tmp_path):
    """In each entry that a trace has, in one that it has not, and in place of the whole file."""
    with np.load(io.BytesIO(storage.to_npz(hand_made_trace))) as archive:
        entries = dict(archive)
    code = np.array([Malicious(tmp_path / "ran")], object)
    assert len(entries) > 5
    for name in entries:
        file = io.BytesIO()
        np.savez(file, **{**entries, name: code})
        with pytest.raises(ValueError, match=r"\w"):
            storage.from_npz(file.getvalue())
    file = io.BytesIO()
    np.savez(file, **entries, unknown=code)
    with contextlib.suppress(ValueError):
        storage.from_npz(file.getvalue())
    for data in (pickle.dumps(code), b"\x93NUMPY" + pickle.dumps(code)):
        with pytest.raises(ValueError, match=r"\w"):
            storage.from_npz(data)
    assert not (tmp_path / "ran").exists()

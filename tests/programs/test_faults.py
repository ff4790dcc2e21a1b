"""If a write fails while a checkpoint is saved, the earlier checkpoint is intact.

Other faults are tested in train/test_state.py (a killed trainer), test_batching.py (out of memory), test_api.py (errors
in a request) and test_checkpoint.py (damaged files).
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from attention_atlas.model import checkpoint
from attention_atlas.model.translator import Translator
from tests import ROOT
from tests.conftest import SENTENCES

# RLIMIT_FSIZE makes a write fail in its middle, as on a full disk.
SAVE = """
import resource, signal, sys
from attention_atlas.model import checkpoint
loaded = checkpoint.load(sys.argv[1])
for parameter in loaded.model.parameters():
    parameter.data.zero_()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
checkpoint.save(sys.argv[1], loaded.model, loaded.tokenizer, loaded.directions, half=False)
"""


@pytest.mark.parametrize("max_bytes", [0, pytest.param(60_000, marks=pytest.mark.long)])
def test_a_failed_write_leaves_the_earlier_checkpoint_intact(tmp_path, tiny_model, tokenizer, max_bytes):
    folder = tmp_path / "saved"
    checkpoint.save(folder, tiny_model, tokenizer, ("de-en",), half=False)
    assert (folder / checkpoint.WEIGHTS).stat().st_size > 60_000
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    expected = Translator.load(folder, "cpu").translate(SENTENCES[0]).target_ids
    done = subprocess.run(
        [sys.executable, "-c", SAVE, str(folder), str(max_bytes)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "File too large" in done.stderr, done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert Translator.load(folder, "cpu").translate(SENTENCES[0]).target_ids == expected

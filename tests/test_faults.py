"""A disk that is full while a checkpoint is saved loses no earlier one.

Other faults: test_training.py kills the trainer, test_batching.py runs out of memory, test_api.py fails inside a
request, test_checkpoint.py damages files.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from model import checkpoint
from model.translator import Translator
from tests.conftest import SENTENCES

ROOT = Path(__file__).resolve().parent.parent

# The kernel lets no file of this process grow beyond the limit: a write fails in its middle, as on a full disk.
SAVE = """
import resource, signal, sys
from model import checkpoint
loaded = checkpoint.load(sys.argv[1])
for parameter in loaded.model.parameters():
    parameter.data.zero_()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
checkpoint.save(sys.argv[1], loaded.model, loaded.tokenizer, loaded.directions, half=False)
"""


@pytest.mark.parametrize("room", [0, 60_000])
def test_a_full_disk_while_saving_loses_no_earlier_checkpoint(tmp_path, tiny_model, tokenizer, room):
    folder = tmp_path / "kept"
    checkpoint.save(folder, tiny_model, tokenizer, ("de-en",), half=False)
    assert (folder / checkpoint.WEIGHTS).stat().st_size > 60_000
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    expected = Translator.load(folder, "cpu").translate(SENTENCES[0]).target_ids
    done = subprocess.run([sys.executable, "-c", SAVE, str(folder), str(room)], cwd=ROOT, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1 and "File too large" in done.stderr, done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, "or a partial file is left behind"
    assert Translator.load(folder, "cpu").translate(SENTENCES[0]).target_ids == expected

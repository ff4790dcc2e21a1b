"""A disk that is full while a checkpoint is saved loses no earlier one.

Other faults: train/test_state.py kills the trainer, test_batching.py runs out of memory, test_api.py fails inside a
request, test_checkpoint.py damages files.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from attention_atlas.model import checkpoint
from attention_atlas.model.translator import Translator
from tests import ROOT
from tests.conftest import SENTENCES

# The kernel lets no file of this process grow beyond the limit: a write fails in its middle, as on a full disk.
SAVE = """
import resource, signal, sys
from attention_atlas.model import checkpoint
loaded = checkpoint.load(sys.argv[1])
for parameter in loaded.model.parameters():
    parameter.data.zero_()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
checkpoint.save(sys.argv[1], loaded.model, loaded.tokenizer, loaded.directions, half=False)
"""

# In a mount namespace of its own, which takes no rights: the checkpoint on a disk with too little room for another.
ON_A_SMALL_DISK = """
mount -t tmpfs -o size="$1" tmpfs "$2" && cp "$3"/* "$2" || exit 99
"$4" -c "$5" "$2"; code=$?
cp "$2"/* "$6"; exit $code
"""


@pytest.mark.parametrize("room", [0, pytest.param(60_000, marks=pytest.mark.long)])
def test_a_full_disk_while_saving_loses_no_earlier_checkpoint(tmp_path, tiny_model, tokenizer, room):
    folder = tmp_path / "kept"
    checkpoint.save(folder, tiny_model, tokenizer, ("de-en",), half=False)
    assert (folder / checkpoint.WEIGHTS).stat().st_size > 60_000
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    expected = Translator.load(folder, "cpu").translate(SENTENCES[0]).target_ids
    done = subprocess.run(
        [sys.executable, "-c", SAVE, str(folder), str(room)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "File too large" in done.stderr, done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, "or a partial file is left behind"
    assert Translator.load(folder, "cpu").translate(SENTENCES[0]).target_ids == expected


def test_a_small_disk_that_runs_full_loses_no_earlier_checkpoint(tmp_path, tiny_model, tokenizer):
    kept, disk, after = (tmp_path / name for name in ("kept", "disk", "after"))
    checkpoint.save(kept, tiny_model, tokenizer, ("de-en",), half=False)
    disk.mkdir()
    after.mkdir()
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    size = int(1.5 * sum(map(len, before.values())))
    done = subprocess.run(
        [
            "unshare",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            ON_A_SMALL_DISK,
            "sh",
            *map(str, (size, disk, kept, sys.executable, SAVE, after)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == 99 or done.stderr.startswith("unshare:"):
        pytest.skip(f"this machine lets no process mount a disk of its own: {done.stderr.strip()}")
    assert done.returncode == 1 and "No space left on device" in done.stderr, done.stderr
    assert {path.name: path.read_bytes() for path in after.iterdir()} == before, "or a partial file is left behind"

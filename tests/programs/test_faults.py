"""If the disk becomes full while a checkpoint is saved, the earlier checkpoint is intact.

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
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
checkpoint.save(sys.argv[1], loaded.model, loaded.tokenizer, loaded.directions, half=False)
"""

# Runs in a mount namespace of its own (no privileges needed), on a disk with too little space for a second checkpoint.
ON_A_SMALL_DISK = """
mount -t tmpfs -o size="$1" tmpfs "$2" && cp "$3"/* "$2" || exit 99
"$4" -c "$5" "$2"; code=$?
cp "$2"/* "$6"; exit $code
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


def test_a_full_disk_leaves_the_earlier_checkpoint_intact(tmp_path, tiny_model, tokenizer):
    original, disk, after = (tmp_path / name for name in ("original", "disk", "after"))
    checkpoint.save(original, tiny_model, tokenizer, ("de-en",), half=False)
    disk.mkdir()
    after.mkdir()
    before = {path.name: path.read_bytes() for path in original.iterdir()}
    size = int(1.5 * sum(map(len, before.values())))
    arguments = map(str, (size, disk, original, sys.executable, SAVE, after))
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    if done.returncode == 99 or done.stderr.startswith("unshare:"):
        pytest.skip(f"processes may not mount a disk here: {done.stderr.strip()}")
    assert done.returncode == 1 and "No space left on device" in done.stderr, done.stderr
    assert {path.name: path.read_bytes() for path in after.iterdir()} == before

"""attention-atlas survey: heads.json contains no sentence, and does not depend on the number of processes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys

import pytest

from attention_atlas.model import means, survey
from attention_atlas.model.checkpoint import read_survey
from tests import ROOT, run
from tests.conftest import SENTENCES
from tests.programs.train.runs import TORCHRUN


@pytest.fixture()
def folder(tiny_checkpoint, tmp_path):
    shutil.copytree(tiny_checkpoint, tmp_path / "tiny")
    return tmp_path / "tiny"


def files(tmp_path, times: int = 1) -> list[str]:
    for name, lines in (("s.de", SENTENCES[0:10:2]), ("s.en", SENTENCES[1:10:2])):
        (tmp_path / name).write_text("\n".join(lines * times) + "\n")
    return [str(tmp_path / "s.de"), str(tmp_path / "s.en")]


def test_a_survey_with_ablation_is_written_without_its_sentences(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "attention_atlas.model.analysis.survey.run.source_sentences", lambda direction: SENTENCES[0:6:2]
    )
    with pytest.raises(ValueError, match="means"):
        survey.main(["--checkpoint", str(folder), "--sentences", *files(tmp_path), "--ablate", "1"])
    means.main(["--checkpoint", str(folder), "--sentences", files(tmp_path)[0], "--directions", "de-en"])
    short = ["--directions", "de-en", "--limit", "7", "--ablate", "2"]
    options = ["--checkpoint", str(folder), "--sentences", *files(tmp_path, 2), *short]
    with pytest.raises(ValueError, match="--limit is for a trial"):
        survey.main(options)
    survey.main([*options, "--out", str(folder / "heads.json")])
    with pytest.raises(ValueError, match=r"heads\.json is there already: use --replace"):
        survey.main(options[:-6])
    text = (folder / "heads.json").read_text()
    assert not any(sentence in text for sentence in SENTENCES) and "Hund" not in text
    result = read_survey(folder / "heads.json", json.loads(text)["digest"]).directions["de-en"]
    assert (result.sentences, result.ablated, result.references) == (7, 2, True)
    for kind in result.kinds.values():
        assert kind.statistics["ablation"].sentences == 2 and kind.statistics["gradient"].sentences == 7
    assert not (folder / "heads.json.parts").exists()
    assert "7 sentences" in capsys.readouterr().out


def test_a_limit_applies_to_the_packages_own_sentences(folder, tmp_path):
    survey.main(["--checkpoint", str(folder), "--directions", "de-en", "--limit", "3", "--out", str(tmp_path / "try")])
    assert json.loads((tmp_path / "try").read_text())["directions"]["de-en"]["sentences"] == 3


def test_files_of_unequal_length_are_refused(folder, tmp_path):
    source, target = files(tmp_path)
    (tmp_path / "s.en").write_text("One line.\n")
    with pytest.raises(ValueError, match="differ in length: line 2"):
        survey.main(["--checkpoint", str(folder), "--sentences", source, target])


@pytest.mark.long
def test_a_killed_run_of_two_processes_continues_to_the_same_file(folder, tmp_path):
    """A run is killed after its first part, and two processes continue it."""
    options = ["--checkpoint", str(folder), "--directions", "de-en", "--sentences", *files(tmp_path, 90)]
    command = ["attention_atlas.model.survey", *options]
    survey.main(options)
    expected = (folder / "heads.json").read_bytes()
    (folder / "heads.json").unlink()
    with subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stderr=subprocess.PIPE) as running:
        while b"128/" not in running.stderr.readline(400) and running.poll() is None:
            pass
        running.send_signal(signal.SIGKILL)
    assert list((folder / "heads.json.parts").glob("*.npz")) and not (folder / "heads.json").exists()
    run([*TORCHRUN, *command], timeout=300)
    assert (folder / "heads.json").read_bytes() == expected

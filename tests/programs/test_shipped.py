"""An installed package finds its checkpoints by name, and programs do not write into their folders."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest

from attention_atlas.model import faithfulness, files, means, program, survey
from tests.programs.test_program import MEASUREMENTS

MEANS = "means.safetensors"


@pytest.fixture()
def package_checkpoints(tiny_checkpoint, tmp_path, monkeypatch) -> Path:
    """The checkpoints folder of an installed package, with "tiny"; the current folder is empty."""
    shipped = tmp_path / "package" / "checkpoints"
    shutil.copytree(tiny_checkpoint, shipped / "tiny")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(files, "SHIPPED_FOLDER", shipped)
    monkeypatch.setattr(program, "SHIPPED_FOLDER", shipped)
    monkeypatch.setattr(program, "IS_INSTALLED", True)
    return shipped


@pytest.mark.parametrize("name", ["tiny", "checkpoints/tiny"])
def test_a_folder_hides_a_shipped_checkpoint_only_if_it_is_one(name, package_checkpoints, tiny_checkpoint):
    assert files.checkpoint_folder(name) == package_checkpoints / "tiny"
    Path(name).mkdir(parents=True)
    (Path(name) / "heads.json").write_text("{}", encoding="utf-8")
    assert files.checkpoint_folder(name) == package_checkpoints / "tiny"
    shutil.copy(tiny_checkpoint / "config.json", name)
    assert files.checkpoint_folder(name) == Path(name)
    assert files.checkpoint_folder("other") == Path("other")


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_measurement_of_an_installed_checkpoint_needs_out(name, package_checkpoints):
    with pytest.raises(ValueError, match=r"tiny was installed with the package, .* use --out FILE"):
        importlib.import_module(name).main(["--checkpoint", "tiny"])
    with pytest.raises(ValueError, match="the folder nowhere is missing"):
        importlib.import_module(name).main(["--checkpoint", "tiny", "--out", "nowhere/file"])
    assert not list(Path.cwd().iterdir())


@pytest.mark.long
def test_stored_means_are_read_from_the_folder_of_the_checkpoint(package_checkpoints):
    means.main(["--checkpoint", "tiny", "--out", MEANS])
    shutil.move(MEANS, package_checkpoints / "tiny" / MEANS)
    parser = program.CommandLine("attention-atlas test", "About.")
    parser.add_checkpoint()
    assert parser.parse_args(["--checkpoint", "tiny"]).checkpoint == package_checkpoints / "tiny"
    Path("lines.txt").write_text("Der kleine Hund schläft.\nEine Frau liest ein Buch.\n", encoding="utf-8")
    options = ["--checkpoint", "tiny", "--sentences", "lines.txt", "--limit", "2"]
    survey.main([*options, "--directions", "de-en", "--ablate", "1", "--out", "heads.json"])
    faithfulness.main([*options, "--randomised", "0", "--out", "faithfulness.json"])
    assert "mean embedding of own sentences" in Path("faithfulness.json").read_text(encoding="utf-8")
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["faithfulness.json", "heads.json", "lines.txt"]

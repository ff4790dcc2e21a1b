"""recipes.train, which adds generated sentences to a corpus: runs resume, also with the package's program."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from attention_atlas.model import evaluate, train
from attention_atlas.model.training import options, start
from recipes import train as mixed
from recipes.train import MIXED
from tests.programs.train.runs import SMALL, losses

SHORT = ["--max-updates", "3", "--cooldown-updates", "0"]


@pytest.fixture()
def run(tmp_path):
    return tmp_path / "run"


def test_the_package_knows_the_settings_of_the_recipes():
    assert MIXED.added == start.RECIPE_SETTINGS
    args = options.parse(["--run-dir", "run", "--noise", "0.5"], "", MIXED)
    assert args.noise == 0.5
    with pytest.raises(SystemExit):
        options.parse(["--run-dir", "run", "--noise", "0.5"], "")


def test_a_run_with_generated_sentences_resumes_only_with_recipes_train(corpus, run, tmp_path, capsys):
    command = ["--run-dir", str(run), *corpus, *SMALL, *SHORT]
    mixed.main([*command, "--composed-pairs", "50", "--noise", "0.2"])
    assert " 110 pairs an epoch" in capsys.readouterr().err
    longer = ["--run-dir", str(run), *corpus, "--resume", "--max-updates", "5", "--device", "cpu"]
    with pytest.raises(ValueError, match=r"composed_pairs, noise\): python -m recipes\.train --run-dir .* --resume"):
        train.main(longer)
    mixed.main([*longer, "--noise", "0"])
    settings = json.loads((run / "settings.json").read_text())["train"]
    assert (settings["composed_pairs"], settings["noise"]) == (50, 0) and losses(run)[-1][0] == 5
    assert train.chosen_model(run)[2].directions == ("de-en",)  # evaluate --precision reads such a run
    assert evaluate.chosen_model is train.chosen_model


def test_a_resumed_run_draws_the_same_examples(corpus, tmp_path):
    options = [*corpus, *SMALL, "--cooldown-updates", "0", "--save-every", "9"]
    options += ["--substitution", "0.5", "--frame-pairs", "20", "--composed-pairs", "10", "--noise", "0.3"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    mixed.main(["--run", str(whole), *options, "--max-updates", "40"])
    mixed.main(["--run", str(broken), *options, "--max-updates", "20"])
    mixed.main(["--run", str(broken), "--resume", *corpus, "--max-updates", "40", "--device", "cpu"])
    final = [load_file(run / "state.safetensors") for run in (broken, whole)]
    assert all(torch.equal(final[0][name], tensor) for name, tensor in final[1].items())


@pytest.mark.parametrize("repeats", [[], [["sayings", 8]]], ids=["none", "sayings"])
def test_an_older_run_without_generated_sentences_resumes_with_the_package(corpus, run, repeats):
    """Its settings have the four fields of generated sentences with 0. Sayings need recipes.train."""
    train.main(["--run-dir", str(run), *corpus, *SMALL, *SHORT])
    path = run / "settings.json"
    settings = json.loads(path.read_text())
    assert not set(start.RECIPE_SETTINGS) & set(settings["train"])
    settings["train"] |= {**dict.fromkeys(start.RECIPE_SETTINGS, 0), "repeats": repeats}
    path.write_text(json.dumps(settings))
    longer = ["--run-dir", str(run), *corpus, "--resume", "--max-updates", "5", "--device", "cpu"]
    if repeats:
        with pytest.raises(ValueError, match=r"\(sayings\): python -m recipes\.train"):
            train.main(longer)
    else:
        train.main(longer)
        assert losses(run)[-1][0] == 5

"""Recipes of the shipped checkpoints, and the program that runs their stages."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from attention_atlas.model.training import options
from attention_atlas.model.training.history import is_due
from attention_atlas.viz.panels.train.learned import MAX_RECORDS
from recipes import checkpoints, collect, judge
from recipes.recipe import CHECKPOINT, Stage, all_recipes, commands, in_order, read_recipe
from recipes.train import MIXED
from tests import ROOT
from tests.conftest import SENTENCES


def test_every_shipped_checkpoint_has_a_recipe_with_valid_commands(tmp_path):
    assert set(checkpoints.SHIPPED) <= set(all_recipes())
    for name in all_recipes():
        for stage in in_order(name):
            for command in commands(stage, tmp_path, tmp_path):
                if command[0] == "recipes.train":
                    args = options.parse(command[1:], "", MIXED)
                    assert args.directions == stage.settings["directions"] and args.data == tmp_path
                    assert args.probes is None or (ROOT / args.probes).is_file()
                elif command[0] == "recipes.collect":
                    assert collect.parse(command[1 : command.index(">")]).captions == stage.settings["captions"]
                elif command[0] == "recipes.judge":
                    assert judge.parse(command[1 : command.index(">")]).corpora == stage.settings["corpora"]


def test_a_stage_comes_after_what_it_needs():
    for name in all_recipes():
        paths = [stage.path for stage in in_order(name)]
        assert len(set(paths)) == len(paths) and paths[-1] == read_recipe(name)[-1].path
        for stage in in_order(name):
            assert all(paths.index(needed) < paths.index(stage.path) for needed in stage.needs)


@pytest.mark.parametrize("name", ["de-en", "en-de-fr"])
def test_recipes_make_as_many_records_as_the_slider_can_show(name):
    """A stage continues the records of the stage that it starts from, if both record the same sentences."""
    stages = {stage.path: stage.settings for stage in in_order(name)}

    def records(path: str) -> int:
        settings = stages[path]
        start = settings.get("init")
        is_continuation = start is not None and stages[start].get("probes") == settings["probes"]
        last = settings["max_updates"]
        count = sum(is_due(update, last, is_continuation=is_continuation) for update in range(last + 1))
        return count + (records(start) if is_continuation else 0)

    assert 30 < records(f"{name}/own") <= MAX_RECORDS


def recipe(folder, name: str, *stages: dict) -> None:
    (folder / f"{name}.json").write_text(json.dumps({"name": name, "stages": stages}))


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"name": "a", "train": {"learning_rat": 1}}, "learning_rat"),
        ({"name": "a", "guess": {}}, "guess"),
        ({"name": "a", "train": {"init": "r/a"}}, "circle"),
        ({"name": "a", "train": {"init": "r/b"}}, "r/b"),
    ],
)
def test_invalid_recipes_are_named_in_the_error(tmp_path, stage, message):
    recipe(tmp_path, "r", stage)
    with pytest.raises(ValueError, match=message):
        in_order("r", tmp_path)
    with pytest.raises(ValueError, match="no recipe 'x'"):
        read_recipe("x", tmp_path)


@pytest.mark.long
def test_a_stopped_stage_resumes_and_a_finished_stage_is_not_run_again(tmp_path):
    for name in ("train", "dev"):
        for language in ("de", "en"):
            lines = SENTENCES[:10:2] if language == "de" else SENTENCES[1:10:2]
            (tmp_path / f"{name}.{language}").write_text("".join(f"{a} {name} {i}\n" for a in lines for i in "123"))
    files = {name: ["de-en", str(tmp_path / f"{name}.de"), str(tmp_path / f"{name}.en")] for name in ("train", "dev")}
    sizes = {"d_model": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_feedforward": 16}
    schedule = {"max_updates": 400, "cooldown_updates": 0, "save_every": 5, "evaluate_every": 400}
    data = {"pair": files["train"], "dev_pair": files["dev"], "vocabulary_size": 330, "tokens_per_batch": 100}
    stage = Stage("own", "train", "train", {"directions": ["de-en"], **data, **sizes, **schedule})
    args = checkpoints.parse(["own", "--data", str(tmp_path), "--work", str(tmp_path / "work"), "--device", "cpu"])
    folder = tmp_path / "work" / "own" / "train"
    command = commands(stage, args.data, args.work)[0]
    folder.mkdir(parents=True)
    is_finished = checkpoints.run(command, folder, args, seconds=0.01)
    assert not is_finished and not (folder / CHECKPOINT).exists()
    process = subprocess.Popen([sys.executable, "-m", *command, "--device", "cpu"], cwd=ROOT, stderr=subprocess.DEVNULL)
    while not (folder / "run" / "state.safetensors").exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert checkpoints.finish(stage, args, None) and (folder / CHECKPOINT / "model.safetensors").exists()
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines if "loss" in line] == list(range(50, 401, 50))
    (folder / "run" / "state.safetensors").unlink()
    assert checkpoints.finish(stage, args, None)  # runs nothing


def test_a_failing_program_is_named(tmp_path):
    stage = Stage("own", "train", "train", {"directions": ["de-en"]})
    args = checkpoints.parse(["own", "--data", str(tmp_path / "absent"), "--work", str(tmp_path / "work")])
    with pytest.raises(ValueError, match=r"recipes\.train ended with code 1"):
        checkpoints.finish(stage, args, None)

"""Several processes under torchrun train like one process, also after one of them was killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.run import get_args_parser

from attention_atlas.model import train
from recipes import checkpoints
from recipes.recipe import Stage
from tests import ROOT, run
from tests.programs.train.runs import SMALL, TORCHRUN, losses

ALONE = [sys.executable, "-m"]
TIMEOUT = 1200
SHARED = [
    "attention_atlas.model.train",
    "attention_atlas.model.survey",
    "attention_atlas.model.faithfulness",
    "attention_atlas.model.align",
]


def weights(run: Path) -> dict[str, torch.Tensor]:
    """Return all weights but the biases of keys, which add the same to all scores of a row.

    Their gradient is only rounding, which Adam turns into steps.
    """
    weights = {name: t for name, t in load_file(run / "state.safetensors").items() if name.startswith("weight.")}
    for name in (name for name in weights if name.endswith("attention.projection.bias")):
        queries, _, values = weights[name].chunk(3)
        weights[name] = torch.cat([queries, values])
    return weights


def assert_same(expected_run: Path, run: Path) -> None:
    expected, actual = weights(expected_run), weights(run)
    assert expected.keys() == actual.keys()
    assert max((expected[name] - actual[name]).abs().max() for name in expected) <= 1e-6
    np.testing.assert_allclose(losses(run), losses(expected_run), atol=1e-5)


@contextlib.contextmanager
def start(*arguments: object) -> Iterator[subprocess.Popen]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*map(str, arguments)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.parametrize("program", [SHARED[0], *(pytest.param(name, marks=pytest.mark.long) for name in SHARED[1:])])
def test_torchrun_does_not_consume_options_of_the_program(program):
    options = set(re.findall(r"--[a-z][a-z-]+", run([*ALONE, program, "--help"]))) - {"--run", "--help"}
    assert {"--device", "--out"} <= options
    for option in options:
        arguments = get_args_parser().parse_args(["--nproc_per_node=2", "-m", program, option, "x"])
        assert arguments.training_script_args == [option, "x"]


@pytest.fixture(scope="module")
def options(corpus) -> list[str]:
    """Options without dropout, which each process draws itself."""
    return [*corpus, *SMALL, "--dropout", "0", "--max-updates", "30", "--save-every", "5"]


@pytest.fixture(scope="module")
def whole(options, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    train.main(["--run-dir", str(folder), *options])
    return folder


@pytest.mark.long
def test_two_processes_train_as_one_with_the_whole_batch(options, whole, tmp_path):
    with start(*TORCHRUN, "attention_atlas.model.train", "--run-dir", tmp_path / "two", *options) as process:
        output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    assert_same(whole, tmp_path / "two")


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second"),
    [(TORCHRUN, ALONE), pytest.param(ALONE, TORCHRUN, marks=pytest.mark.endure)],
    ids=["two then one", "one then two"],
)
def test_a_killed_run_continues_with_another_number_of_processes(options, whole, tmp_path, first, second):
    folder, state = tmp_path / "run", tmp_path / "run" / "state.safetensors"
    command = ["attention_atlas.model.train", "--run-dir", folder, *options]
    with start(*first, *command) as process:
        while not state.exists() and process.poll() is None:
            time.sleep(0.01)
        os.kill((children(process.pid) or [process.pid])[-1], signal.SIGKILL)
        output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode != 0 and losses(folder) == []
    assert first is not TORCHRUN or "Signal 9 (SIGKILL) received" in output, output
    with start(*second, *command, "--resume") as process:
        output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    assert_same(whole, folder)


@pytest.mark.long
def test_two_processes_make_a_stage_with_one_new_tokenizer(corpus, tmp_path):
    settings = {"directions": ["de-en"], "pair": corpus[-3:], "vocabulary_size": 290, "max_updates": 4}
    sizes = {"d_model": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_feedforward": 16}
    stage = Stage("own", "train", "train", {**settings, **sizes, "cooldown_updates": 0})
    args = checkpoints.parse(["own", "--work", str(tmp_path), "--device", "cpu", "--processes", "2"])
    assert checkpoints.finish(stage, args, None)
    assert (tmp_path / "own" / "train" / "checkpoint" / "model.safetensors").is_file()

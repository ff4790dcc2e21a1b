"""A run that is killed and resumed has the same result as an uninterrupted run."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from attention_atlas.model import checkpoint, train
from attention_atlas.model.train import Trainer
from attention_atlas.model.training.batches import Examples
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.state import TrainingState
from tests import ROOT
from tests.conftest import SENTENCES, build_tiny_model
from tests.programs.train.runs import CPU, SMALL, command, losses


def test_the_average_follows_the_weights_and_swaps(tokenizer):
    model = build_tiny_model(tokenizer)
    state = TrainingState(model, torch.optim.Adam(model.parameters()), 0.9)
    first = model.embedding.weight.detach().clone()
    with torch.no_grad():
        model.embedding.weight.add_(1.0)
    state.update = 1000
    state.update_average()
    torch.testing.assert_close(state.average[0], first + 0.1)
    state.swap()
    torch.testing.assert_close(model.embedding.weight.detach(), first + 0.1)
    state.swap()
    torch.testing.assert_close(model.embedding.weight.detach(), first + 1.0)


@pytest.mark.parametrize("steps", [7, 9, 10, 11, 12])  # one of them is the last batch of an epoch
def test_a_state_restores_everything(tokenizer, tmp_path, steps):
    examples = Examples.encode([*zip(SENTENCES[::2], SENTENCES[1::2])], tokenizer, "en", max_length=64)
    config = TrainConfig(max_updates=40, cooldown_updates=0, tokens_per_batch=60)

    def trainer(seed: int, workers: int) -> Trainer:
        model = build_tiny_model(tokenizer, seed=seed, dropout=0.2)
        built = Trainer(config, model, tokenizer, examples, CPU, workers)
        built.model.train()
        return built

    first, second = trainer(1, workers=0), trainer(2, workers=1)  # another process draws its epochs
    for _ in range(steps):
        first.step()
    first.state.save(tmp_path / "state.safetensors")
    expected = [p.detach().clone() for p in _after(first, 7)]
    second.state.load(tmp_path / "state.safetensors")
    assert all(torch.equal(a, b) for a, b in zip(_after(second, 7), expected))
    assert torch.equal(second.state.loss_sum, first.state.loss_sum) and second.state.epoch == first.state.epoch > 0
    second.epochs.close()


def _after(trainer: Trainer, steps: int) -> list[torch.Tensor]:
    for _ in range(steps):
        trainer.step()
    return [*trainer.model.parameters(), *trainer.state.average]


@pytest.mark.parametrize("content", [b"", b"not safetensors", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_state_is_named(tokenizer, tmp_path, content):
    (tmp_path / "state.safetensors").write_bytes(content)
    model = build_tiny_model(tokenizer)
    state = TrainingState(model, torch.optim.Adam(model.parameters()), 0.9)
    with pytest.raises(ValueError, match=r"state\.safetensors"):
        state.load(tmp_path / "state.safetensors")


@pytest.mark.long
@pytest.mark.parametrize("num_kills", [1, pytest.param(20, marks=pytest.mark.endure)])
def test_a_killed_run_resumes_exactly(corpus, tmp_path, num_kills):
    """After SIGKILL while training and saving, the state is whole, and the losses are those of an uninterrupted run."""
    updates = 130 * num_kills if num_kills > 1 else 50
    options = [*corpus, *SMALL, "--max-updates", str(updates), "--save-every", "7"]
    # In a process of its own: threads of other tests in this process would change the last digits.
    subprocess.run(command("--run", tmp_path / "whole", *options), cwd=ROOT, check=True, capture_output=True)
    broken, kills, random = tmp_path / "broken", 0, np.random.default_rng()
    with open(tmp_path / "stderr", "w") as errors:
        for _ in range(20 * num_kills):
            resume = ["--resume"] if (broken / "state.safetensors").exists() else []
            process = subprocess.Popen(command("--run", broken, *options, *resume), cwd=ROOT, stderr=errors)
            before = _written(broken)
            while kills < num_kills and process.poll() is None and _written(broken) in (None, before):
                time.sleep(0.01)
            if kills == num_kills:
                process.wait(600)
            elif process.poll() is None:
                time.sleep(random.uniform(0, 0.3))
                process.send_signal(signal.SIGKILL)
                process.wait(600)
                kills += 1
            if process.returncode == 0:
                break
            safe_open(broken / "state.safetensors", framework="pt").keys()  # it is complete, whenever the kill came
    assert kills == num_kills, (tmp_path / "stderr").read_text()
    assert losses(broken) == losses(tmp_path / "whole") and losses(broken)[-1][0] == updates
    final = [load_file(run / "state.safetensors") for run in (broken, tmp_path / "whole")]
    assert all(torch.equal(final[0][name], tensor) for name, tensor in final[1].items())


def _written(run: Path) -> float | None:
    state = run / "state.safetensors"
    return state.stat().st_mtime_ns if state.exists() else None


def test_a_run_with_a_mixture_and_probes_resumes_exactly(corpus, tmp_path):
    """After --resume, epochs are drawn as before, and the history continues and ends with the digest."""
    probes = tmp_path / "probes.json"
    probes.write_text(json.dumps([{"direction": "de-en", "source": "Ein Boot", "reference": "A boat"}]))
    settings = shlex.split("--repeat train.de 1.5 --save-every 9 --updates-before 1000 --cooldown-updates 0")
    options = [*corpus, *SMALL, *settings, "--probes", str(probes)]
    whole, broken, out = (tmp_path / name for name in ("whole", "broken", "out"))
    train.main(["--run", str(whole), *options, "--max-updates", "60", "--out", str(out)])
    train.main(["--run", str(broken), *options, "--max-updates", "30"])
    train.main(["--run", str(broken), "--resume", *corpus, "--max-updates", "60"])
    final = [load_file(run / "state.safetensors") for run in (broken, whole)]
    assert all(torch.equal(final[0][name], tensor) for name, tensor in final[1].items())
    with np.load(out / "history.npz", allow_pickle=False) as file:
        facts, updates = json.loads(str(file["facts"])), file["updates"].tolist()
    assert updates == [1000 + update for update in (0, 1, 2, 4, 8, 16, 32)]
    assert facts["digest"] == checkpoint.load(out).digest and facts["before"] == 1000

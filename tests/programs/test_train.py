"""Training: the loss, overfitting, resuming after a kill, warm starts and two processes, on a generated corpus."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model import checkpoint, train
from model.config import ModelConfig, TrainConfig
from model.nets.masks import pad
from model.nets.transformer import Transformer
from model.train import SummedLoss, Trainer
from model.training.batches import Examples, make_batch
from model.training.state import TrainingState
from model.translator import Translator
from tests import ROOT
from tests.conftest import SENTENCES, build_tiny_model

CPU = torch.device("cpu")
SMALL = ["--d-model", "16", "--num-heads", "2", "--num-encoder-layers", "1", "--num-decoder-layers", "2",
         "--d-feedforward", "24", "--tokens-per-batch", "100", "--warmup-updates", "20",
         "--learning-rate", "0.005", "--cooldown-updates", "10", "--evaluate-every", "100000", "--device", "cpu"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, tokenizer) -> list[str]:
    """Options that name a tokenizer and a pair of aligned files: sixty made-up lists of animals."""
    folder = tmp_path_factory.mktemp("corpus")
    random = np.random.default_rng(4)
    german, english = ("Hund", "Vogel", "Fisch", "Pferd"), ("dog", "bird", "fish", "horse")
    rows = [[int(i) for i in random.integers(0, 4, random.integers(1, 6))] for _ in range(60)]
    (folder / "train.de").write_text("".join(" ".join(f"Ein {german[i]}" for i in row) + ".\n" for row in rows))
    (folder / "train.en").write_text("".join(" ".join(f"A {english[i]}" for i in row) + ".\n" for row in rows))
    (folder / "dev.de").write_text("Ein Hund Ein Wal.\nEin Wal.\n")
    (folder / "dev.en").write_text("A dog A whale.\nA whale.\n")
    (folder / "tokenizer.model").write_bytes(tokenizer.model)
    return ["--tokenizer", str(folder / "tokenizer.model"),
            "--pair", "de-en", str(folder / "train.de"), str(folder / "train.en")]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "model.train", *map(str, arguments)]


def losses(run: Path) -> list[tuple[int, float]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [(line["update"], line["loss"]) for line in lines if "loss" in line]


def loss_of(model: Transformer, source: list[list[int]], target: list[list[int]], *, padding: int = 0) -> torch.Tensor:
    def padded(rows: list[list[int]]) -> torch.Tensor:
        return F.pad(pad(rows, 0), (0, padding))

    return SummedLoss(model, 0.1)(
        padded(source), padded([[1, *t] for t in target]), padded([[*t, 2] for t in target]))


def test_the_loss_is_torchs_over_real_tokens(tokenizer):
    model = build_tiny_model(tokenizer)
    source, target = [[4, 20, 31, 2], [4, 9, 2]], [[30, 41, 52], [77]]
    logits = model(pad(source, 0), pad([[1, *t] for t in target], 0)).logits
    expected = F.cross_entropy(logits.flatten(0, 1), pad([[*t, 2] for t in target], 0).flatten(),
                               ignore_index=0, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss_of(model, source, target), expected, rtol=1e-5, atol=1e-4)


def test_padding_changes_neither_loss_nor_gradient(tokenizer):
    model = build_tiny_model(tokenizer)
    source, target = [[4, 20, 31, 45, 2], [4, 9, 2]], [[30, 41, 52], [77]]
    results = []
    for losses_of_batch in ([loss_of(model, [s], [t]) for s, t in zip(source, target)],
                            [loss_of(model, source, target)], [loss_of(model, source, target, padding=5)]):
        model.zero_grad()
        total = sum(losses_of_batch)
        total.backward()
        results.append((total.item(), {name: p.grad.clone() for name, p in model.named_parameters()}))
    alone, plain_loss = results[0][1], results[0][0]
    for loss, gradients in results[1:]:
        assert loss == pytest.approx(plain_loss, rel=1e-5)
        for name, gradient in gradients.items():
            torch.testing.assert_close(gradient, alone[name], atol=1e-4, rtol=1e-4, msg=name)


def test_one_batch_overfits(tokenizer):
    model = build_tiny_model(tokenizer, dropout=0.0)
    pairs = list(zip(SENTENCES[0:6:2], SENTENCES[1:6:2]))
    examples = Examples.encode(pairs, tokenizer, "en", max_length=64)
    config = TrainConfig(max_updates=150, warmup_updates=20, cooldown_updates=20, learning_rate=0.01,
                         tokens_per_batch=1000, label_smoothing=0.0, average_decay=0.0)
    trainer = Trainer(config, model, tokenizer, examples, CPU)
    trainer.model.train()
    for _ in range(config.max_updates):
        trainer.state.start_window()
        trainer.step()
    assert trainer.state.loss_sum.item() / trainer.state.tokens < 0.01
    translator = Translator(checkpoint.Checkpoint("", model.eval(), tokenizer, ("de-en",), {}, ""), CPU)
    assert translator.translate_batch([s for s, _ in pairs]) == [t for _, t in pairs]


def test_the_toy_task_reaches_zero_errors():
    """Two sentences a side over a vocabulary of words; every next word is right, and greedy decoding says them."""
    from model.decode.greedy import greedy

    german = ["der vogel singt im garten", "morgen fahren wir an das meer"]
    english = ["the bird sings in the garden", "tomorrow we drive to the sea"]
    words = ["<pad>", "<s>", "</s>", *sorted({w for s in german + english for w in s.split()})]
    number = {word: i for i, word in enumerate(words)}
    source = pad([[*map(number.get, s.split()), 2] for s in german], 0)
    target = [[number[w] for w in s.split()] for s in english]
    torch.manual_seed(0)
    model = Transformer(ModelConfig(len(words), d_model=32, num_heads=4, num_encoder_layers=1, num_decoder_layers=1,
                                    d_feedforward=64, dropout=0.0))
    optimizer, loss = torch.optim.Adam(model.parameters(), lr=0.003), SummedLoss(model, 0.0)
    inputs, outputs = pad([[1, *t] for t in target], 0), pad([[*t, 2] for t in target], 0)
    for _ in range(100):
        optimizer.zero_grad()
        loss(source, inputs, outputs).backward()
        optimizer.step()
    with torch.inference_mode():
        best = model.eval()(source, inputs).logits.argmax(-1)
        assert int(((best != outputs) & (outputs != 0)).sum()) == 0
        ids = greedy(model, model.encode(source), [12, 12], begin_id=1, end_id=2)
    assert [" ".join(words[i] for i in row[:-1]) for row in ids] == english


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

    def trainer(seed: int) -> Trainer:
        built = Trainer(config, build_tiny_model(tokenizer, seed=seed, dropout=0.2), tokenizer, examples, CPU)
        built.model.train()
        return built

    first, second = trainer(1), trainer(2)
    for _ in range(steps):
        first.step()
    first.state.save(tmp_path / "state.safetensors")
    expected = [p.detach().clone() for p in _after(first, 7)]
    second.state.load(tmp_path / "state.safetensors")
    assert all(torch.equal(a, b) for a, b in zip(_after(second, 7), expected))
    assert second.state.loss_sum == first.state.loss_sum and second.state.epoch == first.state.epoch > 0


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


@pytest.mark.parametrize("wanted", [1, pytest.param(20, marks=pytest.mark.long)])
def test_a_killed_run_continues_as_if_it_had_not_been(corpus, tmp_path, wanted):
    """SIGKILL while it trains and saves; the state is whole each time, and the losses are those of an unbroken run."""
    updates = 130 * wanted if wanted > 1 else 50
    options = [*corpus, *SMALL, "--max-updates", str(updates), "--save-every", "7"]
    train.main(["--run", str(tmp_path / "whole"), *options])
    broken, kills, random = tmp_path / "broken", 0, np.random.default_rng()
    with open(tmp_path / "stderr", "w") as errors:
        for _ in range(20 * wanted):
            resume = ["--resume"] if (broken / "state.safetensors").exists() else []
            process = subprocess.Popen(command("--run", broken, *options, *resume), cwd=ROOT, stderr=errors)
            before = _written(broken)
            while kills < wanted and process.poll() is None and _written(broken) in (None, before):
                time.sleep(0.01)
            if kills == wanted:
                process.wait(60 * wanted)
            elif process.poll() is None:
                time.sleep(random.uniform(0, 0.3))
                process.send_signal(signal.SIGKILL)
                process.wait(60)
                kills += 1
            if process.returncode == 0:
                break
            checkpoint.safe_open(broken / "state.safetensors", framework="pt").keys()  # whole, whenever the kill came
    assert kills == wanted, (tmp_path / "stderr").read_text()
    assert losses(broken) == losses(tmp_path / "whole") and losses(broken)[-1][0] == updates
    final = [checkpoint.load_file(run / "state.safetensors") for run in (broken, tmp_path / "whole")]
    assert all(torch.equal(final[0][name], tensor) for name, tensor in final[1].items())


def _written(run: Path) -> float | None:
    state = run / "state.safetensors"
    return state.stat().st_mtime_ns if state.exists() else None


def test_two_processes_train_as_one(corpus, tmp_path):
    options = [*corpus, *SMALL, "--dropout", "0", "--max-updates", "10"]
    train.LOG_EVERY, kept = 1, train.LOG_EVERY
    try:
        train.main(["--run", str(tmp_path / "one"), *options])
    finally:
        train.LOG_EVERY = kept
    arguments = ["--run", str(tmp_path / "two"), *options]
    (tmp_path / "two.py").write_text(f"from model import train\ntrain.LOG_EVERY = 1\ntrain.main({arguments!r})\n")
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(tmp_path / "two.py")],
        cwd=ROOT, check=True, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}, timeout=400)
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == len(two) == 10
    np.testing.assert_allclose(two, one, atol=1e-5)


def test_a_warm_start_begins_with_the_given_weights(corpus, tiny_checkpoint, tmp_path):
    """At a negligible learning rate the new run's checkpoint is the old one's weights."""
    train.main(["--run", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--init", str(tiny_checkpoint), *corpus,
                "--max-updates", "2", "--cooldown-updates", "0", "--learning-rate", "1e-12", "--device", "cpu"])
    new, old = checkpoint.load(tmp_path / "out"), checkpoint.load(tiny_checkpoint)
    assert new.tokenizer.pieces == old.tokenizer.pieces and new.directions == ("de-en",)
    for a, b in zip(new.model.parameters(), old.model.parameters()):
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)  # float16 on disk


def test_a_run_evaluates_keeps_the_better_weights_and_writes_a_checkpoint(corpus, tmp_path):
    dev = ["--dev-pair", "de-en", *(name.replace("train.", "dev.") for name in corpus[-2:])]
    run, out = tmp_path / "run", tmp_path / "out"
    options = ["--run", str(run), "--out", str(out), *corpus, *dev, *SMALL]
    train.main([*options, "--max-updates", "30", "--evaluate-every", "15", "--dev-sentences", "6"])
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    scores = [line["dev"] for line in lines if "dev" in line]
    assert [line["update"] for line in lines if "dev" in line] == [15, 30]
    assert {"loss", "mean_bleu", "de-en dev.de"} <= scores[0]["weights"].keys()
    state = checkpoint.load_file(run / "state.safetensors")
    kind = "average" if scores[-1]["averaged_is_better"] else "weight"
    weights = checkpoint.load_file(out / "model.safetensors")
    for name, tensor in weights.items():
        assert torch.equal(tensor, state[f"{kind}.{name}"].half())
    with pytest.raises(ValueError, match="already holds a run"):
        train.main(options)
    with pytest.raises(ValueError, match="no run to continue"):
        train.main(["--run", str(tmp_path / "absent"), "--resume", *corpus])


def test_a_run_with_other_names_frames_and_probes_goes_on_as_if_unbroken(corpus, tmp_path):
    """What is drawn anew each epoch is the same after --resume; the history goes on, and ends with the digest."""
    probes = tmp_path / "probes.json"
    probes.write_text(json.dumps([{"direction": "de-en", "source": "Ein Boot", "reference": "A boat"}]))
    options = [*corpus, *SMALL, "--substitution", "0.5", "--frame-pairs", "20", "--save-every", "9", "--probes",
               str(probes), "--updates-before", "1000", "--cooldown-updates", "0"]
    whole, broken, out = (tmp_path / name for name in ("whole", "broken", "out"))
    train.main(["--run", str(whole), *options, "--max-updates", "60", "--out", str(out)])
    train.main(["--run", str(broken), *options, "--max-updates", "30"])
    train.main(["--run", str(broken), "--resume", *corpus, "--max-updates", "60"])
    final = [checkpoint.load_file(run / "state.safetensors") for run in (broken, whole)]
    assert all(torch.equal(final[0][name], tensor) for name, tensor in final[1].items())
    with np.load(out / "history.npz", allow_pickle=False) as file:
        facts, updates = json.loads(str(file["facts"])), file["updates"].tolist()
    assert updates == [1000 + update for update in (0, 1, 2, 4, 8, 16, 32)]
    assert facts["digest"] == checkpoint.load(out).digest and facts["before"] == 1000


def test_a_dev_sentence_beyond_the_limit_does_not_end_the_run(tokenizer):
    from model.training.sources.readers import Corpus
    from model.training.validate import validate

    model = build_tiny_model(tokenizer)
    state = TrainingState(model, torch.optim.Adam(model.parameters()), 0.0)
    dev = [("de-en", Corpus("own", ("de", "en"), (("Ä" * 100, "too long"), (SENTENCES[0], SENTENCES[1]))))]
    assert "loss" in validate(model, state, tokenizer, dev, TrainConfig())["weights"]


def test_a_process_without_a_row_adds_nothing(tokenizer):
    examples, model = Examples([[4, 9, 2]], [[9, 10]]), build_tiny_model(tokenizer)
    batch = make_batch(examples, np.array([0]), tokenizer, rank=1, world_size=2)
    loss = SummedLoss(model, 0.1)(batch.source, batch.inputs, batch.outputs)
    loss.backward()
    assert loss.item() == 0 and batch.tokens == 3
    assert all((p.grad == 0).all() for p in model.parameters())  # and none is missing: processes must agree on that


def test_dev_sentences_that_are_also_trained_on_are_refused(corpus, tmp_path):
    """Pairs that share a side with the dev set are dropped; where none is left, the error says so."""
    with pytest.raises(ValueError, match=r"de-en.*held-out"):
        train.main(["--run", str(tmp_path / "run"), *corpus, "--dev-pair", *corpus[-3:], *SMALL])


def test_errors_of_the_program_are_words(tmp_path):
    done = subprocess.run(command("--run", tmp_path / "run", "--data", tmp_path / "absent"), cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("error: no corpus for the direction de-en")


@pytest.mark.parametrize("options", [[], ["--no-attention"]], ids=["attention", "one vector"])
def test_the_recurrent_family_learns_resumes_and_translates(corpus, tmp_path, options):
    run, out = tmp_path / "run", tmp_path / "out"
    family = ["--family", "gru", "--d-model", "32", "--tokens-per-batch", "100", "--warmup-updates", "20",
              "--learning-rate", "0.01", "--cooldown-updates", "10", "--evaluate-every", "100000", "--device", "cpu"]
    train.main(["--run", str(run), *corpus, *family, *options, "--max-updates", "60"])
    train.main(["--run", str(run), *corpus, "--resume", "--max-updates", "120", "--out", str(out)])
    found = losses(run)
    assert found[-1][1] < found[0][1] - 1
    translator = Translator.load(out, device="cpu")
    assert type(translator.model).__name__ == "Recurrent" and translator.config.attention is not bool(options)
    assert bool(translator.translate("Ein Hund.").kinds) is not bool(options)

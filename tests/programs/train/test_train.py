"""attention-atlas train on a generated corpus: warm starts, evaluation, refusals, the recurrent network."""

from __future__ import annotations

import json
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attention_atlas.model import checkpoint, train
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.state import TrainingState
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, build_tiny_model
from tests.model.families import theirs
from tests.programs.train.runs import SCHEDULE, SMALL, losses


def test_a_warm_start_begins_with_the_given_weights(corpus, tiny_checkpoint, tmp_path):
    """At a negligible learning rate the new checkpoint has the old weights."""
    folders = ["--run", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--init", str(tiny_checkpoint)]
    options = shlex.split("--max-updates 2 --cooldown-updates 0 --learning-rate 1e-12 --device cpu")
    train.main([*folders, *corpus, *options])
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
    state = load_file(run / "state.safetensors")
    kind = "average" if scores[-1]["averaged_is_better"] else "weight"
    weights = load_file(out / "model.safetensors")
    for name, tensor in weights.items():
        assert torch.equal(tensor, state[f"{kind}.{name}"].half())
    with pytest.raises(ValueError, match="already holds a run"):
        train.main([*options, "--replace"])
    with pytest.raises(ValueError, match="no run to continue"):
        train.main(["--run", str(tmp_path / "absent"), "--resume", *corpus])


def test_a_run_with_a_vocabulary_of_words_at_a_constant_rate(corpus, tmp_path):
    dev = ["--dev-pair", "de-en", *(name.replace("train.", "dev.") for name in corpus[-2:])]
    run, out = tmp_path / "run", tmp_path / "out"
    options = (
        "--tokenizer-algorithm words --vocabulary-size 40 --warmup-updates 0 --cooldown-updates 0 --max-updates 60"
    )
    command = ["--run", str(run), "--out", str(out), *corpus[2:], *dev, *SMALL, *shlex.split(options)]
    train.main(command)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    logged = [line for line in lines if "loss" in line]
    assert len(logged) == 2 and {line["learning_rate"] for line in logged} == {0.005}
    assert all(0 < line["unsmoothed"] < line["loss"] for line in logged), "smoothing adds to the loss"
    translator = Translator.load(out, "cpu")
    assert len(translator.tokenizer) <= 40 and translator.tokenizer.pieces[3] == "<unk>"
    trace = translator.translate("der quastenflosser", max_length=4)
    assert trace.source_tokens[0] == "<2en>" and "<unk>" in trace.source_tokens
    assert len(trace.target_ids) <= 4
    assert set(trace.translation.split()) <= {"<unk>", *translator.tokenizer.words}
    train.main([*command, "--resume", "--max-updates", "61"])


def test_a_dev_sentence_beyond_the_limit_does_not_end_the_run(tokenizer):
    from attention_atlas.model.train import validate
    from attention_atlas.model.training.sources.readers import Corpus

    model = build_tiny_model(tokenizer)
    state = TrainingState(model, torch.optim.Adam(model.parameters()), 0.0)
    dev = [("de-en", Corpus("own", ("de", "en"), (("Ä" * 100, "too long"), (SENTENCES[0], SENTENCES[1]))))]
    assert "loss" in validate(model, state, tokenizer, dev, TrainConfig())["weights"]


def test_dev_sentences_that_are_also_trained_on_are_refused(corpus, tmp_path):
    """Pairs that share a side with the dev set are dropped; if none is left, an error says so."""
    with pytest.raises(ValueError, match=r"de-en.*held-out"):
        train.main(["--run", str(tmp_path / "run"), *corpus, "--dev-pair", *corpus[-3:], *SMALL])


def test_a_short_run_over_a_small_corpus_adapts_settings_and_reports_them(corpus, tmp_path, capsys):
    sizes = [option for option in SMALL if option not in ("--cooldown-updates", "10")]
    pairs = corpus[2:]  # without the tokenizer
    train.main(["--run-dir", str(tmp_path / "run"), *pairs, *sizes, "--max-updates", "5"])
    output = capsys.readouterr().out
    assert "falls over the last 1 updates (--cooldown-updates" in output
    assert "pieces, as many as the corpus gives, in place of 8,000" in output


@pytest.fixture(scope="module")
def short_run(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("short") / "run"
    train.main(["--run-dir", str(folder), *corpus, *SMALL, "--max-updates", "2", "--cooldown-updates", "0"])
    return folder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--d-model", "128"], "--d-model asks for 128, but the run in .* has 16"),
        (["--learning-rate", "0.1"], "--learning-rate asks for 0.1"),
        (["--directions", "en-de"], r"--directions asks for \('en-de',\)"),
        (["--post-norm"], "--post-norm asks for False"),
        (["--no-attention"], "--no-attention: .* has no attention"),
        (["--family", "gru"], "--family gru: .* is of another"),
        (["--vocabulary-size", "500"], "--vocabulary-size asks for 500"),
    ],
)
def test_settings_that_a_resumed_run_cannot_change_are_refused(corpus, short_run, options, words):
    before = {path.name: path.read_bytes() for path in short_run.iterdir()}
    with pytest.raises(ValueError, match=words):
        train.main(["--run-dir", str(short_run), "--resume", *corpus, *options])
    assert {path.name: path.read_bytes() for path in short_run.iterdir()} == before


def test_a_run_resumes_with_its_first_command(corpus, short_run):
    train.main(
        ["--run-dir", str(short_run), *corpus, *SMALL, "--max-updates", "4", "--cooldown-updates", "0", "--resume"]
    )
    assert losses(short_run)[-1][0] == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--family", "gru", "--num-heads", "4"], "--num-heads"),
        (["--vocabulary-size", "9"], "--vocabulary-size"),
        (["--family", "gru", "--compile"], "--compile works"),
    ],
)
def test_invalid_options_of_a_new_run_are_refused(corpus, tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        train.main(["--run-dir", str(tmp_path / "run"), *corpus, *options])
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_is_overwritten_only_with_replace(corpus, tiny_checkpoint, tmp_path):
    with pytest.raises(ValueError, match=r"model\.safetensors is there already: use --replace"):
        train.main(["--run-dir", str(tmp_path / "run"), "--out", str(tiny_checkpoint), *corpus])
    with pytest.raises(ValueError, match=r"--d-model asks for 128, but the checkpoint"):
        train.main(["--run-dir", str(tmp_path / "run"), "--init", str(tiny_checkpoint), "--d-model", "128", *corpus])


def test_errors_of_training_are_messages(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train", "--run", str(tmp_path / "run"), "--data", str(tmp_path / "absent")])
    with pytest.raises(SystemExit, match=r"^error: no corpus for the direction de-en"):
        runpy.run_path(train.__file__, run_name="__main__")
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [pytest.param([], marks=pytest.mark.long), ["--no-attention"]], ids=["attention", "one vector"]
)
def test_the_recurrent_family_learns_resumes_and_translates(corpus, tmp_path, options):
    run, out = tmp_path / "run", tmp_path / "out"
    family = ["--family", "gru", "--d-model", "32", "--learning-rate", "0.01", *SCHEDULE]
    train.main(["--run", str(run), *corpus, *family, *options, "--max-updates", "60"])
    train.main(["--run", str(run), *corpus, "--resume", "--max-updates", "120", "--out", str(out)])
    logged = losses(run)
    assert logged[-1][1] < logged[0][1] - 1
    translator = Translator.load(out, device="cpu")
    assert type(translator.model).__name__ == "Recurrent" and translator.config.attention is not bool(options)
    assert bool(translator.translate("Ein Hund.").kinds) is not bool(options)


@pytest.mark.parametrize(
    ("make", "direction"),
    [(theirs.marian, "de-en"), (theirs.nllb, "deu_Latn-eng_Latn"), (theirs.mbart, "de_DE-en_XX")],
    ids=["marian", "nllb", "mbart"],
)
def test_a_model_of_another_family_is_fine_tuned_with_its_own_tokenizer(make, direction, corpus, tmp_path):
    """A folder of `transformers` is trained, its checkpoint translates, and the run can be resumed."""
    saved, run, out = tmp_path / "theirs", tmp_path / "run", tmp_path / "out"
    make(saved).save_pretrained(saved)
    if make is theirs.nllb:
        theirs.nllb_tokenizer_json(saved)
    pair = ["--pair", direction, *corpus[-2:]]
    options = ["--run", str(run), "--out", str(out), "--directions", direction, *pair]
    settings = "--learning-rate 0.01 --warmup-updates 5 --cooldown-updates 0 --max-updates 30 --tokens-per-batch 200"
    train.main([*options, "--init", str(saved), *shlex.split(settings), "--dropout", "0", "--device", "cpu"])
    old, new = checkpoint.load(saved), checkpoint.load(out)
    assert new.tokenizer.pieces == old.tokenizer.pieces and new.directions == (direction,)
    sides = [Path(name).read_text(encoding="utf-8").splitlines()[:20] for name in corpus[-2:]]
    scores = []
    for loaded in (old, new):
        translator = Translator(loaded, torch.device("cpu"))
        sources = [translator.encode(text[-20:], direction) for text in sides[0]]
        tail = [translator.tokenizer.end_id]
        targets = [[*translator.forced_prefix(direction), *translator.tokenizer.encode(t), *tail] for t in sides[1]]
        scores.append(sum(map(sum, translator.log_probabilities(sources, targets))))
    assert scores[1] > scores[0] + 100, scores
    train.main([*options, "--resume", "--max-updates", "31", "--device", "cpu"])
    assert checkpoint.load(out).tokenizer.pieces == old.tokenizer.pieces


def test_a_direction_without_a_symbol_is_refused(corpus, tmp_path):
    theirs.marian(tmp_path / "theirs", symbols=(">>fra<<",)).save_pretrained(tmp_path / "theirs")
    with pytest.raises(ValueError, match="no symbol for the language 'en'"):
        train.main(["--run", str(tmp_path / "run"), "--init", str(tmp_path / "theirs"), *corpus])
    assert not (tmp_path / "run").exists()

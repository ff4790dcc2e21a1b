"""attention-atlas evaluate: scores agree with sacrebleu, and are merged into metrics.json."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import sacrebleu
import torch

from attention_atlas.model import checkpoint, evaluate, train
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES
from tests.model.training.test_corpora import write_gz, write_tatoeba
from tests.programs.train.runs import SMALL


@pytest.fixture()
def folder(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_checkpoint, tmp_path / "tiny"))


@pytest.fixture()
def data(tmp_path: Path) -> Path:
    raw = tmp_path / "data/multi30k/data/task1/raw"
    for split, first in {"train": 0, "val": 2, "test_2016_flickr": 4}.items():
        write_gz(raw / f"{split}.de.gz", list(SENTENCES[first : first + 4 : 2]))
        write_gz(raw / f"{split}.en.gz", list(SENTENCES[first + 1 : first + 5 : 2]))
    write_tatoeba(tmp_path / "data/tatoeba/deu-eng.zip", [f"Number {i}.\tZahl {i}." for i in range(300)])
    return tmp_path / "data"


def run(folder: Path, *arguments: object) -> dict:
    evaluate.main(["--checkpoint", str(folder), "--device", "cpu", *map(str, arguments)])
    return json.loads((folder / "metrics.json").read_text())


def test_scores_of_a_pair_of_files_agree_with_sacrebleu(folder, tmp_path):
    (tmp_path / "x.de").write_text("\n".join(SENTENCES[0:8:2]) + "\n")
    (tmp_path / "x.en").write_text("\n".join(SENTENCES[1:8:2]) + "\n")
    (score,) = run(folder, "--pair", "de-en", tmp_path / "x.de", tmp_path / "x.en")["scores"]
    translations = Translator.load(folder, device="cpu").translate_batch(SENTENCES[0:8:2])
    references = [list(SENTENCES[1:8:2])]
    assert score["bleu"] == round(sacrebleu.corpus_bleu(translations, references).score, 2)
    assert score["chrf"] == round(sacrebleu.corpus_chrf(translations, references).score, 2)
    assert "tok:13a" in score["bleu_signature"] and "case:mixed" in score["bleu_signature"]
    assert "version:" in score["chrf_signature"] and score["sentences"] == 4
    assert (score["data"], score["split"], score["direction"], score["beam"]) == ("x.de", "file", "de-en", 1)


def test_perfect_translations_score_a_hundred(tiny_translator, monkeypatch):
    monkeypatch.setattr(tiny_translator, "translate_batch", lambda texts, direction, **options: list(SENTENCES[1::2]))
    plain, wu2021 = evaluate.scores(
        tiny_translator, [("x", reference) for reference in SENTENCES[1::2]], "de-en", protocols=["wu2021"]
    )
    assert plain["bleu"] == pytest.approx(100) and plain["chrf"] == pytest.approx(100)
    assert wu2021["bleu"] == pytest.approx(100)


def test_the_published_protocol_normalizes_as_multi30k_does():
    """Hyphens inside words are kept, quotes become escaped ASCII, and text becomes lower-case."""
    assert evaluate.moses_tokens(["Ein Boston-Terrier läuft über „saftig-grünes“ Gras – schnell!"], "de") == [
        "ein boston-terrier läuft über &quot; saftig-grünes &quot; gras - schnell !"
    ]
    assert evaluate.moses_tokens(["L'homme n’aime pas le café (noir)."], "fr") == [
        "l&apos; homme n&apos; aime pas le café ( noir ) ."
    ]


def test_the_published_protocol_ignores_case_and_typography():
    reference = ["Ein Mann sagt „Hallo“ und geht weg.", "Zwei Hunde, die im Schnee spielen."]
    typed = ['ein mann sagt "hallo" und geht weg .', "ZWEI HUNDE , DIE IM SCHNEE SPIELEN ."]
    assert evaluate.wu2021_bleu(typed, reference, "de")["bleu"] == pytest.approx(100)
    assert sacrebleu.corpus_bleu(typed, [reference]).score < 60
    worse = evaluate.wu2021_bleu(["ein mann sagt hallo .", typed[1]], reference, "de")
    assert 0 < worse["bleu"] < 90 and "tok:none" in worse["bleu_signature"] and "case:lc" in worse["bleu_signature"]


def test_the_published_protocol_is_scored_in_addition_to_plain_bleu(folder, tmp_path, data):
    """One run writes both scores, and a later run of either replaces only that one."""
    (tmp_path / "x.de").write_text("\n".join(SENTENCES[0:8:2]) + "\n")
    (tmp_path / "x.en").write_text("\n".join(SENTENCES[1:8:2]) + "\n")
    pair = ("--pair", "de-en", tmp_path / "x.de", tmp_path / "x.en")
    run(folder, *pair)
    with pytest.raises(ValueError, match=r"has this score already: data x\.de.*--replace"):
        run(folder, *pair, "--protocol", "wu2021")
    replaced = (*pair, "--replace")
    scores = run(folder, *replaced, "--protocol", "wu2021")["scores"]
    assert [score.get("protocol") for score in scores] == [None, "wu2021"]
    assert "tok:13a" in scores[0]["bleu_signature"] and "tok:none" in scores[1]["bleu_signature"]
    metrics = json.loads((folder / "metrics.json").read_text())
    for score in metrics["scores"]:
        score["bleu"] = -1.0
    checkpoint.write_json(folder / "metrics.json", metrics)
    plain, published = run(folder, *replaced)["scores"]
    assert plain["bleu"] >= 0 and published == metrics["scores"][1]


def test_corpora_splits_and_beams_are_scored_and_merged(folder, data):
    first = run(folder, "--data", data, "--directions", "de-en", "--splits", "dev")["scores"]
    assert [(s["data"], s["split"]) for s in first] == [("multi30k", "dev"), ("tatoeba", "dev")]
    metrics = run(folder, "--data", data, "--directions", "de-en", "--beam", 1, 2, "--replace")
    assert sorted((s["data"], s["split"], s["beam"]) for s in metrics["scores"]) == [
        (name, split, beam) for name in ("multi30k", "tatoeba") for split in ("dev", "test") for beam in (1, 2)
    ]
    assert metrics["parameters"] == sum(p.numel() for p in checkpoint.load(folder).model.parameters())


def test_a_limited_run_writes_nothing(folder, data):
    assert run(folder, "--data", data, "--directions", "de-en", "--limit", 1) == {"scores": []}
    assert run(folder, "--data", data, "--directions", "de-en", "--dry-run") == {"scores": []}


def test_a_limited_run_writes_only_to_out(folder, data, tmp_path):
    out = tmp_path / "trial.json"
    limited = ("--data", data, "--directions", "de-en", "--splits", "test", "--limit", 1, "--out", out)
    assert run(folder, *limited) == {"scores": []}
    trial = json.loads(out.read_text())
    assert {score["sentences"] for score in trial["scores"]} == {1}
    assert trial["digest"] == checkpoint.load(folder).digest
    with pytest.raises(ValueError, match=r"trial\.json is there already"):
        run(folder, *limited)
    run(folder, *limited, "--corpora", "tatoeba", "--replace")
    assert {score["data"] for score in json.loads(out.read_text())["scores"]} == {"tatoeba"}


def test_scores_of_other_weights_are_dropped_only_with_replace(folder, data):
    checkpoint.write_json(folder / "metrics.json", {"digest": "0" * 16, "scores": [{"bleu": 50.0}]})
    options = ("--data", data, "--directions", "de-en", "--splits", "test")
    with pytest.raises(ValueError, match="other weights"):
        run(folder, *options)
    assert 50.0 not in [score["bleu"] for score in run(folder, *options, "--replace")["scores"]]


def test_the_precision_report_counts_changed_outputs(folder, data, tokenizer, tmp_path, monkeypatch):
    """It compares a checkpoint with the run that it was made from, and refuses another run."""
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.model)
    options = ["--data", str(data), "--tokenizer", str(tmp_path / "tokenizer.model"), *SMALL, "--max-updates", "1"]
    options += ["--cooldown-updates", "0", "--dev-sentences", "1"]
    out = tmp_path / "out"
    train.main(["--run", str(tmp_path / "run"), "--out", str(out), *options])
    model, tokens, config = train.chosen_model(tmp_path / "run")
    checkpoint.save(out, model, tokens, config.directions, half=False)
    report = run(out, "--data", data, "--precision", tmp_path / "run")["precision"]
    assert report["changed_by_float16_on_disk"] == 0 and report["sentences"] > 2 and report["device"] == "cpu"
    monkeypatch.setattr(evaluate, "_translate_all", lambda translator, texts: [[id(translator)]] * 2 + [[7]])
    report = run(out, "--data", data, "--replace", "--precision", tmp_path / "run")["precision"]
    assert {n for name, n in report.items() if name.startswith("changed")} == {2}
    with torch.no_grad():
        model.embedding.weight.add_(0.1)
    checkpoint.save(out, model, tokens, config.directions)
    with pytest.raises(ValueError, match="moved on since out was written"):
        run(out, "--data", data, "--replace", "--precision", tmp_path / "run")
    with pytest.raises(ValueError, match="is not the run"):
        run(folder, "--data", data, "--directions", "de-en", "--precision", tmp_path / "run")


def test_invalid_options_are_named(folder, tmp_path):
    with pytest.raises(ValueError, match="no corpus for the direction de-en"):
        run(folder, "--data", tmp_path / "absent", "--directions", "de-en")
    with pytest.raises(ValueError, match="Unknown direction"):
        run(folder, "--directions", "en-de")
    (tmp_path / "empty").write_text("")
    with pytest.raises(ValueError, match="nothing to score"):
        run(folder, "--pair", "de-en", tmp_path / "empty", tmp_path / "empty")

"""The commands of docs/how-to/own-data.md run on a generated corpus: split, train, draw, evaluate, translate."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shlex

import pytest

from attention_atlas.model import checkpoint, evaluate, translate
from attention_atlas.model.training import options
from attention_atlas.viz import learning_curves
from tests import ROOT, run
from tests.pages import block

WORDS = {
    "katten": "the cat",
    "hunden": "the dog",
    "flickan": "the girl",
    "pojken": "the boy",
    "läraren": "the teacher",
    "hästen": "the horse",
}
VERBS = {"ser": "sees", "hör": "hears", "söker": "seeks", "följer": "follows", "ritar": "draws", "minns": "remembers"}
PLACES = {
    "i parken": "in the park",
    "på torget": "on the square",
    "vid sjön": "at the lake",
    "under bron": "under the bridge",
}
TEXT = "Hunden hör katten vid sjön ."
HELD_OUT = 20  # lines in dev and test, instead of 1,000
SMALLER = (
    "--d-model 48 --num-heads 4 --num-encoder-layers 1 --num-decoder-layers 2 --d-feedforward 96 --dropout 0 "
    "--vocabulary-size 320 --max-updates 160 --warmup-updates 40 --cooldown-updates 80 --learning-rate 0.01 "
    "--tokens-per-batch 1000 --average-decay 0.9 --evaluate-every 80 --device cpu"
)


def recipe() -> str:
    return block("docs/how-to/own-data.md", "sh", "attention-atlas train")


def scaled(script: str) -> str:
    """Return the commands with fewer held-out lines, a smaller model, a shorter run, and TEXT to translate."""
    for lines in (1000, 1001, 2000):
        assert str(lines) in script
        script = re.sub(rf"(?<!\d){lines}(?!\d)", str(lines // 1000 * HELD_OUT + lines % 1000), script)
    script, trainings = re.subn(r"(attention-atlas train )", rf"\1{SMALLER} ", script)
    script, translations = re.subn(r'(attention-atlas translate .*)"[^"]+"', rf'\1"{TEXT}"', script)
    assert (trainings, translations) == (1, 1)
    return script


def test_the_programs_accept_every_option_of_the_recipe():
    lines = [line for line in recipe().replace("\\\n", " ").splitlines() if line.startswith("attention-atlas ")]
    parse = {
        "train": lambda argv: options.parse(argv, ""),
        "curves": learning_curves.parse,
        "evaluate": evaluate.parse,
        "translate": translate.parse,
    }
    train, curves, score, _ = [parse[name](arguments) for _, name, *arguments in map(shlex.split, lines)]
    assert train.directions == ["sv-en"] and train.out == score.checkpoint and [train.run] == curves.runs


@pytest.mark.long
def test_the_recipe_trains_a_pair_from_aligned_files(readme_bin, tmp_path):
    """In the environment of docs/start/page.md. The parts of the split are the right lines, and the model learns
    a language of 864 sentences."""
    pairs = [
        (f"{a} {v} {b} {p} .".capitalize(), f"{WORDS[a]} {VERBS[v]} {WORDS[b]} {PLACES[p]} .".capitalize())
        for a, v, b, p in itertools.product(WORDS, VERBS, WORDS, PLACES)
    ]
    random.Random(3).shuffle(pairs)
    translated = (TEXT, "The dog hears the cat at the lake .")
    pairs = [pair for pair in pairs if pair != translated][:500]
    for language, sentences in zip(("sv", "en"), zip(*pairs)):
        (tmp_path / f"europarl-v7.sv-en.{language}").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{readme_bin}:{os.environ['PATH']}"
    printed = run(["sh", "-eu"], input=scaled(recipe()), cwd=tmp_path, env=environment, timeout=400)
    parts = {
        name: (tmp_path / f"{name}.sv").read_text(encoding="utf-8").splitlines() for name in ("dev", "test", "train")
    }
    assert parts["dev"] + parts["test"] + parts["train"] == [source for source, _ in pairs]
    assert len(parts["dev"]) == len(parts["test"]) == HELD_OUT
    loaded = checkpoint.load(tmp_path / "checkpoints/sv-en")
    assert loaded.directions == ("sv-en",)
    scores = json.loads((tmp_path / "checkpoints/sv-en/metrics.json").read_text())["scores"]
    assert [(s["data"], s["beam"], s["sentences"]) for s in scores] == [("test.sv", n, HELD_OUT) for n in (1, 5)]
    assert min(s["bleu"] for s in scores) > 60
    assert (tmp_path / "runs/sv-en/curves.png").read_bytes().startswith(b"\x89PNG")
    assert printed.splitlines()[-1] == translated[1]

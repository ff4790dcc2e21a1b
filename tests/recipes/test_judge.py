"""Scores that a model gives to pairs, the exclusion of the worst pairs, and typing errors."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model import checkpoint
from attention_atlas.model.training import options
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.readers import Corpus
from attention_atlas.model.translator import Translator
from recipes import judge
from recipes.judge import judged, worst
from recipes.marks import mark, read_marks, without
from recipes.noise import hurried
from recipes.train import MIXED
from tests.model.training.test_more import english, rows_of, write_more


def test_the_worst_pairs_of_each_length_are_excluded():
    pairs = [(f"Satz {n}", f"sentence {n}") for n in range(40)]
    lengths = np.array([3] * 20 + [30] * 20)
    means = np.concatenate([np.linspace(-4, -2, 20), np.linspace(-1, 0, 20)])
    assert worst(pairs, means, lengths, share=0.1) == [pairs[0], pairs[1], pairs[20], pairs[21]]


def test_the_score_of_a_pair_is_the_mean_log_probability_of_its_target_with_the_end(tiny_checkpoint):
    model = checkpoint.load(tiny_checkpoint)
    pairs = [("Ein Hund.", "A dog."), ("Zwei Katzen schlafen im Garten.", "Two cats are asleep in the garden.")]
    means, lengths = judged(model, pairs, "en")
    translator = Translator.load(tiny_checkpoint)
    for (source, target), mean, length in zip(pairs, means, lengths, strict=True):
        ids = [*model.tokenizer.encode(target), model.tokenizer.end_id]
        assert length == len(ids)
        expected = np.mean(translator.log_probabilities([translator.encode(source, "de-en")], [ids])[0])
        assert mean == pytest.approx(expected, abs=0.05)  # it computes in bfloat16


def test_training_excludes_the_pairs_that_the_judge_marks(tmp_path, tiny_checkpoint, capsys):
    rows = rows_of(*english(range(10, 100), 30), *english(range(10, 100), 10, "There were {} of them."))
    write_more(tmp_path, stories=rows, games=rows)
    arguments = ["--data", str(tmp_path), "--corpora", "stories", "--checkpoint", str(tiny_checkpoint)]
    judge.main([*arguments, "--direction", "de-en", "--drop", "0.2"])
    (tmp_path / "marks.txt").write_text(capsys.readouterr().out)
    pairs = {s.train.name: set(s.train.pairs) for s in read_folder(tmp_path, [("de", "en")])}
    dropped = {pair for pair in pairs["stories"] if mark(pair) in read_marks([tmp_path / "marks.txt"])}
    assert 0 < len(dropped) < 0.3 * len(pairs["stories"])
    arguments = ["--run-dir", str(tmp_path / "run"), "--data", str(tmp_path), "--without", str(tmp_path / "marks.txt")]
    corpora = MIXED.find(options.parse(arguments, "", MIXED), ["de-en"])
    pairs_by_name = {s.train.name: set(s.train.pairs) for s in corpora}
    assert pairs_by_name["stories"] == pairs["stories"] - dropped


def test_marked_pairs_are_excluded_in_both_orders():
    corpus = Corpus("a", ("de", "en"), (("Ein Hund.", "A dog."), ("Zwei.", "Two.")))
    assert without(corpus, frozenset({mark(("a  DOG.", "Ein Hund."))})).pairs == (("Zwei.", "Two."),)
    assert without(corpus, frozenset()) is corpus


def test_a_typing_error_changes_one_word_or_the_case_and_the_end_mark():
    sentence, random = "Meine Katze schläft im Garten.", np.random.default_rng(0)
    variants = {hurried(sentence, random) for _ in range(400)}
    assert {sentence.lower(), sentence[:-1], sentence.lower()[:-1]} <= variants
    slips = {text for text in variants if text[-1] == "." and text[0] == "M"}
    assert len(slips) > 20
    for slip in slips - {sentence}:
        changed = [(a, b) for a, b in zip(sentence.split(), slip.split(), strict=True) if a != b]
        assert len(changed) == 1 and changed[0][0][0] == changed[0][1][0] and abs(len(slip) - len(sentence)) <= 1


def test_a_sentence_without_anything_to_change_is_unchanged():
    random = np.random.default_rng(0)
    assert {hurried("ja", random) for _ in range(50)} == {"ja"}

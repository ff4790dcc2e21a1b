"""Tests of faithfulness: deletion curves, intervals, redrawn weights, and the program that writes the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from dataclasses import replace as changed

import numpy as np
import pytest
import torch
from scipy import stats

from attention_atlas.model.analysis.why import faithfulness
from attention_atlas.model.analysis.why.case import mask_words, open_case, replace_words
from attention_atlas.model.analysis.why.faithfulness import FILE
from attention_atlas.model.analysis.why.methods import METHODS, occlusion
from attention_atlas.model.analysis.why.questions import make_question
from attention_atlas.model.faithfulness import HEADING, main, section
from attention_atlas.model.files import BEFORE, with_section
from attention_atlas.model.trace.why.attribution import FORMER_NAMES
from attention_atlas.model.trace.why.faithfulness import (
    Faithfulness,
    Interval,
    MethodFaithfulness,
    bootstrap,
    from_dict,
)
from tests import ROOT
from tests.conftest import SENTENCES
from tests.model.training.test_corpora import write_gz

SAMPLES = ROOT / "tests" / "samples"  # written by earlier versions
TEXT = "Der kleine Hund schläft unter dem Tisch."
STAGES = [*(f"decoder layer {n}" for n in (3, 2, 1)), *(f"encoder layer {n}" for n in (2, 1)), "everything"]


@pytest.fixture(scope="module")
def case(tiny_translator, trace):
    return open_case(tiny_translator, trace, make_question(tiny_translator, trace, 3))


@pytest.mark.parametrize("delete", [mask_words, replace_words])
def test_curves_remove_one_word_after_the_other(case, delete):
    order = np.flatnonzero(~case.columns.special)[::-1]
    ((without, alone),) = faithfulness.measure_curves(case, [(order, delete)])
    source, prefix = case.columns.masks()
    for k in range(1, len(order) + 1):
        first, rest = order[:k], order[k:]
        for effect, removed in ((without[k - 1], first), (alone[k - 1], rest)):
            expected = case.measure_effects(delete(source[removed].any(0)[None], prefix[removed].any(0)[None]))[0]
            assert effect == pytest.approx(expected, abs=1e-5)
    assert alone[-1] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("counts", [None, [1, 4]])
def test_orders_measured_together_match_each_order_alone(case, counts):
    words = np.flatnonzero(~case.columns.special)
    orders = [
        (np.random.default_rng(seed).permutation(words), delete)
        for seed in range(3)
        for delete in (mask_words, replace_words)
    ]
    together = faithfulness.measure_curves(case, orders, counts=counts)
    for order, curves in zip(orders, together, strict=True):
        np.testing.assert_allclose(curves, faithfulness.measure_curves(case, [order], counts=counts)[0], atol=1e-5)


def test_methods_are_judged_by_another_replacement_than_their_own():
    for name in METHODS:
        expected = mask_words if name == occlusion.MEAN.slug else replace_words
        assert faithfulness.choose_deletion(name) is expected


def test_rank_words_leaves_out_symbols_and_puts_nan_last():
    values, ordinary = np.array([9.0, 1.0, np.nan, 5.0]), np.array([False, True, True, True])
    assert faithfulness.rank_words(values, ordinary) == [3, 1, 2]


def test_bootstrap_matches_scipy():
    values = np.random.default_rng(1).normal(size=60)
    interval = bootstrap([*values, None, float("nan")])
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=3).confidence_interval
    assert interval.value == pytest.approx(values.mean()) and interval.count == 60
    assert (interval.low, interval.high) == pytest.approx(theirs, abs=0.05)
    assert interval == bootstrap(list(values)) and bootstrap([None]) is None
    assert bootstrap([1.0, 2.0, 9.0], median=True).value == 2.0


def test_redraw_weights_goes_from_the_top_to_everything(tiny_translator):
    model = tiny_translator.model
    stages = faithfulness.redraw_weights(model)
    assert [name for name, _ in stages] == STAGES
    state = model.state_dict()
    for index, (_, other) in enumerate(stages):
        changed = {
            name.rsplit(".", 1)[0]
            for name, tensor in other.state_dict().items()
            if tensor.ndim == 2 and not torch.equal(tensor, state[name])
        }
        assert any(name.startswith("encoder") for name in changed) == (index >= 3)
        assert any("embedding" in name for name in changed) == (index == 5)
    redrawn = faithfulness.redraw_weights(model)[-1][1].state_dict()
    assert all(torch.equal(tensor, redrawn[name]) for name, tensor in stages[-1][1].state_dict().items())


def test_redrawn_weights_change_the_order_of_words(tiny_translator):
    """The median rank correlation, over sentences and methods that look at the token, is below 0.3."""
    stages, texts = faithfulness.redraw_weights(tiny_translator.model)[-1:], SENTENCES[:10:2]
    scores = [faithfulness.examine_sentence(tiny_translator, text, "de-en", None, stages=stages) for text in texts]
    assert all(sentence is not None for sentence in scores)
    correlations = [
        sentence.randomised[name]["everything"]
        for sentence in scores
        for name, method in METHODS.items()
        if not method.class_agnostic
    ]
    assert np.median(correlations) < 0.3


def test_sentences_with_too_few_words_are_left_out(tiny_translator, monkeypatch):
    monkeypatch.setattr(faithfulness, "MIN_WORDS", 100)
    assert faithfulness.examine_sentence(tiny_translator, "Hund", "de-en", None) is None


@pytest.fixture()
def arguments(checkpoint_copy, tmp_path):
    file = tmp_path / "some.txt"
    file.write_text(f"{TEXT}\n", encoding="utf-8")
    return ["--checkpoint", str(checkpoint_copy), "--sentences", str(file), "--randomised", "1"]


@pytest.mark.long
def test_program_writes_the_same_table_with_two_processes(checkpoint_copy, arguments, capsys):
    main(arguments)
    table = capsys.readouterr().out
    expected = json.loads((checkpoint_copy / FILE).read_text(encoding="utf-8"))
    assert expected["sentences"] == 2 and [method["method"] for method in expected["methods"]] == list(METHODS)
    assert all(method.title in table for method in METHODS.values())
    assert "| redrawn down to | decoder layer 3 |" in table
    for method in expected["methods"]:
        assert list(method["randomised"]) == STAGES
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m"]
    command = [*torchrun, "attention_atlas.model.faithfulness", *arguments, "--replace", "--device", "cpu"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=300)
    assert json.loads((checkpoint_copy / FILE).read_text(encoding="utf-8")) == expected


def test_model_card_gets_its_section_and_a_new_one_replaces_it(checkpoint_copy, arguments, capsys):
    card = checkpoint_copy / "README.md"
    before = f"# tiny\n\n## Scores\n\nnone\n\n{BEFORE}\n\nmany\n"
    card.write_text(before, encoding="utf-8")
    main([*arguments[:-2], "--randomised", "0"])
    card_text, table = card.read_text(encoding="utf-8"), faithfulness.load_faithfulness(checkpoint_copy)
    assert section(table) in capsys.readouterr().out and f"\n\n{section(table)}\n\n{BEFORE}\n" in card_text
    assert card_text.replace(f"{section(table)}\n\n", "") == before
    assert with_section(card_text, section(table)) == card_text
    assert table.digest in card_text and "2 sentences (some.txt)" in card_text and "redrawn" not in card_text
    assert not any(word in card_text for word in ("Hund", "Schwester"))
    newer = from_dict({**asdict(table), "sentences": 9})
    replaced = with_section(card_text, section(newer))
    assert "9 sentences" in replaced and replaced.count(HEADING) == 1 and replaced.endswith(f"{BEFORE}\n\nmany\n")
    assert with_section("# tiny\n", section(table)) == f"# tiny\n\n{section(table)}\n"


def test_model_card_names_the_best_method_and_sorts_by_agreement():
    def method(name, agreement, class_agnostic=False):
        interval = agreement and Interval(agreement, agreement - 0.1, agreement + 0.1, 9)
        return MethodFaithfulness(name, "proxy", class_agnostic, interval, None, None, {"everything": 0.2})

    methods = (method("cross_attention", 0.3, True), method("alti", None), method("attention_rollout", 0.7))
    table = Faithfulness("tiny", "0" * 16, ("de-en",), "some dev", 9, "mean embedding", methods)
    text = section(table)
    assert "**attention rollout** agreed best" in text
    assert text.index("| attention rollout |") < text.index("| cross-attention |") < text.index("| ALTI+ |")
    assert "| cross-attention (class-agnostic) | 0.20 |" in text and "| ALTI+ | proxy | none | none | none |" in text
    assert "leads with occlusion alone" in section(changed(table, methods=methods[:2]))


def test_program_reads_development_sentences_from_a_data_folder(checkpoint_copy, arguments, tmp_path, capsys):
    for part, lines in (
        ("train", ["Ein Haus ist rot.", "Zwei Katzen."]),
        ("val", [TEXT, "Das ist ein Baum."]),
        ("test_2016_flickr", ["Drei Männer."]),
    ):
        for language in ("de", "en", "fr"):
            write_gz(tmp_path / "data/multi30k/data/task1/raw" / f"{part}.{language}.gz", lines)
    card = checkpoint_copy / "README.md"
    card.write_text("# tiny\n", encoding="utf-8")
    limited = [*arguments[:2], "--data", str(tmp_path / "data"), "--limit", "1", "--randomised", "0"]
    main(limited)
    assert not (checkpoint_copy / FILE).exists() and HEADING in capsys.readouterr().out
    main([*limited, "--out", str(tmp_path / FILE)])
    assert not (checkpoint_copy / FILE).exists() and card.read_text(encoding="utf-8") == "# tiny\n"
    table = from_dict(json.loads((tmp_path / FILE).read_text(encoding="utf-8")))
    assert table.corpus == "multi30k dev" and table.sentences == len(table.directions)
    (checkpoint_copy / FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="is there already: use --replace"):
        main(limited[:-4])


def test_program_without_sentences_raises(tiny_checkpoint, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no sentences"):
        main(["--checkpoint", str(tiny_checkpoint), "--sentences", str(empty)])


def test_a_table_that_was_written_when_methods_had_only_titles_opens():
    table = from_dict(json.loads((SAMPLES / "faithfulness-titles.json").read_text(encoding="utf-8")))
    assert [one.method for one in table.methods] == [slug for slug in METHODS if slug in FORMER_NAMES.values()]
    assert METHODS.keys() >= set(FORMER_NAMES.values()) and all(slug.replace("_", "").isalpha() for slug in METHODS)

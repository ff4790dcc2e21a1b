"""Does a row hold: curves against passes of their own, intervals, redrawn weights, one process as two."""

from __future__ import annotations

import gzip
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

from attention_atlas.model.analysis.why import faithful
from attention_atlas.model.analysis.why.case import open_case
from attention_atlas.model.analysis.why.faithful import FILE
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.analysis.why.passes.change import masked, replaced
from attention_atlas.model.analysis.why.pinned import ask
from attention_atlas.model.analysis.why.registry import METHODS
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

SAMPLES = ROOT / "tests" / "samples"  # written by earlier versions
TEXT = "Der kleine Hund schläft unter dem Tisch."


@pytest.fixture(scope="module")
def case(tiny_translator):
    trace = tiny_translator.translate(TEXT, "de-en")
    return open_case(tiny_translator, trace, ask(tiny_translator, trace, 3))


@pytest.mark.parametrize("how", [masked, replaced])
def test_curves_take_away_one_word_after_the_other(case, how):
    order = np.flatnonzero(~case.columns.special)[::-1]
    without, alone = faithful.curves(case, order, how)
    source, prefix = case.columns.masks()
    for k in range(1, len(order) + 1):
        first, rest = order[:k], order[k:]
        for found, gone in ((without[k - 1], first), (alone[k - 1], rest)):
            expected = case.effects(how(source[gone].any(0)[None], prefix[gone].any(0)[None]))[0]
            assert found == pytest.approx(expected, abs=1e-5)
    assert alone[-1] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("counts", [None, [1, 4]])
def test_many_orders_at_once_are_each_order_alone(case, counts):
    words = np.flatnonzero(~case.columns.special)
    orders = [(np.random.default_rng(seed).permutation(words), how) for seed in range(3) for how in (masked, replaced)]
    together = faithful.all_curves(case, orders, counts=counts)
    for (order, how), found in zip(orders, together, strict=True):
        for mine, alone in zip(found, faithful.curves(case, order, how, counts=counts), strict=True):
            np.testing.assert_allclose(mine, alone, atol=1e-5)


def test_sets_of_words_that_orders_share_run_once(case, monkeypatch):
    words, run = np.flatnonzero(~case.columns.special), []
    monkeypatch.setattr(type(case), "effects", lambda self, change: run.append(len(change)) or np.zeros(len(change)))
    faithful.all_curves(case, [(words, masked), (words[[1, 0, *range(2, len(words))]], masked)])
    n = len(words)  # an order has n sets to take away and n to leave; of the second one only the first of either is new
    assert run == [2 * n + 2]


def test_a_method_is_judged_by_another_replacement_than_its_own():
    assert faithful.deletion(occlusion.MASK.slug) is replaced and faithful.deletion(occlusion.MEAN.slug) is masked
    assert all(faithful.deletion(name) is replaced for name in METHODS if name != occlusion.MEAN.slug)


def test_orders_leave_symbols_out_and_put_what_is_not_said_last():
    values, ordinary = np.array([9.0, 1.0, np.nan, 5.0]), np.array([False, True, True, True])
    assert faithful.order_of(values, ordinary) == [3, 1, 2]


def test_the_best_order_beats_chance_and_the_worst_does_not(case):
    """The order of occlusion itself, judged by its own replacement: by construction the best of single steps."""
    ordinary = ~case.columns.special
    values = occlusion.by_mean(case).values
    best, worst = (
        faithful.curves(case, faithful.order_of(sign * values, ordinary), replaced)[0][0] for sign in (1, -1)
    )
    assert best == pytest.approx(values[ordinary].max(), abs=1e-5)
    assert worst == pytest.approx(values[ordinary].min(), abs=1e-5)


def test_intervals_are_the_bootstraps():
    values = np.random.default_rng(1).normal(size=60)
    found = bootstrap([*values, None, float("nan")])
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=3).confidence_interval
    assert found.value == pytest.approx(values.mean()) and found.count == 60
    assert found.low == pytest.approx(theirs.low, abs=0.05) and found.high == pytest.approx(theirs.high, abs=0.05)
    assert found == bootstrap(list(values)) and bootstrap([None]) is None
    assert bootstrap([1.0, 2.0, 9.0], median=True).value == 2.0


def test_weights_are_redrawn_from_the_top_until_nothing_is_left(tiny_translator):
    model = tiny_translator.model
    stages = faithful.redrawn(model)
    assert [name for name, _ in stages] == [
        "decoder layer 3",
        "decoder layer 2",
        "decoder layer 1",
        "encoder layer 2",
        "encoder layer 1",
        "everything",
    ]
    state = model.state_dict()
    for index, (_, other) in enumerate(stages):
        changed = {
            name.rsplit(".", 1)[0]
            for name, tensor in other.state_dict().items()
            if tensor.ndim == 2 and not torch.equal(tensor, state[name])
        }
        assert any(name.startswith("encoder") for name in changed) == (index >= 3)
        assert any("embedding" in name for name in changed) == (index == 5)
    again = faithful.redrawn(model)[-1][1].state_dict()
    assert all(torch.equal(tensor, again[name]) for name, tensor in stages[-1][1].state_dict().items())


def test_redrawn_weights_have_other_reasons(tiny_translator):
    """Medians over sentences and methods that look at the token: what is left of their order is below 0.3."""
    texts = (
        TEXT,
        "Meine Schwester malt ein rotes Boot.",
        "Zwei Kinder bauen eine Burg aus Sand.",
        "Heute scheint die Sonne über der Stadt.",
        "Ich trinke morgens gern schwarzen Tee.",
    )
    stages = faithful.redrawn(tiny_translator.model)[-1:]
    found = [faithful.examine(tiny_translator, text, "de-en", None, stages=stages) for text in texts]
    assert all(sentence is not None for sentence in found)
    left = [
        sentence.randomised[name]["everything"]
        for sentence in found
        for name, method in METHODS.items()
        if not method.class_agnostic
    ]
    assert np.median(left) < 0.3


def test_a_sentence_that_cannot_be_ranked_is_left_out(tiny_translator, monkeypatch):
    monkeypatch.setattr(faithful, "LEAST_WORDS", 100)
    assert faithful.examine(tiny_translator, "Hund", "de-en", None) is None


@pytest.fixture()
def arguments(tiny_checkpoint, tmp_path):
    file = tmp_path / "some.txt"
    file.write_text(f"{TEXT}\n", encoding="utf-8")
    yield ["--checkpoint", str(tiny_checkpoint), "--sentences", str(file), "--randomised", "1"]
    (tiny_checkpoint / FILE).unlink(missing_ok=True)


@pytest.mark.long
def test_the_program_writes_its_table_and_two_processes_find_the_same(tiny_checkpoint, arguments, capsys):
    main(arguments)
    table = capsys.readouterr().out
    one = json.loads((tiny_checkpoint / FILE).read_text(encoding="utf-8"))
    assert one["sentences"] == 2 and [method["method"] for method in one["methods"]] == list(METHODS)
    assert (
        all(method.title in table for method in METHODS.values()) and "| redrawn down to | decoder layer 3 |" in table
    )
    for method in one["methods"]:
        assert set(method["randomised"]) == {name for name, _ in faithful_stages()}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node=2",
            "-m",
            "attention_atlas.model.faithfulness",
            *arguments,
            "--replace",
            "--device",
            "cpu",
        ],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert json.loads((tiny_checkpoint / FILE).read_text(encoding="utf-8")) == one


def test_a_card_gets_the_tables_and_gets_them_anew(tiny_checkpoint, arguments, tiny_translator, capsys):
    card = tiny_checkpoint / "README.md"
    before = f"# tiny\n\n## Scores\n\nnone\n\n{BEFORE}\n\nmany\n"
    card.write_text(before, encoding="utf-8")
    try:
        main([*arguments[:-2], "--randomised", "0"])
        once, found = card.read_text(encoding="utf-8"), faithful.read(tiny_checkpoint)
    finally:
        card.unlink()
    assert section(found) in capsys.readouterr().out and f"\n\n{section(found)}\n\n{BEFORE}\n" in once
    assert once.replace(f"{section(found)}\n\n", "") == before and with_section(once, section(found)) == once
    assert found.digest in once and "2 sentences (some.txt)" in once and "redrawn" not in once
    assert not any(word in once for word in ("Hund", "Schwester"))
    other = from_dict({**asdict(found), "sentences": 9})
    again = with_section(once, section(other))
    assert "9 sentences" in again and again.count(HEADING) == 1 and again.endswith(f"{BEFORE}\n\nmany\n")
    assert with_section("# tiny\n", section(found)) == f"# tiny\n\n{section(found)}\n"


def test_the_card_says_which_row_leads_and_stands_in_its_order():
    def method(name, agreement, class_agnostic=False):
        interval = agreement and Interval(agreement, agreement - 0.1, agreement + 0.1, 9)
        return MethodFaithfulness(name, "proxy", class_agnostic, interval, None, None, {"everything": 0.2})

    methods = (method("cross_attention", 0.3, True), method("alti", None), method("attention_rollout", 0.7))
    found = Faithfulness("tiny", "0" * 16, ("de-en",), "some dev", 9, "mean embedding", methods)
    text = section(found)
    assert "**attention rollout** agreed best" in text
    assert text.index("| attention rollout |") < text.index("| cross-attention |") < text.index("| ALTI+ |")
    assert "| cross-attention (class-agnostic) | 0.20 |" in text and "| ALTI+ | proxy | none | none | none |" in text
    assert "leads with occlusion alone" in section(changed(found, methods=methods[:2]))


def test_development_sentences_are_read_from_a_data_folder(tiny_checkpoint, arguments, tmp_path, capsys):
    for part, lines in (
        ("train", ["Ein Haus ist rot.", "Zwei Katzen."]),
        ("val", [TEXT, "Das ist ein Baum."]),
        ("test_2016_flickr", ["Drei Männer."]),
    ):
        for language in ("de", "en", "fr"):
            path = tmp_path / "data/multi30k/data/task1/raw" / f"{part}.{language}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    card = tiny_checkpoint / "README.md"
    card.write_text("# tiny\n", encoding="utf-8")
    limited = [*arguments[:2], "--data", str(tmp_path / "data"), "--limit", "1", "--randomised", "0"]
    try:
        main(limited)
        assert not (tiny_checkpoint / FILE).exists() and HEADING in capsys.readouterr().out
        main([*limited, "--out", str(tmp_path / FILE)])
        assert not (tiny_checkpoint / FILE).exists() and card.read_text(encoding="utf-8") == "# tiny\n"
    finally:
        card.unlink()
    found = from_dict(json.loads((tmp_path / FILE).read_text(encoding="utf-8")))
    assert found.corpus == "multi30k dev" and found.sentences == len(found.directions)
    (tiny_checkpoint / FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="is there already: --replace"):
        main(limited[:-4])


def faithful_stages():
    return [
        ("decoder layer 3", 0),
        ("decoder layer 2", 0),
        ("decoder layer 1", 0),
        ("encoder layer 2", 0),
        ("encoder layer 1", 0),
        ("everything", 0),
    ]


def test_without_sentences_it_is_said(tiny_checkpoint, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no sentences"):
        main(["--checkpoint", str(tiny_checkpoint), "--sentences", str(empty)])


def test_a_table_that_was_written_when_methods_had_only_titles_opens():
    found = from_dict(json.loads((SAMPLES / "faithfulness-titles.json").read_text(encoding="utf-8")))
    assert [one.method for one in found.methods] == [slug for slug in METHODS if slug in FORMER_NAMES.values()]
    assert METHODS.keys() >= set(FORMER_NAMES.values()) and all(slug.replace("_", "").isalpha() for slug in METHODS)

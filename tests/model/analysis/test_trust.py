"""Tests of trust signals on planted faults, of readings, dropout passes and stored scores."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from attention_atlas.model.analysis.trust import FILE, load_trust, read_trace, run_dropout_passes
from attention_atlas.model.analysis.why.contributions import alti_flow
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import tokens_from_spelling
from attention_atlas.model.trace.trust import SIGNALS, Reading, SignalScore, Trust, auroc, baselines
from tests.conftest import SENTENCES

FAITHFUL = Reading(
    np.log([0.9, 0.8, 0.9, 0.9]),
    np.log([0.1, 0.01, 0.01, 0.5]),
    np.array([0.7, 0.8, 0.7, 0.6]),
    np.array([0.2, 0.8, 0.9, 0.9, 0.0]),
    tokens_from_spelling(("<2en>", "▁der", "▁Hund", "▁schläft", "</s>")),
    tokens_from_spelling(("▁the", "▁dog", "▁sleeps", "</s>")),
)


@pytest.mark.parametrize(
    ("name", "changed", "place"),
    [
        ("unsure", {"log_probability": np.log([0.9, 0.02, 0.9, 0.9])}, (1,)),
        ("unmoved", {"without_source": np.log([0.1, 0.8, 0.01, 0.5])}, (1,)),
        ("detached", {"share": np.array([0.7, 0.8, 0.1, 0.6])}, (2,)),
        ("unread", {"columns": np.array([0.9, 0.8, 0.05, 0.9, 0.0])}, (2,)),
        ("repeated", {"target": ("▁the", "▁dog", "▁the", "▁dog")}, (2, 3)),  # not what was said first
    ],
)
def test_signals_find_and_locate_planted_faults(name, changed, place):
    signal, faulty = SIGNALS[name], replace(FAITHFUL, **changed)
    assert signal.measure(faulty) > signal.measure(FAITHFUL)
    assert signal.place(faulty) == place
    others = [other for other in SIGNALS if SIGNALS[other].measure(faulty) != SIGNALS[other].measure(FAITHFUL)]
    assert name in others and len(others) <= 2  # a word's probability is of two signals


def test_repetitions_of_the_source_are_allowed():
    repeated_target = ("▁the", "▁dog", "▁the", "▁dog", "</s>")
    trace = replace(FAITHFUL, source=("<2en>", "▁der", "▁Hund", "▁der", "▁Hund"), target=repeated_target)
    assert SIGNALS["repeated"].measure(trace) == 0.0 and SIGNALS["repeated"].place(trace) == ()


def test_baselines_of_texts():
    assert baselines("a b a b", "x y x y x y")["bigrams"] == 1.0
    short = baselines("a long sentence", "a")
    assert short["short"] == short["length"] > 0 > baselines("a", "a long sentence")["short"]


def test_auroc_matches_scipys_rank_test():
    random = np.random.default_rng(0)
    values, labels = random.integers(0, 5, 60).astype(float), random.random(60) < 0.3
    expected = mannwhitneyu(values[labels], values[~labels]).statistic / (labels.sum() * (~labels).sum())
    assert auroc(values, labels) == pytest.approx(expected)
    assert np.isnan(auroc(values, np.ones(60, bool)))


@pytest.fixture(scope="module")
def trace(tiny_translator):
    return tiny_translator.trace(SENTENCES[0], target=SENTENCES[1])


def test_reading_matches_the_trace_and_alti(tiny_translator, trace):
    reading = read_trace(tiny_translator, trace)
    np.testing.assert_allclose(reading.log_probability, trace.log_probability, atol=1e-4)
    assert reading.share.min() >= 0 and reading.share.max() <= 1
    assert reading.columns.sum() == pytest.approx(reading.share.sum())
    empty = tiny_translator.tokenizer.encode_source("", "en", "de")
    alone = tiny_translator.trace("a", source_ids=empty, target=trace.target_ids)
    np.testing.assert_allclose(reading.without_source, alone.log_probability, atol=1e-4)
    output = tiny_translator.inspect(trace)  # with nothing beside it
    flow = alti_flow(tiny_translator.model, output)[-1]
    np.testing.assert_allclose(reading.columns, flow[:, : len(trace.source_ids)].sum(0), atol=1e-5)


def test_reading_of_a_changed_model_keeps_the_plain_empty_source(tiny_translator, trace):
    off = Interventions(heads_off={("cross", 0, 1)})
    changed = tiny_translator.trace(SENTENCES[0], target=SENTENCES[1], interventions=off)
    reading, plain = (read_trace(tiny_translator, one) for one in (changed, trace))
    np.testing.assert_allclose(reading.log_probability, changed.log_probability, atol=1e-4)
    np.testing.assert_allclose(reading.without_source, plain.without_source, atol=1e-4)
    assert np.abs(reading.log_probability - plain.log_probability).max() > 1e-3


def test_dropout_passes_run_in_a_copy(tiny_translator, trace):
    *_, (log_probability, ids) = run_dropout_passes(tiny_translator, trace, 12)
    assert log_probability.shape == ids.shape == (12, len(trace.target_ids))
    assert log_probability.std(0).max() > 0.01, "the passes are all alike"
    np.testing.assert_allclose(log_probability.mean(0), trace.log_probability, atol=1.5)
    assert not tiny_translator.model.training
    assert (tiny_translator.trace(SENTENCES[0], target=SENTENCES[1]).log_probability == trace.log_probability).all()


def test_model_without_dropout_raises(tiny_translator, trace, monkeypatch):
    monkeypatch.setattr(tiny_translator, "config", replace(tiny_translator.config, dropout=0.0))
    with pytest.raises(Refusal, match="no dropout"):
        next(run_dropout_passes(tiny_translator, trace, 1))


def test_only_passed_signals_of_these_weights_are_shown(tmp_path):
    good = SignalScore("unsure", "labelled", "hallucination", 100, 20, 0.8, "length", 0.6, 0.2, 0.1, 0.3)
    weak, doubtful = replace(good, signal="detached", gain=0.02), replace(good, signal="unmoved", low=-0.01)
    trust = Trust(dict.fromkeys(SIGNALS, 0.4), (good, weak, doubtful))
    assert trust.shown_signals == ("unsure",)
    assert trust.alarms(replace(FAITHFUL, log_probability=np.log([0.1] * 4))) == ["unsure"]
    assert not trust.alarms(FAITHFUL)
    own = replace(good, on="provoked", gain=0.05)  # of its own translations, which are what the page shows
    assert Trust({}, (good, own, replace(own, low=-0.1))).best_score("unsure") == own
    (tmp_path / FILE).write_text(json.dumps({"digest": "abc", "trust": {"de-en": trust.to_json()}}))
    assert load_trust(tmp_path, "abc")["de-en"] == trust
    assert load_trust(tmp_path, "other") == load_trust(None, "abc") == {}

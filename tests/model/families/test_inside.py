"""Traces, forced targets, beams and live checks work on the models of other families."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis import stations, temperatures
from attention_atlas.model.analysis.ablation import measure_order_blindness
from attention_atlas.model.checks.verify import verify
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from tests.model.families import theirs

TEXT = "Der kleine Hund schläft 漢."
DIRECTIONS = {
    "marian": "de-en",
    "m2m100": "de-en",
    "nllb": "deu_Latn-eng_Latn",
    "mbart": "de_DE-en_XX",
    "t5": "source-target",
    "bart": "source-target",
    "pegasus": "source-target",
    "blenderbot": "source-target",
    "blenderbot-small": "source-target",
}


@pytest.fixture(scope="module", params=DIRECTIONS)
def opened(request, tmp_path_factory) -> tuple[Translator, str, TranslationTrace]:
    folder, direction = tmp_path_factory.mktemp("inside") / request.param, DIRECTIONS[request.param]
    theirs.FAMILIES[request.param](folder).save_pretrained(folder)
    translator = Translator.load(folder, "cpu")
    return translator, direction, translator.translate(TEXT, direction)


def test_every_live_check_passes(opened):
    translator, _, trace = opened
    assert not [(result.name, result.detail) for result in verify(translator, trace) if not result.passed]


def test_a_trace_begins_with_the_forced_prefix_and_has_no_banned_token(opened):
    translator, direction, trace = opened
    forced = translator.forced_prefix(direction)
    assert trace.target_ids[: len(forced)] == forced and trace.decoder_ids[0] == translator.tokenizer.begin_id
    assert len(trace.target_ids) <= translator.max_tokens - 1
    assert not set(trace.target_ids) & set(translator.config.banned_ids)
    assert np.isfinite(trace.entropy).all() and np.isfinite(trace.log_probability).all()
    frame = translator.tokenizer.encode_source("", *reversed(direction.split("-")))
    assert [is_symbol(t) for t in trace.source_tokens].count(True) == len(frame)
    assert translator.translate_batch([TEXT], direction) == [trace.translation]


def test_a_forced_target_and_an_empty_prefix_reproduce_the_trace(opened):
    translator, direction, trace = opened
    for given in ({"target": trace.target_ids}, {"prefix": []}):
        repeated = translator.trace(TEXT, direction, **given)
        assert repeated.target_ids == trace.target_ids and (repeated.log_probability == trace.log_probability).all()
        assert (repeated.cross.weights == trace.cross.weights).all()
    typed = translator.encode_target("Der Hund", direction)
    forced = translator.forced_prefix(direction)
    assert tuple(typed[: len(forced)]) == forced and typed[-1] == translator.tokenizer.end_id


def test_the_lens_ends_in_the_models_own_distribution(opened):
    translator, _, trace = opened
    details = temperatures.compute_details(translator, trace.source_ids, trace.target_ids)
    ours = details.lenses["logit"].chosen_probabilities[-1]
    np.testing.assert_allclose(ours, np.exp(trace.log_probability), atol=1e-5)


def test_a_beam_of_one_is_greedy_from_the_forced_prefix(opened):
    translator, direction, trace = opened
    forced = translator.forced_prefix(direction)
    (one,) = translator.beam([trace.source_ids], direction, width=1)
    assert one.hypotheses[0].ids == trace.target_ids
    (wide,) = translator.beam([trace.source_ids], direction, width=4, n_best=4, keep_pruned=True)
    for hypothesis in wide.hypotheses:
        assert hypothesis.ids[: len(forced)] == forced
        (details,) = translator.log_probabilities([list(trace.source_ids)], [list(hypothesis.ids)])
        if not translator.config.banned_ids:  # else the other tokens share their probability
            assert sum(details[len(forced) :]) == pytest.approx(hypothesis.log_probability, abs=1e-3)
    assert all(node.token_id not in translator.config.banned_ids for node in wide.nodes)


def test_stations_show_the_input_of_the_first_layer(opened):
    translator, _, trace = opened
    output = translator.inspect(trace)
    for side, ids in (("source", trace.source_ids), ("target", trace.decoder_ids)):
        rows = stations.embedding_rows(translator, ids, output, side=side)
        assert rows.error < 1e-5


def test_without_positions_order_does_not_count(opened):
    translator, _, trace = opened
    assert measure_order_blindness(translator, trace).encoder_off < 1e-4

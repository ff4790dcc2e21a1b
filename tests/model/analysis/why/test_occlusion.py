"""Tests of occlusion against cut edges, against an unused token with the mean embedding, and in batches."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import MASKED, REPLACED, Case, mask_words, replace_words
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.why.attribution import Against, Columns
from tests.model.analysis.why.cases import CROSS, DECODER, ENCODER, SOURCE, TARGET, case_of

COLUMNS = Columns(
    ((0,), (1, 2), (3,), (4,), (5,)),
    ((0,), (1,), (2, 3)),
    ("<2en>", "▁a", "b", "▁c", "▁a", "</s>"),
    ("<s>", "▁x", "▁y", "z"),
)


@pytest.fixture()
def case(model) -> Case:
    return case_of(model, SOURCE, TARGET, columns=COLUMNS)


def contrast(model, source, target, changes: Interventions = Interventions()) -> float:
    with torch.inference_mode():
        logits = model(torch.tensor([source]), torch.tensor([target]), interventions=changes).logits[0, 3].double()
    return float(logits[40] - logits[50])


def at(length: int, *positions: int) -> np.ndarray:
    mask = np.zeros((1, length), bool)
    mask[0, list(positions)] = True
    return mask


def test_metric_matches_the_model(case):
    assert case.metric() == pytest.approx(contrast(case.model, SOURCE, TARGET), abs=1e-5)
    # Later tokens do not affect this row.
    assert case.metric() == pytest.approx(contrast(case.model, SOURCE, [*TARGET, 60, 61]), abs=1e-5)


def test_masking_a_source_word_equals_cutting_all_edges_to_it(case):
    edges = {
        Edge(kind, query, key) for key in (1, 2) for kind, rows in ((ENCODER, 6), (CROSS, 4)) for query in range(rows)
    }
    cut = contrast(case.model, SOURCE, TARGET, Interventions(cut_edges=edges))
    effect = case.measure_effects(mask_words(at(6, 1, 2), at(4)))[0]
    assert effect == pytest.approx(case.metric() - cut, abs=1e-5) and abs(effect) > 1e-4


def test_masking_a_prefix_word_equals_cutting_later_edges_to_it(case):
    edges = {Edge(DECODER, query, 1) for query in (2, 3)}
    cut = contrast(case.model, SOURCE, TARGET, Interventions(cut_edges=edges))
    assert case.measure_effects(mask_words(at(6), at(4, 1)))[0] == pytest.approx(case.metric() - cut, abs=1e-5)


def test_replacing_equals_a_token_with_the_mean_embedding(case):
    """Compare with a pass over an unused token whose embedding is set to the mean."""
    unused = 70
    model = copy.deepcopy(case.model)
    with torch.no_grad():
        model.embedding.weight[unused] = case.mean_rows[0] / math.sqrt(model.config.d_model)
    for source, target, *words in (
        ([SOURCE[0], unused, unused, *SOURCE[3:]], TARGET, at(6, 1, 2), at(4)),
        (SOURCE, [TARGET[0], unused, *TARGET[2:]], at(6), at(4, 1)),
    ):
        effect = case.metric() - contrast(model, source, target)
        assert case.measure_effects(replace_words(*words))[0] == pytest.approx(effect, abs=1e-4)


def test_masking_the_rows_own_token_replaces_it(case):
    by_mask, by_mean = (case.measure_effects(change(at(6), at(4, 3)))[0] for change in (mask_words, replace_words))
    assert by_mask == by_mean and by_mask != 0


@pytest.mark.parametrize("method", [occlusion.MASK, occlusion.MEAN], ids=lambda m: m.slug)
def test_batch_matches_single_runs_in_any_order(case, method):
    row = method(case)
    change = {occlusion.MASK: mask_words, occlusion.MEAN: replace_words}[method]
    source, prefix = case.columns.masks()
    alone = [case.measure_effects(change(source[[i]], prefix[[i]]))[0] for i in range(len(case.columns))]
    np.testing.assert_allclose(row.values, alone, atol=1e-5)
    backwards = case.measure_effects(change(source[::-1], prefix[::-1]))
    np.testing.assert_allclose(row.values, backwards[::-1], atol=1e-5)
    assert not np.allclose(row.values, 0)


@pytest.mark.parametrize("change_words", [mask_words, replace_words], ids=lambda change: change.__name__)
def test_changes_of_both_sides_match_passes_with_all_masks(case, change_words):
    random = np.random.default_rng(0)
    source = random.random((24, case.source_ids.shape[1])) < 0.4
    prefix = random.random((24, case.decoder_ids.shape[1])) < 0.4
    source[:12], source[12:16], source[:, 0] = False, source[12], False
    prefix[:3], prefix[3:6, :-1] = False, False
    change = change_words(source, prefix)
    assert 0 < change.source.any(-1).sum() <= 12
    mean_source, mean_target, _ = case.mean_rows

    def plain(row: int) -> torch.Tensor:
        source, prefix = (torch.from_numpy(side) for side in (change[[row]].source, change[[row]].prefix))
        rows = torch.where((source == REPLACED)[..., None], mean_source, case.source_rows)
        memory = case.encode(rows, source != MASKED)
        rows = torch.where((prefix == REPLACED)[..., None], mean_target, case.target_rows)
        return case.decode(rows, memory, prefix != MASKED)

    with torch.inference_mode():
        expected = torch.cat([plain(row) for row in range(len(change))])
        torch.testing.assert_close(case.run(change), expected, atol=1e-5, rtol=0)


def test_batch_size_changes_nothing(case, monkeypatch):
    whole = occlusion.occlude_by_mask(case).values
    monkeypatch.setattr("attention_atlas.model.analysis.why.case.CPU_BATCH_TOKENS", 20)
    assert len(case.batches(8)) == 4
    np.testing.assert_allclose(occlusion.occlude_by_mask(case).values, whole, atol=1e-5)


def test_metric_without_a_contrast_is_the_log_probability(case):
    plain = case_of(case.model, SOURCE, TARGET, contrast=None)
    with torch.inference_mode():
        expected = case.model(case.source_ids, case.decoder_ids).logits[0, -1].log_softmax(-1)[40]
    assert plain.metric() == pytest.approx(float(expected), abs=1e-5)
    assert Against.NOTHING.value == "nothing"

"""Occlusion: what is taken away is taken away everywhere, in batches as alone, and nothing taken away is 0."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.analysis.why.passes.change import masked, replaced
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.why.attribution import Against, Columns, Question
from tests.conftest import build_tiny_model

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS
SOURCE, TARGET = [4, 20, 31, 45, 20, 2], [1, 30, 41, 52]
COLUMNS = Columns(
    ((0,), (1, 2), (3,), (4,), (5,)),
    ((0,), (1,), (2, 3)),
    ("<2en>", "▁a", "b", "▁c", "▁a", "</s>"),
    ("<s>", "▁x", "▁y", "z"),
)


@pytest.fixture(params=[True, False], ids=["pre-norm", "post-norm"])
def case(request, tokenizer) -> Case:
    model = build_tiny_model(tokenizer, norm_first=request.param)
    return Case(model, Question(3, 40, "▁t", 50, "▁u"), torch.tensor([SOURCE]), torch.tensor([TARGET]), COLUMNS)


def contrast(model, source, target, changes: Interventions = Interventions()) -> float:
    with torch.inference_mode():
        logits = model(torch.tensor([source]), torch.tensor([target]), interventions=changes).logits[0, 3].double()
    return float(logits[40] - logits[50])


def at(length: int, *positions: int) -> np.ndarray:
    found = np.zeros((1, length), bool)
    found[0, list(positions)] = True
    return found


def test_the_metric_is_the_models(case):
    assert case.metric() == pytest.approx(contrast(case.model, SOURCE, TARGET), abs=1e-5)
    # What comes later changes nothing of this row.
    assert case.metric() == pytest.approx(contrast(case.model, SOURCE, [*TARGET, 60, 61]), abs=1e-5)


def test_nothing_taken_away_is_nothing(case):
    for change in (masked, replaced):
        assert case.effects(change(at(6), at(4)))[0] == pytest.approx(0.0, abs=1e-5)


def test_a_masked_source_word_is_every_edge_to_it_cut(case):
    """Against the intervention that cuts single edges, in every layer and head."""
    edges = {
        Edge(kind, query, key) for key in (1, 2) for kind, rows in ((ENCODER, 6), (CROSS, 4)) for query in range(rows)
    }
    cut = contrast(case.model, SOURCE, TARGET, Interventions(cut_edges=frozenset(edges)))
    found = case.effects(masked(at(6, 1, 2), at(4)))[0]
    assert found == pytest.approx(case.metric() - cut, abs=1e-5) and abs(found) > 1e-4


def test_a_masked_prefix_word_is_every_later_edge_to_it_cut(case):
    edges = {Edge(DECODER, query, 1) for query in (2, 3)}
    cut = contrast(case.model, SOURCE, TARGET, Interventions(cut_edges=frozenset(edges)))
    assert case.effects(masked(at(6), at(4, 1)))[0] == pytest.approx(case.metric() - cut, abs=1e-5)


def test_the_mean_embedding_is_a_token_whose_embedding_is_the_mean(case):
    """Against a pass over the id of an unused token, to which the mean embedding was given."""
    unused = 70
    model = copy.deepcopy(case.model)
    with torch.no_grad():
        model.embedding.weight[unused] = case.mean_rows[0] / math.sqrt(model.config.d_model)
    source = [unused if i in (1, 2) else id_ for i, id_ in enumerate(SOURCE)]
    assert case.effects(replaced(at(6, 1, 2), at(4)))[0] == pytest.approx(
        case.metric() - contrast(model, source, TARGET), abs=1e-4
    )
    target = [unused if i == 1 else id_ for i, id_ in enumerate(TARGET)]
    assert case.effects(replaced(at(6), at(4, 1)))[0] == pytest.approx(
        case.metric() - contrast(model, SOURCE, target), abs=1e-4
    )


def test_what_the_row_itself_reads_cannot_be_hidden_by_a_mask(case):
    """Its residual stream would still bring it: the answer is that of the mean embedding."""
    by_mask, by_mean = (case.effects(change(at(6), at(4, 3)))[0] for change in (masked, replaced))
    assert by_mask == by_mean and by_mask != 0


@pytest.mark.parametrize("method", [occlusion.MASK, occlusion.MEAN], ids=lambda m: m.slug)
def test_a_batch_is_its_single_runs_in_any_order(case, method):
    row = method(case)
    change = {occlusion.MASK: masked, occlusion.MEAN: replaced}[method]
    source, prefix = case.columns.masks()
    alone = [case.effects(change(source[[i]], prefix[[i]]))[0] for i in range(len(case.columns))]
    np.testing.assert_allclose(row.values, alone, atol=1e-5)
    backwards = case.effects(change(source[::-1], prefix[::-1]))
    np.testing.assert_allclose(row.values, backwards[::-1], atol=1e-5)
    assert not np.allclose(row.values, 0)


@pytest.mark.parametrize("how", [masked, replaced], ids=lambda how: how.__name__)
def test_what_no_change_reaches_is_shared_and_nothing_is_lost(case, how):
    """Against passes over all rows, one sentence each."""
    random = np.random.default_rng(0)
    source = random.random((24, case.source_ids.shape[1])) < 0.4
    prefix = random.random((24, case.decoder_ids.shape[1])) < 0.4
    source[:12], source[12:16], source[:, 0] = False, source[12], False
    prefix[:3], prefix[3:6, :-1] = False, False
    change = how(source, prefix)
    assert change.at_source.sum() <= 12 and len(change.sources()[0]) < 12 and len(set(change.first_rows)) > 2
    mean_source, mean_target, _ = case.mean_rows

    def plain(row: int) -> torch.Tensor:
        masked_source, masked_prefix, replaced_source, replaced_prefix = map(torch.from_numpy, change[[row]].parts)
        memory = case.encode(torch.where(replaced_source[..., None], mean_source, case.source_rows), ~masked_source)
        rows = torch.where(replaced_prefix[..., None], mean_target, case.target_rows)
        return case.decode(rows, memory, ~masked_prefix)

    with torch.inference_mode():
        expected = torch.cat([plain(row) for row in range(len(change))])
        torch.testing.assert_close(case.run(change), expected, atol=1e-5, rtol=0)


def test_chunks_change_nothing(case, monkeypatch):
    whole = occlusion.by_mask(case).values
    monkeypatch.setattr("attention_atlas.model.analysis.why.case.CHUNK_TOKENS", 20)
    assert len(case.chunks(8)) == 4
    np.testing.assert_allclose(occlusion.by_mask(case).values, whole, atol=1e-5)


def test_without_a_contrast_it_is_the_log_probability(case):
    plain = Case(case.model, Question(3, 40, "▁t"), case.source_ids, case.decoder_ids, COLUMNS)
    with torch.inference_mode():
        expected = case.model(case.source_ids, case.decoder_ids).logits[0, -1].log_softmax(-1)[40]
    assert plain.metric() == pytest.approx(float(expected), abs=1e-5)
    assert Against.NOTHING.value == "nothing"

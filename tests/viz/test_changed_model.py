"""Translations with interventions: whatever runs the model again applies the same interventions, or says why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention_atlas.model.analysis import padding, stations
from attention_atlas.model.analysis.ablation import compare
from attention_atlas.model.analysis.formulas.stages import dissect, join_heads, score_matrix
from attention_atlas.model.trace.interventions import Edge, Interventions, Positions, heads_off
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.panels.panel import TRANSFORMER
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.questions import steps as stepper
from attention_atlas.viz.tours import measures
from attention_atlas.viz.tours.scene import StopScene
from tests.viz.panels.panels import EVERY, contents, settings

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS
CHANGES = Interventions(
    heads_off=frozenset({(CROSS, 1, 2), (ENCODER, 0, 1)}),
    cut_edges=frozenset({Edge(DECODER, 3, 1, 2, 3), Edge(ENCODER, 2, 0)}),
    zeroed_edges=frozenset({Edge(CROSS, 2, 1, 2, 0), Edge(DECODER, 3, 2, 2, 3)}),
    source_positions=Positions(shift=2),
    target_positions=Positions(shift=5),
)


@pytest.fixture(scope="module")
def scene(tiny_translator) -> Scene:
    trace = tiny_translator.translate("Der kleine Hund schläft unter dem Tisch.", interventions=CHANGES)
    plain = tiny_translator.inspect(trace.source_ids, trace.target_ids)
    differences = [np.abs(plain.maps(kind, 0).numpy() - trace.maps(kind).weights).max() for kind in trace.kinds]
    assert min(differences) > 1e-3, "the interventions must change every map"
    return Scene(trace, Selection(DECODER, 2, 3, 3), tiny_translator)


@pytest.fixture(scope="module")
def past(scene) -> Scene:
    """Return the same translation as read from an old file, which describes its interventions only in words."""
    trace = replace(scene.trace, interventions=Interventions(in_words="a head off"))
    return Scene(trace, scene.selection, scene.translator)


def test_the_recorded_pass_equals_the_trace(scene):
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(scene.output.maps(kind, 0), scene.trace.maps(kind).weights, atol=1e-5)


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_recomputed_heads_equal_those_of_the_changed_model(scene, kind):
    layers, heads, queries, _ = scene.trace.maps(kind).weights.shape
    for layer in range(layers):
        for query in range(queries):
            joined = join_heads(scene.translator, scene.output, kind, layer, query=query)
            assert joined.error < 1e-4
            for head in range(heads):
                stages = dissect(scene.output, kind, layer, head, query=query)
                assert stages.error < 1e-5
                if (kind, layer, head) not in CHANGES.heads_off:
                    np.testing.assert_allclose(stages.output, joined.contexts[head], atol=1e-5)
                else:
                    assert not joined.contexts[head].any()
        assert all(score_matrix(scene.output, kind, layer, head).error < 1e-5 for head in range(heads))


def test_recomputed_positions_are_the_changed_ones(scene):
    for side, ids in (("source", scene.trace.source_ids), ("target", scene.trace.decoder_ids)):
        rows = stations.embedding_rows(scene.translator, ids, scene.output, side=side, interventions=CHANGES)
        assert rows.error < 1e-5


def test_a_padded_pass_runs_the_changed_model(scene):
    masks = padding.make_batch_masks(scene.translator, scene.trace)
    for kind in TRANSFORMER_KINDS:
        weights = scene.trace.maps(kind).weights
        padded = padding.run_padded(scene.translator, masks).maps(kind, 0)[..., : weights.shape[-2], :]
        np.testing.assert_allclose(padded[..., : weights.shape[-1]], weights, atol=1e-5)


def test_breaking_a_changed_model_keeps_its_changes(scene):
    content = compare(scene.translator, scene.trace, heads_off(CROSS, 0, (0,)))
    assert content.altered.interventions == CHANGES | heads_off(CROSS, 0, (0,))
    assert max(
        changes.max() for changes in compare(scene.translator, scene.trace, Interventions()).changes.values()
    ) < (1e-5)


def test_checks_of_tours_run_the_changed_model(scene):
    stop = StopScene(scene.trace, made_by=scene.translator)
    assert measures.check(stop, name="trace_is_the_models").value < 1e-5


def test_the_stepper_continues_with_the_changed_model(scene):
    translator, trace = scene.translator, scene.trace
    tree = stepper.start(scene, stepper.Tree.of(trace)).tree
    assert tree.address.interventions == CHANGES and tree.branches[0].log_probabilities == tuple(trace.log_probability)
    forced = stepper.force(translator, tree, {"branch": 1, "step": 0, "token": trace.target_ids[0]}).opened
    assert forced.interventions == CHANGES and forced.target_ids == trace.target_ids
    np.testing.assert_allclose(forced.log_probability, trace.log_probability, atol=1e-4)
    (hypothesis,) = stepper.search_beam(translator, tree, {"width": 1}).page["beam"]["hypotheses"]
    assert hypothesis["total"] == pytest.approx(float(trace.log_probability.sum()), abs=1e-3)
    lens = stepper.branch_details(translator, tree, {"branch": 1}).page["details"]["lenses"]["logit"]
    np.testing.assert_allclose(lens["chosen"][-1], np.exp(trace.log_probability), atol=1e-4)


def test_the_plain_model_starts_another_tree(scene):
    tree = stepper.Tree.of(scene.trace)
    assert tree.holds(scene.trace) and not tree.holds(replace(scene.trace, interventions=Interventions()))


def test_panels_refuse_to_rerun_interventions_known_only_in_words(past):
    refused = []
    for panel in EVERY:
        if not (panel.of_any_network or TRANSFORMER.is_met(past)) or panel.unmet_needs(past):
            continue
        try:
            contents(panel, past, *next(settings(panel, past)))
        except Refusal as error:
            assert "a head off" in str(error), panel.name
            refused.append(panel.name)
    assert {"attention", "logits", "residual", "masks", "break", "why-tokens", "verify", "heads-links"} <= set(refused)
    assert not {"heads-search", "surprise", "position-table", "kernels"} & set(refused)
    with pytest.raises(Refusal, match="a head off"):
        stepper.start(past, stepper.Tree.of(past.trace))

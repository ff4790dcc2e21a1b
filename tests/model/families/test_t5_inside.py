"""Analyses of a pass work on T5: places, edits over the cache, stages of attention, why."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis import head_loop, stations, why
from attention_atlas.model.analysis.circuits.graph import build_graph
from attention_atlas.model.analysis.circuits.passes import GatedPass, compute_logits
from attention_atlas.model.analysis.formulas.stages import dissect, join_heads, projections, score_matrix
from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.trace.edits import Ablate, Scale
from attention_atlas.model.trace.interventions import Interventions, positions_off, positions_shifted
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES
from tests.model.families import theirs
from tests.model.families.test_parity import close, inputs


@pytest.fixture(scope="module", params=["T5", "UMT5"])
def any_kind(request, tmp_path_factory) -> Translator:
    folder = tmp_path_factory.mktemp("kinds") / request.param
    gated = {"feed_forward_proj": "gated-gelu", "own_head": True} if request.param == "UMT5" else {}
    theirs.t5(folder, kind=request.param, **gated).save_pretrained(folder)
    return Translator.load(folder, "cpu")


BIASES = ("encoder.*.self.bias", "decoder.*.self.bias")
CHANGES = {
    "no bias": positions_off(),
    "one head's bias away": Interventions(edits={"*.self.bias": Ablate(heads=(1,))}),
    "twice the bias": Interventions(edits={"decoder.1.self.bias": Scale(2.0)}),
    "less through the gate": Interventions(edits={"*.ffn.gate": Scale(0.5)}),
    "moved": positions_shifted(9),
}


@pytest.mark.parametrize("name", CHANGES)
def test_edits_apply_to_steps_over_the_cache(any_kind, name):
    model, changes = any_kind.model, CHANGES[name]
    if "gate" in name and not model.config.gated:
        return
    source, target = inputs(model.config, 0)
    with torch.inference_mode():
        whole = model(source, target, interventions=changes).logits
        plain = model(source, target).logits
        assert torch.equal(whole, plain) is (name == "moved")
        memory = model.encode(source, interventions=changes)
        for record in (False, True):
            decoder = StepDecoder(model, memory, target[:, :1], interventions=changes, record=record)
            assert (decoder.step is None) is record
            for step in range(1, target.shape[1]):
                close(decoder.logits, whole[:, step - 1], 1e-5)
                decoder.append(target[:, step])


def test_switching_positions_off_removes_every_bias(any_kind):
    source, target = inputs(any_kind.config, 0)
    ablated = Interventions(edits={name: Ablate() for name in BIASES})
    with torch.inference_mode():
        off = any_kind.model(source, target, interventions=positions_off()).logits
        assert torch.equal(any_kind.model(source, target, interventions=ablated).logits, off)


def test_scores_are_the_sum_of_content_and_bias(any_kind):
    run, model = any_kind.run([SENTENCES[0]], names=["*.self.*", "*.ffn.*", "*.cross.scores"]), any_kind.model
    for at in ("encoder.1.self", "decoder.2.self"):
        content = run[f"{at}.q"] @ run[f"{at}.k"].transpose(-1, -2)
        torch.testing.assert_close(run[f"{at}.scores"], content + run[f"{at}.bias"])
    assert "decoder.0.cross.bias" not in {place.name for place in any_kind.places()}
    if model.config.gated:
        active = model.decoder.layers[0].feed_forward.activation(run["decoder.0.ffn.pre"])
        torch.testing.assert_close(run["decoder.0.ffn.post"], active * run["decoder.0.ffn.gate"])
    trace = any_kind.translate(SENTENCES[0])
    output = any_kind.inspect(trace)
    for kind in trace.kinds:
        part_of_head = dissect(output, kind, 1, 2, query=1)
        assert part_of_head.error < 1e-5 and score_matrix(output, kind, 1, 2).error < 1e-5
        assert part_of_head.bias.any() == (kind is not AttentionKind.CROSS)
        np.testing.assert_allclose(part_of_head.scaled, part_of_head.dots + part_of_head.bias)
        assert head_loop.compare_loop(head_loop.find_attention_input(any_kind, output, kind, 1)).relative_error < 1e-5
        assert max(part.error for part in projections(any_kind, output, kind, 1)) < 1e-4
        assert join_heads(any_kind, output, kind, 1, query=1).error < 1e-4
    assert stations.layer_norm(output.layers(Side.DECODER)[1].sublayers[0], 1).error < 1e-5


def test_the_exact_split_and_every_method_work(any_kind):
    trace = any_kind.translate(SENTENCES[0])
    split = why.split_logit(any_kind, trace, step=2)
    assert split.sum.holds and split.position == 0 and not split.norm_biases.any()
    answer = why.attribute(any_kind, trace, step=2)
    assert len(answer.rows) == len(METHODS)
    for row in answer.rows:
        assert np.isfinite(row.values[:3]).all() and np.nan_to_num(row.values).any()
        assert row.sum is None or row.sum.holds
    assert why.measure_heads(any_kind, trace, step=2)


def test_a_circuits_pass_agrees_with_the_models(any_kind):
    source, target = inputs(any_kind.config, 0)
    model = any_kind.model
    with torch.inference_mode():
        expected = model(source, target)
        hidden = GatedPass(model, build_graph(any_kind.config)).run(source, target)
        close(hidden, expected.hidden, 1e-5)
        tokens = torch.tensor([[5, 6], [7, 8], [9, 10]])
        close(compute_logits(model, hidden[:, -1], tokens), expected.logits[:, -1].gather(1, tokens), 1e-5)

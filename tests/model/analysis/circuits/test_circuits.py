"""Circuits against the model's own passes, against differences, and against one that is planted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model.analysis import circuits
from model.analysis.circuits.graph import Edge, graph
from model.analysis.circuits.pairs import Pair, batch
from model.analysis.circuits.passing import Passing
from model.analysis.circuits.scores import Contrast
from model.config import ModelConfig
from model.trace.kinds import Side
from model.trace.language import Refusal
from tests.conftest import build_tiny_model

PAIRS = [
    Pair((4, 20, 31, 45, 2), (4, 20, 52, 45, 2), (1, 30, 41), 40, 50),
    Pair((4, 61, 33, 2), (4, 61, 70, 2), (1, 22), 44, 57),
]


@pytest.fixture(scope="module")
def contrast(tiny_translator) -> Contrast:
    config = tiny_translator.config
    return Contrast(tiny_translator, graph(config), batch(PAIRS, config.pad_id, torch.device("cpu")))


def test_the_shipped_shape_has_as_many_edges_as_one_counts_on_paper():
    heads = lambda readers, senders: readers * senders  # noqa: E731
    edges = 0
    for layer in range(4):
        edges += heads(24, 1 + 9 * layer) + 1 + 9 * layer + 8
    for layer in range(4):
        before = 1 + 17 * layer
        edges += heads(24, before) + heads(8, before + 8) + heads(16, 37) + before + 16
    found = graph(ModelConfig(8000, num_encoder_layers=4, num_decoder_layers=4, num_heads=8))
    assert len(found) == len(set(found.edges)) == edges + 69 == 7737


def test_with_every_edge_it_is_the_models_pass_and_with_none_the_changed_one(tiny_translator, contrast):
    model, pairs = tiny_translator.model, contrast.batch
    with torch.inference_mode():
        for source, leads in ((pairs.source, contrast.lead), (pairs.other, contrast.changed_lead)):
            logits = pairs.at_last(model(source, pairs.target).logits).double()
            expected = logits.gather(1, pairs.tokens) @ torch.tensor([1.0, -1.0], dtype=torch.float64)
            torch.testing.assert_close(leads, expected, atol=1e-4, rtol=0)
    size = len(contrast.edges)
    torch.testing.assert_close(contrast.kept(np.ones(size)), contrast.lead, atol=1e-5, rtol=0)
    torch.testing.assert_close(contrast.kept(np.zeros(size)), contrast.changed_lead, atol=1e-5, rtol=0)
    assert (contrast.lead - contrast.changed_lead).abs().min() > 1e-3  # else this proves nothing


def test_what_is_written_adds_up_to_the_stream(tiny_translator, contrast):
    run = tiny_translator.model(contrast.batch.source, contrast.batch.target, record=True)
    for side in Side:
        total = torch.cat(contrast.own.parts[side]).sum(0) + contrast.own.constant[side]
        torch.testing.assert_close(total, run.layers(side)[-1].after, atol=1e-4, rtol=0)


@pytest.mark.parametrize("sender", ["encoder.0.self.2", "decoder.1.cross.3"])
def test_cutting_all_edges_of_a_head_is_replacing_what_it_says(tiny_translator, contrast, sender):
    """By the library's own edit of the named place: another mechanism."""
    side, layer, part, head = sender.split(".")
    gates = np.array([edge.sender != sender for edge in contrast.edges.edges])
    found, place = contrast.kept(gates), f"{side}.{layer}.{part}.z"
    for row, pair in enumerate(PAIRS):
        said = []
        for source in (pair.other_ids, pair.source_ids):
            with tiny_translator.edit({place: lambda x, at, said=said: said.append(x) or x}) as watched:
                watched.inspect(list(source), [*pair.target_ids[1:], 9])

        def swapped(x, at, said=said):
            return torch.cat([x[:, : int(head)], said[0][:, [int(head)]], x[:, int(head) + 1 :]], dim=1)

        with tiny_translator.edit({place: swapped}) as changed:
            logits = changed.inspect(list(pair.source_ids), [*pair.target_ids[1:], 9]).logits[0, -1]
        assert float(found[row]) == pytest.approx(float(logits[pair.token] - logits[pair.instead]), abs=1e-4)


def test_scores_are_the_slopes_of_small_cuts(contrast):
    """EAP is the slope by an edge's gate: against differences in float64-like steps, on edges of every kind."""
    found = contrast.scores(circuits.scores.Method.EAP, 1)
    names = contrast.edges.number
    for edge in (
        Edge("encoder.embed", "encoder.0.self.q.1"),
        Edge("encoder.0.ffn", "encoder.1.self.v.2"),
        Edge("encoder.1.self.3", "decoder.2.cross.k.0"),
        Edge("encoder.embed", "decoder.0.cross.v.1"),
        Edge("decoder.0.cross.2", "decoder.1.ffn"),
        Edge("decoder.2.ffn", "logits"),
    ):
        ends, step = [], 0.02
        for sign in (1, -1):
            gates = np.ones(len(names))
            gates[names[edge]] -= sign * step
            ends.append(float(contrast.kept(gates).sum()))
        assert found[names[edge]] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=0.05, abs=2e-4), edge


def test_the_path_of_one_step_is_eap_at_the_sentence_itself(tiny_translator):
    one = circuits.find(tiny_translator, PAIRS, "eap")
    same = circuits.find(tiny_translator, PAIRS, "eap-ig", steps=1)
    np.testing.assert_allclose(one.scores, same.scores, atol=1e-5, rtol=1e-4)
    assert np.abs(circuits.find(tiny_translator, PAIRS).scores - one.scores).max() > 1e-4


def test_exact_scores_are_cuts_one_by_one(tokenizer, tiny_translator):
    found = circuits.find(tiny_translator, PAIRS[:1], "exact")
    contrast = Contrast(
        tiny_translator, found.graph, batch(PAIRS[:1], tiny_translator.config.pad_id, torch.device("cpu"))
    )
    gates = np.ones(len(found.graph))
    gates[17] = 0
    assert found.scores[17] == pytest.approx(float(contrast.kept(gates)[0] - contrast.lead[0]), abs=1e-6)


def test_only_what_lies_on_a_path_is_kept(tiny_translator):
    edges = graph(tiny_translator.config)
    on = {
        Edge("encoder.embed", "encoder.0.self.v.1"),
        Edge("encoder.0.self.1", "decoder.1.cross.v.2"),
        Edge("decoder.1.cross.2", "logits"),
    }
    off = {Edge("encoder.1.ffn", "decoder.0.cross.k.3"), Edge("decoder.embed", "decoder.2.ffn")}
    chosen = np.array([edge in on | off for edge in edges.edges])
    assert {edges.edges[i] for i in np.flatnonzero(edges.on_paths(chosen))} == on


def test_as_many_edges_as_are_asked_for_lie_on_paths(tiny_translator):
    found = circuits.find(tiny_translator, PAIRS, "eap")
    for count in (1, 7, 40):
        assert len(found.edges(count)) >= count > int(found.best(found.tried(count) - 1).sum())
    assert [abs(score) for _, score in found.edges(40)] == sorted((abs(s) for _, s in found.edges(40)), reverse=True)


def test_a_planted_circuit_is_found(tokenizer, tiny_translator):
    """Only one path is left open by hand: every other head and feed-forward writes nothing. The edges that it takes
    score above all others (ROC), and keep the whole decision."""
    translator = planted(tokenizer, tiny_translator)
    found = circuits.find(translator, PAIRS, "eap-ig")
    true = {
        *(Edge("encoder.embed", f"encoder.0.self.{letter}.1") for letter in "qkv"),
        *(
            Edge(sender, "decoder.1.cross." + letter)
            for sender in ("encoder.0.self.1", "encoder.embed")
            for letter in ("k.2", "v.2")
        ),
        Edge("decoder.1.cross.2", "logits"),
    }
    labels, values = np.array([edge in true for edge in found.graph.edges]), np.abs(found.scores)
    above = (values[labels][:, None] > values[~labels]).mean() + 0.5 * (
        values[labels][:, None] == values[~labels]
    ).mean()
    assert above >= 0.95
    result = circuits.tested(translator, found, PAIRS, shares=(0.01, 1.0))
    assert result.faithfulness == pytest.approx([1.0, 1.0], abs=1e-3) and result.random[0] < 0.5


def planted(tokenizer, translator):
    model = build_tiny_model(tokenizer)
    with torch.no_grad():
        for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
            for layer in stack.layers:
                layer.feed_forward.contract.weight.zero_()
                for name, attention in (("self", layer.self_attention), ("cross", layer.cross_attention)):
                    if attention is None:
                        continue
                    spoken = torch.zeros(4, 8)
                    if (side, layer.index, name) in (("encoder", 0, "self"), ("decoder", 1, "cross")):
                        spoken[1 if name == "self" else 2] = 3.0
                    attention.output.weight.mul_(spoken.flatten())
    import copy

    other = copy.copy(translator)
    other.model = model
    return other


def test_pairs_that_cannot_be_compared_are_refused_in_words(tiny_translator, tokenizer):
    with pytest.raises(Refusal, match="as many in both"):
        circuits.pair(tiny_translator, "Hund", "Der kleine Hund schläft unter dem Tisch.", ("a", "b"))
    with pytest.raises(Refusal, match="single ones"):
        circuits.pair(tiny_translator, "Hund", "Hund", ("wheelbarrow of apples", "b"))
    with pytest.raises(ValueError, match="no pairs"):
        circuits.find(tiny_translator, [])
    with pytest.raises(Refusal, match="no sum of its parts"):
        graph(ModelConfig(100, norm_first=False))


def test_a_pass_with_gates_takes_any_rows(tiny_translator, contrast):
    """Rows in place of embeddings, as the way from one sentence to the other has them."""
    model, pairs = tiny_translator.model, contrast.batch
    rows = model.token_rows(pairs.other), model.token_rows(pairs.target, decoder=True)
    with torch.no_grad():
        hidden = Passing(model, contrast.edges).run(pairs.source, pairs.target, rows)
    torch.testing.assert_close(contrast.leads(hidden), contrast.changed_lead, atol=1e-6, rtol=0)

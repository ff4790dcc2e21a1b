"""Circuits against the model's own passes, against differences, and against one that is planted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis import circuits
from attention_atlas.model.analysis.circuits.contrast import Contrast, Method
from attention_atlas.model.analysis.circuits.graph import Edge, graph
from attention_atlas.model.analysis.circuits.pairs import Pair, batch, comparable, filled
from attention_atlas.model.analysis.circuits.passing import Passing
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.kinds import Side, SubLayerName
from attention_atlas.model.trace.language import Refusal
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


def test_edges_into_a_receiver_add_up_to_the_difference_of_what_it_reads(tiny_translator, contrast):
    """Of both sentences, in the passes that the model records."""
    runs = [
        tiny_translator.model(ids, contrast.batch.target, record=True)
        for ids in (contrast.batch.source, contrast.batch.other)
    ]
    seen = set()
    for part, readers in contrast.edges.readers.items():
        change = (
            contrast.own.of(readers.side, readers.senders) - contrast.other.of(readers.side, readers.senders)
        ).sum(0)
        own, other = (_read_by(part, run) for run in runs)
        torch.testing.assert_close(change, own - other, atol=1e-4, rtol=0)
        seen.add(part.split(".")[-1])
    assert seen == {"q", "k", "v", "ffn", "logits"}


def _read_by(part: str, run) -> torch.Tensor:
    """The stream that a part of the pass reads."""
    if part == "logits":
        return run.layers(Side.DECODER)[-1].after
    side, layer, *rest = part.split(".")
    if rest[0] == "cross" and rest[1] in "kv":
        return run.layers(Side.ENCODER)[-1].after
    record = run.layers(Side(side))[int(layer)]
    if rest[0] == "self":
        return record.before
    before = SubLayerName.CROSS_ATTENTION if [side, *rest] == ["decoder", "ffn"] else SubLayerName.SELF_ATTENTION
    return record.sublayer(before).after


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
    found = contrast.scores(Method.EAP, 1)
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
    assert above(values[labels], values[~labels]) >= 0.95
    result = found.faithfulness(PAIRS, shares=(0.01, 1.0))
    assert result.best.faithfulness == pytest.approx([1.0, 1.0], abs=1e-3) and result.random.faithfulness[0] < 0.5


def above(these: np.ndarray, others: np.ndarray) -> float:
    """The area under the ROC curve: how often one of these is larger than one of the others."""
    return (these[:, None] > others).mean() + 0.5 * (these[:, None] == others).mean()


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
    with pytest.raises(Refusal, match="single ones"):
        circuits.pair(tiny_translator, "Hund", "Tisch", ("wheelbarrow of apples", "b"))
    with pytest.raises(Refusal, match="the same: change a word"):
        circuits.pair(tiny_translator, "Hund", "Hund", ("a", "b"))
    for words in (("a", "a"), "ab", ("a",)):
        with pytest.raises(ValueError, match="words are"):
            circuits.pair(tiny_translator, "Hund", "Tisch", words)
    with pytest.raises(ValueError, match="fillings must be a list"):
        circuits.pairs(tiny_translator, "Hund", "Tisch", {"Hund": "Boot"}, ("a", "b"))
    with pytest.raises(ValueError, match="number of steps must be at least 1"):
        circuits.find(tiny_translator, UNEQUAL, steps=0)
    with pytest.raises(ValueError, match="its edits would be missing"):
        circuits.find(tiny_translator.edit({"encoder.final": Scale(0.5)}), UNEQUAL)
    with pytest.raises(ValueError, match="no pairs"):
        circuits.find(tiny_translator, [])
    with pytest.raises(Refusal, match="not a sum of its parts"):
        graph(ModelConfig(100, norm_first=False))


UNEQUAL = [
    Pair((4, 20, 31, 45, 2), (4, 20, 2), (1, 30, 41), 40, 50),
    Pair((4, 61, 2), (4, 61, 70, 33, 2), (1, 22), 44, 57),  # padded, both batches are of one shape
]


def test_of_unequal_lengths_what_the_decoder_writes_is_compared(tiny_translator):
    """With all of it from the sentence it is the model's pass, with none the changed one's; on the way between them the
    slopes of all edges add up to the difference; what the encoder writes has no counterpart."""
    found = circuits.find(tiny_translator, UNEQUAL, "eap-ig", steps=200)
    contrast = Contrast(
        tiny_translator, found.graph, batch(UNEQUAL, tiny_translator.config.pad_id, torch.device("cpu"))
    )
    of_decoder = np.array([edge.sender.startswith("decoder.") for edge in found.graph.edges])
    assert (found.defined == of_decoder).all() and not found.scores[~of_decoder].any()
    with torch.inference_mode():
        for one, lead in zip(UNEQUAL, contrast.changed_lead):
            logits = tiny_translator.model(torch.tensor([one.other_ids]), torch.tensor([one.target_ids])).logits[0, -1]
            assert float(lead) == pytest.approx(float(logits[one.token] - logits[one.instead]), abs=1e-4)
    torch.testing.assert_close(contrast.kept(np.ones(len(of_decoder))), contrast.lead, atol=1e-5, rtol=0)
    torch.testing.assert_close(contrast.kept(~of_decoder), contrast.changed_lead, atol=1e-5, rtol=0)
    assert found.scores.sum() == pytest.approx(found.changed - found.metric, rel=0.02)
    curves = found.faithfulness(UNEQUAL, shares=(0.1, 1.0))
    assert curves.best.faithfulness[1] == pytest.approx(1.0, abs=1e-4) and curves.best.edges[1] <= of_decoder.sum()
    edge, _ = found.edges(1)[0]
    assert np.isfinite(found.measured(edge.sender))
    with pytest.raises(Refusal, match="differ in length"):
        found.measured("encoder.embed")


def test_a_template_has_pairs_of_one_kind_and_none_twice(tiny_translator, monkeypatch):
    texts = [("Hund", "Tisch"), ("Hund", "Tisch"), ("Hund", "Hund"), (" ", "Hund"), ("Hund", "Der kleine Tisch")]
    (first, *_), second = (tiny_translator.generate([tiny_translator.encode("Hund")], None)[0], 9)
    aligned = len(tiny_translator.encode("Hund")) == len(tiny_translator.encode("Tisch"))
    found = comparable(tiny_translator, texts, (first, second), None)
    assert [one.sentences for one in found] == [texts[0]] if aligned else [texts[0], texts[4]]


def test_of_many_fillings_some_are_drawn_and_the_same_for_both_sentences():
    words = {f"w{n}": tuple(f"o{n}x{k}" for k in range(20)) for n in range(30)}  # more than a number counts
    sentence = " ".join(words)
    found, others = filled(sentence, words), filled(f"{sentence} end", words)
    assert len({*found}) == len(found) == 64 and found[0] == sentence
    assert others == [f"{text} end" for text in found]
    assert filled("w0 w1", {"w0": ("a",), "w1": ("b",)}) == ["w0 w1", "w0 b", "a w1", "a b"]


def test_a_pass_with_gates_takes_any_rows(tiny_translator, contrast):
    """Rows in place of embeddings, as the way from one sentence to the other has them."""
    model, pairs = tiny_translator.model, contrast.batch
    rows = model.token_rows(pairs.other), model.token_rows(pairs.target, decoder=True)
    with torch.no_grad():
        hidden = Passing(model, contrast.edges).run(pairs.source, pairs.target, rows)
    torch.testing.assert_close(contrast.leads(hidden), contrast.changed_lead, atol=1e-6, rtol=0)

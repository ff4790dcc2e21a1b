"""Tests of circuits against the model's own passes, finite differences and a planted circuit."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis import circuits
from attention_atlas.model.analysis.circuits.graph import Edge, build_graph
from attention_atlas.model.analysis.circuits.pairs import Pair, fill_template, make_batch, pair_sentences
from attention_atlas.model.analysis.circuits.passes import GatedPass, PairRuns, ScoringMethod
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.kinds import Side, SubLayerName
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator
from tests.conftest import build_tiny_model, make_translator

PAIRS = [
    Pair((4, 20, 31, 45, 2), (4, 20, 52, 45, 2), (1, 30, 41), 40, 50),
    Pair((4, 61, 33, 2), (4, 61, 70, 2), (1, 22), 44, 57),
]


def runs_of(translator: Translator, pairs: list[Pair]) -> PairRuns:
    config = translator.config
    return PairRuns(translator, build_graph(config), make_batch(pairs, config.pad_id, torch.device("cpu")))


@pytest.fixture(scope="module")
def runs(tiny_translator) -> PairRuns:
    return runs_of(tiny_translator, PAIRS)


def test_number_of_edges_of_the_shipped_shape():
    edges = 0
    for layer in range(4):
        edges += 24 * (1 + 9 * layer) + 1 + 9 * layer + 8
    for layer in range(4):
        before = 1 + 17 * layer
        edges += 24 * before + 8 * (before + 8) + 16 * 37 + before + 16
    graph = build_graph(ModelConfig(8000, num_encoder_layers=4, num_decoder_layers=4, num_heads=8))
    assert len(graph) == len(set(graph.edges)) == edges + 69 == 7737


def test_all_edges_give_the_models_leads_and_no_edge_the_changed_ones(tiny_translator, runs):
    model, pairs = tiny_translator.model, runs.batch
    with torch.inference_mode():
        for source, leads in ((pairs.source, runs.lead), (pairs.changed, runs.changed_lead)):
            logits = pairs.last_rows(model(source, pairs.target).logits).double()
            expected = logits.gather(1, pairs.tokens) @ torch.tensor([1.0, -1.0], dtype=torch.float64)
            torch.testing.assert_close(leads, expected, atol=1e-4, rtol=0)
    size = len(runs.graph)
    torch.testing.assert_close(runs.leads_with(np.ones(size)), runs.lead, atol=1e-5, rtol=0)
    torch.testing.assert_close(runs.leads_with(np.zeros(size)), runs.changed_lead, atol=1e-5, rtol=0)
    assert (runs.lead - runs.changed_lead).abs().min() > 1e-3  # otherwise the test is empty


def test_sender_outputs_sum_to_the_residual_stream(tiny_translator, runs):
    run = tiny_translator.model(runs.batch.source, runs.batch.target, record=True)
    for side in Side:
        total = torch.cat(runs.plain.parts[side]).sum(0) + runs.plain.constant[side]
        torch.testing.assert_close(total, run.layers(side)[-1].after, atol=1e-4, rtol=0)


def test_differences_of_edges_sum_to_the_difference_of_the_receivers_input(tiny_translator, runs):
    outputs = [
        tiny_translator.model(ids, runs.batch.target, record=True) for ids in (runs.batch.source, runs.batch.changed)
    ]
    seen = set()
    for part, readers in runs.graph.receivers.items():
        sent = [torch.cat(run.parts[readers.side])[: readers.num_senders].sum(0) for run in (runs.plain, runs.changed)]
        own, other = (_read_by(part, output) for output in outputs)
        torch.testing.assert_close(sent[0] - sent[1], own - other, atol=1e-4, rtol=0)
        seen.add(part.split(".")[-1])
    assert seen == {"q", "k", "v", "ffn", "logits"}


def _read_by(part: str, run) -> torch.Tensor:
    """Return the recorded stream that a part of the pass reads."""
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
def test_cutting_all_edges_of_a_head_replaces_its_output(tiny_translator, runs, sender):
    """Compare with an edit of the place of the head's output, a different mechanism."""
    side, layer, part, head = sender.split(".")
    gates = np.array([edge.sender != sender for edge in runs.graph.edges])
    leads, place = runs.leads_with(gates), f"{side}.{layer}.{part}.z"
    for row, pair in enumerate(PAIRS):
        outputs = []
        for source in (pair.changed_ids, pair.source_ids):
            with tiny_translator.edit({place: lambda x, at, outputs=outputs: outputs.append(x) or x}) as watched:
                watched.inspect(list(source), [*pair.target_ids[1:], 9])

        def swapped(x, at, outputs=outputs):
            return torch.cat([x[:, : int(head)], outputs[0][:, [int(head)]], x[:, int(head) + 1 :]], dim=1)

        with tiny_translator.edit({place: swapped}) as changed:
            logits = changed.inspect(list(pair.source_ids), [*pair.target_ids[1:], 9]).logits[0, -1]
        assert float(leads[row]) == pytest.approx(float(logits[pair.token_id] - logits[pair.contrast_id]), abs=1e-4)


def test_eap_scores_are_slopes_of_the_gates(runs):
    """Compare with central differences, on edges of every kind."""
    scores = runs.score_edges(ScoringMethod.EAP, 1)
    numbers = runs.graph.edge_numbers
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
            gates = np.ones(len(numbers))
            gates[numbers[edge]] -= sign * step
            ends.append(float(runs.leads_with(gates).sum()))
        assert scores[numbers[edge]] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=0.05, abs=2e-4), edge


def test_eap_ig_with_one_step_equals_eap(tiny_translator):
    eap = circuits.find_circuit(tiny_translator, PAIRS, "eap")
    one_step = circuits.find_circuit(tiny_translator, PAIRS, "eap-ig", steps=1)
    np.testing.assert_allclose(eap.scores, one_step.scores, atol=1e-5, rtol=1e-4)
    assert np.abs(circuits.find_circuit(tiny_translator, PAIRS).scores - eap.scores).max() > 1e-4


def test_exact_scores_are_the_effects_of_cutting_each_edge(tokenizer):
    model = build_tiny_model(tokenizer, num_encoder_layers=1, num_decoder_layers=1, num_heads=2)
    translator = make_translator(model, tokenizer)
    circuit = circuits.find_circuit(translator, PAIRS[:1], "exact")
    runs = runs_of(translator, PAIRS[:1])
    for score, gates in zip(circuit.scores, 1 - np.eye(len(circuit.graph)), strict=True):
        assert score == pytest.approx(float(runs.leads_with(gates)[0] - runs.lead[0]), abs=1e-6)


def test_keep_paths_drops_edges_without_a_path_to_the_logits(tiny_translator):
    edges = build_graph(tiny_translator.config)
    on = {
        Edge("encoder.embed", "encoder.0.self.v.1"),
        Edge("encoder.0.self.1", "decoder.1.cross.v.2"),
        Edge("decoder.1.cross.2", "logits"),
    }
    off = {Edge("encoder.1.ffn", "decoder.0.cross.k.3"), Edge("decoder.embed", "decoder.2.ffn")}
    mask = np.array([edge in on | off for edge in edges.edges])
    assert {edges.edges[i] for i in np.flatnonzero(edges.keep_paths(mask))} == on


def test_top_edges_returns_at_least_count_edges_sorted_by_score(tiny_translator):
    circuit = circuits.find_circuit(tiny_translator, PAIRS, "eap")
    for count in (1, 7, 40):
        fewer = circuit.select_edges(circuit.candidates_for(count) - 1)
        assert len(circuit.top_edges(count)) >= count > int(fewer.sum())
    sizes = [abs(score) for _, score in circuit.top_edges(40)]
    assert sizes == sorted(sizes, reverse=True)


def test_find_circuit_recovers_a_planted_circuit(tokenizer, tiny_translator):
    """All heads and feed-forwards but those of one path write zeros: its edges score above all others (ROC), and keep
    the whole decision."""
    translator = planted(tokenizer, tiny_translator)
    circuit = circuits.find_circuit(translator, PAIRS, "eap-ig")
    true = {
        *(Edge("encoder.embed", f"encoder.0.self.{letter}.1") for letter in "qkv"),
        *(Edge(f"encoder.{part}", f"decoder.1.cross.{letter}.2") for part in ("0.self.1", "embed") for letter in "kv"),
        Edge("decoder.1.cross.2", "logits"),
    }
    labels, values = np.array([edge in true for edge in circuit.graph.edges]), np.abs(circuit.scores)
    assert above(values[labels], values[~labels]) >= 0.95
    result = circuit.measure_faithfulness(PAIRS, shares=(0.01, 1.0))
    assert result.best.faithfulness == pytest.approx([1.0, 1.0], abs=1e-3) and result.random.faithfulness[0] < 0.5


def above(these: np.ndarray, others: np.ndarray) -> float:
    """Return the area under the ROC curve: the probability that one of `these` is larger than one of `others`."""
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
    other = copy.copy(translator)
    other.model = model
    return other


UNEQUAL = [
    Pair((4, 20, 31, 45, 2), (4, 20, 2), (1, 30, 41), 40, 50),
    Pair((4, 61, 2), (4, 61, 70, 33, 2), (1, 22), 44, 57),  # of other lengths than the first pair: padded
]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: circuits.make_pair(t, "Hund", "Tisch", ("wheelbarrow of apples", "b")), Refusal, "single ones"),
        (lambda t: circuits.make_pair(t, "Hund", "Hund", ("a", "b")), Refusal, "the same: change a word"),
        (lambda t: circuits.make_pair(t, "Hund", "Tisch", ("a", "a")), ValueError, "words "),
        (lambda t: circuits.make_pair(t, "Hund", "Tisch", "ab"), ValueError, "words "),
        (lambda t: circuits.make_pair(t, "Hund", "Tisch", ("a",)), ValueError, "words "),
        (
            lambda t: circuits.make_pairs(t, "Hund", "Tisch", {"Hund": "x"}, ("a", "b")),
            ValueError,
            "fillings must be a list",
        ),
        (lambda t: circuits.find_circuit(t, UNEQUAL, steps=0), ValueError, "number of steps must be at least 1"),
        (
            lambda t: circuits.find_circuit(t.edit({"logits": Scale(2.0)}), UNEQUAL),
            ValueError,
            "its edits would be missing",
        ),
        (lambda t: circuits.find_circuit(t, []), ValueError, "no pairs"),
        (lambda t: build_graph(ModelConfig(100, norm_first=False)), Refusal, "not a sum of its parts"),
    ],
)
def test_unusable_pairs_and_models_raise(tiny_translator, call, error, words):
    with pytest.raises(error, match=words):
        call(tiny_translator)


def test_pairs_of_unequal_length_compare_the_decoders_senders(tokenizer):
    """All decoder edges give the sentence's lead, none the changed sentence's, and EAP-IG scores sum to the
    difference; encoder edges cannot be cut."""
    translator = make_translator(build_tiny_model(tokenizer, num_encoder_layers=1, num_decoder_layers=2), tokenizer)
    circuit = circuits.find_circuit(translator, UNEQUAL, "eap-ig", steps=200)
    runs = runs_of(translator, UNEQUAL)
    of_decoder = np.array([edge.sender.startswith("decoder.") for edge in circuit.graph.edges])
    assert (circuit.cuttable == of_decoder).all() and not circuit.scores[~of_decoder].any()
    with torch.inference_mode():
        for pair, lead in zip(UNEQUAL, runs.changed_lead):
            changed = torch.tensor([pair.changed_ids])
            logits = translator.model(changed, torch.tensor([pair.target_ids])).logits[0, -1]
            assert float(lead) == pytest.approx(float(logits[pair.token_id] - logits[pair.contrast_id]), abs=1e-4)
    torch.testing.assert_close(runs.leads_with(np.ones(len(of_decoder))), runs.lead, atol=1e-5, rtol=0)
    torch.testing.assert_close(runs.leads_with(~of_decoder), runs.changed_lead, atol=1e-5, rtol=0)
    assert circuit.scores.sum() == pytest.approx(circuit.changed - circuit.metric, rel=0.02)
    curves = circuit.measure_faithfulness(UNEQUAL, shares=(0.1, 1.0))
    assert curves.best.faithfulness[1] == pytest.approx(1.0, abs=1e-4) and curves.best.edges[1] <= of_decoder.sum()
    edge, _ = circuit.top_edges(1)[0]
    assert np.isfinite(circuit.path_effect(edge.sender))
    with pytest.raises(Refusal, match="differ in length"):
        circuit.path_effect("encoder.embed")


def test_pair_sentences_drops_duplicates_and_mixed_alignment(tiny_translator):
    texts = [("Hund", "Tisch"), ("Hund", "Tisch"), ("Hund", "Hund"), (" ", "Hund"), ("Hund", "Der kleine Tisch")]
    (first, *_), second = (tiny_translator.generate([tiny_translator.encode("Hund")], None)[0], 9)
    aligned = len(tiny_translator.encode("Hund")) == len(tiny_translator.encode("Tisch"))
    pairs = pair_sentences(tiny_translator, texts, (first, second), None)
    assert [pair.sentences for pair in pairs] == [texts[0]] if aligned else [texts[0], texts[4]]


def test_fill_template_draws_the_same_fillings_for_every_sentence():
    words = {f"w{n}": tuple(f"o{n}x{k}" for k in range(20)) for n in range(30)}  # far too many combinations to list
    sentence = " ".join(words)
    sentences, longer = fill_template(sentence, words), fill_template(f"{sentence} end", words)
    assert len({*sentences}) == len(sentences) == 64 and sentences[0] == sentence
    assert longer == [f"{text} end" for text in sentences]
    assert fill_template("w0 w1", {"w0": ("a",), "w1": ("b",)}) == ["w0 w1", "w0 b", "a w1", "a b"]


def test_gated_pass_accepts_embeddings_in_place_of_ids(tiny_translator, runs):
    model, pairs = tiny_translator.model, runs.batch
    rows = model.token_rows(pairs.changed), model.token_rows(pairs.target, decoder=True)
    with torch.no_grad():
        hidden = GatedPass(model, runs.graph).run(pairs.source, pairs.target, rows)
    torch.testing.assert_close(runs.measure_leads(hidden), runs.changed_lead, atol=1e-6, rtol=0)

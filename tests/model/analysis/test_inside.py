"""Tests of dissections, scoring functions, the loop over heads, stations of the model, and the layout of BLEU."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sacrebleu
import torch
from scipy.special import log_softmax, logsumexp
from scipy.special import softmax as scipy_softmax

from attention_atlas.model.analysis import bleu, head_loop, stations
from attention_atlas.model.analysis.formulas.scoring import compare_scorings
from attention_atlas.model.analysis.formulas.stages import dissect, softmax
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, SubLayerName

TEXT = "Meine Schwester malt ein rotes Boot."


@pytest.fixture(scope="module")
def seen(tiny_translator):
    trace = tiny_translator.translate(TEXT)
    return tiny_translator, trace, tiny_translator.inspect(trace)


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_stages_of_every_head_give_the_models_weights(seen, kind) -> None:
    translator, trace, output = seen
    maps = trace.maps(kind)
    for layer in range(maps.num_layers):
        for head in range(maps.num_heads):
            for query in (0, len(maps.query_tokens) - 1):
                dissection = dissect(output, kind, layer, head, query=query)
                assert np.abs(dissection.weights - maps.weights[layer, head, query]).max() < 1e-6
                assert dissection.error < 1e-6
                np.testing.assert_allclose(dissection.products.sum(-1), dissection.keys @ dissection.query, atol=1e-12)
                np.testing.assert_allclose(dissection.scaled, dissection.dots / math.sqrt(translator.config.d_head))
                expected = torch.nn.functional.scaled_dot_product_attention(
                    torch.tensor(dissection.query)[None],
                    torch.tensor(dissection.keys),
                    torch.tensor(dissection.values),
                    attn_mask=torch.tensor(dissection.allowed)[None],
                )[0]
                np.testing.assert_allclose(dissection.output, expected.numpy(), atol=1e-12)
                if kind is AttentionKind.DECODER_SELF:
                    assert dissection.allowed.sum() == query + 1 and (dissection.weights[query + 1 :] == 0).all()
                    assert (dissection.unscaled_weights[query + 1 :] == 0).all()


def test_softmax_matches_scipy_for_large_scores() -> None:
    scores = np.array([[1e4, 0.0, -np.inf], [3.0, -2.0, 1.0]])
    np.testing.assert_allclose(softmax(scores), scipy_softmax(scores, axis=-1))


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda translator, output: dissect(output, AttentionKind.CROSS, 3, 0, query=0), 3),
        (lambda translator, output: dissect(output, AttentionKind.CROSS, 0, 4, query=0), 4),
        (lambda translator, output: dissect(output, AttentionKind.CROSS, 0, 0, query=99), 99),
        (lambda *seen: head_loop.find_attention_input(*seen, AttentionKind.ENCODER_SELF, 7), 7),
        (lambda *seen: stations.next_token(*seen, 99), 99),
    ],
)
def test_missing_layers_heads_and_queries_are_refused(seen, call, found) -> None:
    with pytest.raises(ValueError, match=f"found {found}"):
        call(seen[0], seen[2])


def test_scoring_functions_match_their_formulas(seen) -> None:
    dissection = dissect(seen[2], AttentionKind.DECODER_SELF, 1, 2, query=3)
    by_name = {scoring.name: scoring for scoring in compare_scorings(dissection)}
    assert [name for name, scoring in by_name.items() if scoring.trained] == ["scaled dot product"]
    np.testing.assert_array_equal(by_name["scaled dot product"].weights, dissection.weights)
    np.testing.assert_array_equal(by_name["dot product"].scores, dissection.dots)
    width = len(dissection.query)
    gaussian = [-(math.dist(dissection.query, key) ** 2) / (2 * math.sqrt(width)) for key in dissection.keys]
    np.testing.assert_allclose(by_name["Gaussian kernel"].scores, gaussian)
    # A softmax ignores a common shift, so the Gaussian differs from the scaled dot product by the key lengths only.
    lengths = (dissection.keys**2).sum(-1) / (2 * math.sqrt(width))
    expected = scipy_softmax(np.where(dissection.allowed, dissection.scaled - lengths, -np.inf))
    np.testing.assert_allclose(by_name["Gaussian kernel"].weights, expected)
    for scoring in by_name.values():
        assert scoring.weights.sum() == pytest.approx(1) and (scoring.weights[~dissection.allowed] == 0).all()
    additive = by_name["additive"].scores
    np.testing.assert_array_equal(additive, {s.name: s for s in compare_scorings(dissection)}["additive"].scores)
    assert np.abs(additive).max() > 0 and not np.array_equal(additive, compare_scorings(dissection, seed=1)[2].scores)


def test_additive_score_of_zeros_is_zero(seen) -> None:
    dissection = dissect(seen[2], AttentionKind.CROSS, 0, 0, query=0)
    zeros = replace(dissection, query=0 * dissection.query, keys=0 * dissection.keys)
    scores = {scoring.name: scoring.scores for scoring in compare_scorings(zeros)}
    assert (scores["additive"] == 0).all()  # v tanh(0) = 0


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_loop_over_heads_matches_the_model(seen, kind) -> None:
    translator, trace, output = seen
    for layer in range(trace.maps(kind).num_layers):
        attention_input = head_loop.find_attention_input(translator, output, kind, layer)
        comparison = head_loop.compare_loop(attention_input)
        assert comparison.output_difference < 1e-5 and comparison.runs == 1
        alone, together = head_loop.attend_by_head(attention_input), head_loop.attend_at_once(attention_input)
        assert float((together[1] - output.attention(kind, layer).weights).abs().max()) < 1e-6
        assert float((alone[1] - together[1]).abs().max()) < 1e-5 and alone[0].shape == together[0].shape
    timed = head_loop.compare_loop(attention_input, runs=3)
    assert timed.runs == 3 and timed.loop_seconds > 0 and timed.vectorised_seconds > 0
    loop, at_once = (
        way(attention_input)[0].double().numpy() for way in (head_loop.attend_by_head, head_loop.attend_at_once)
    )
    expected = np.linalg.norm(loop - at_once) / np.linalg.norm(loop)
    assert timed.relative_error == pytest.approx(expected) and timed.relative_error < 1e-6


@pytest.mark.parametrize("sizes", [(4, 30, 256, 8), (2, 10, 512, 8), (3, 7, 24, 3), (1, 50, 264, 8)])
def test_vectorised_heads_have_no_error_if_projected_at_once(sizes) -> None:
    attention_input = head_loop.make_random_attention(*sizes, torch.device("cpu"))
    comparison = head_loop.compare_loop(attention_input)
    assert comparison.heads_error < 1e-7 and comparison.relative_error < 1e-6


def test_memory_is_that_of_the_tensors_at_one_time() -> None:
    x = torch.ones(1000)
    with head_loop.PeakMemory() as memory:
        view = x.view(10, 100)[1:]  # no memory of its own
        first = view + 1
        second = first.t().exp()
        del first
        third = second.sum() + 1
    assert memory.peak == 2 * 900 * 4 and memory.bytes == 900 * 4 + 4 and third.numel() == 1
    del view, second, third
    assert memory.bytes == 0


def test_the_memory_of_all_heads_holds_their_scores_and_weights() -> None:
    attention_input = head_loop.make_random_attention(2, 64, 32, 4, torch.device("cpu"))
    comparison = head_loop.compare_loop(attention_input)
    weights = 2 * 4 * 64 * 64 * 4  # of all heads, which both return
    assert comparison.vectorised_bytes >= 2 * weights, "the scores of all heads beside their softmax"
    assert comparison.loop_bytes >= 2 * weights, "stacked at the end"


def test_warm_up_is_not_timed(seen, monkeypatch) -> None:
    """The first round of a process takes many times as long; the page once said 38.6 times as fast for it."""
    translator, _, output = seen
    calls: dict[str, int] = {}

    def seconds(way, given) -> float:
        calls[way.__name__] = calls.get(way.__name__, 0) + 1
        return 0.5 if calls[way.__name__] == 1 and way is head_loop.attend_by_head else 0.01

    monkeypatch.setattr(head_loop, "_seconds", seconds)
    attention_input = head_loop.find_attention_input(translator, output, AttentionKind.CROSS, 0)
    comparison = head_loop.compare_loop(attention_input, runs=10, budget=0.06)
    assert comparison.loop_seconds == comparison.vectorised_seconds == 0.01 and comparison.runs >= head_loop.MIN_RUNS


@pytest.mark.parametrize("side", ["source", "target"])
def test_embedding_rows_sum_to_the_first_layers_input(seen, side) -> None:
    translator, trace, output = seen
    ids = trace.source_ids if side == "source" else trace.decoder_ids
    rows = stations.embedding_rows(translator, ids, output, side=side)
    np.testing.assert_allclose(rows.scaled + rows.positions, rows.added, atol=1e-6)
    table = translator.model.embedding.weight.detach().numpy()
    np.testing.assert_allclose(rows.scaled, table[list(ids)] * math.sqrt(32), atol=1e-6)


def test_norms_match_the_records(seen) -> None:
    output = seen[2]
    names, norms = stations.residual_norms(output.decoder_records)
    assert names[:4] == ["input", "1 self-attention", "1 cross-attention", "1 feed-forward"]
    assert len(names) == len(norms) == 1 + 3 * 3
    last = output.decoder_records[-1].after[0].numpy()
    np.testing.assert_allclose(norms[-1], np.linalg.norm(last, axis=-1), rtol=1e-5)
    record = output.encoder_records[1]
    with pytest.raises(ValueError, match="self_attention, feed_forward; found 'cross_attention'"):
        record.sublayer(SubLayerName.CROSS_ATTENTION)


def test_sublayer_output_matches_its_modules(model, norm_first) -> None:
    """Either side of the norm: f(..) computed again from the modules, the norm by torch."""
    layer = model.encoder.layers[0]
    with torch.no_grad():
        for norm in (sublayer.norm for sublayer in layer.sublayers):
            norm.weight.uniform_(0.5, 2.0)
            norm.bias.normal_()
        record = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 5]]), record=True).encoder_records[0]
        numbers = stations.add_and_norm(record.sublayers[1])
        x, norm = record.sublayers[1].before, layer.sublayers[1].norm
        added = layer.feed_forward(norm(x) if norm_first else x)[0]
        read = x if norm_first else x + added
        normed = torch.nn.functional.layer_norm(read, (32,))
    np.testing.assert_allclose(numbers.stream, x[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(numbers.normed, normed[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(numbers.added, np.linalg.norm(added[0].numpy(), axis=-1), rtol=1e-4)
    cosine = torch.nn.functional.cosine_similarity(x[0], added[0], dim=-1)
    np.testing.assert_allclose(numbers.cosine, cosine.numpy(), atol=1e-5)
    np.testing.assert_allclose(numbers.after, np.linalg.norm(record.sublayers[1].after[0].numpy(), axis=-1), rtol=1e-5)


def test_next_token_matches_scipys_softmax(seen) -> None:
    translator, trace, output = seen
    logits = output.logits[0, 2].double().numpy()
    token = stations.next_token(translator, output, 2)
    best = np.argsort(-logits)[:20]
    np.testing.assert_array_equal(token.ids, best)
    np.testing.assert_allclose(token.probabilities, np.exp(log_softmax(logits))[best], rtol=1e-5)
    np.testing.assert_allclose(token.probabilities, np.exp(token.logits - token.log_sum))
    assert token.log_sum == pytest.approx(logsumexp(logits), rel=1e-5)
    assert token.rest == pytest.approx(1 - np.exp(log_softmax(logits))[best].sum(), abs=1e-5)
    assert token.entropy == pytest.approx(float(trace.entropy[2]), abs=1e-4)


@pytest.mark.parametrize(
    ("translation", "reference"),
    [
        ("The small dog sleeps under the table.", "The small dog sleeps under a table."),
        ("A red boat", "A red boat on the wide lake"),
        ("Tea", "Tea"),
        ("the the the the", "the cat"),
        ("", "Nothing was said."),
    ],
)
def test_bleu_matches_sacrebleu_and_the_product_of_its_parts(translation, reference) -> None:
    layout = bleu.lay_out(translation, reference)
    assert layout.score == pytest.approx(sacrebleu.sentence_bleu(translation, [reference]).score)
    used = [p for p in layout.precisions if p.total]
    if used:
        geometric = math.exp(sum(math.log(p.percent) for p in used) / len(used))
        assert layout.score == pytest.approx(layout.brevity_penalty * geometric)
    expected = math.exp(min(0, 1 - layout.reference_length / max(1, layout.translation_length)))
    expected *= 100 if used else 0
    for p in used:
        expected *= (p.matched / p.total) ** (0.5**p.order)
    assert layout.textbook == pytest.approx(expected)


def test_textbook_bleu_of_the_books_example() -> None:
    """p_1 = 4/5, p_2 = 3/4, p_3 = 1/3, p_4 = 0 for A B B C D against A B C D E F (the book's own precisions)."""
    layout = bleu.lay_out("A B B C D", "A B C D E F")
    assert [(p.matched, p.total) for p in layout.precisions[:3]] == [(4, 5), (3, 4), (1, 3)]


@pytest.mark.parametrize("largest", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("translation", "reference"),
    [
        ("The small dog sleeps under the table.", "The small dog is sleeping under a table."),
        ("the the the the", "the cat saw the other cat"),
        ("A B C A B", "A B A B C"),
    ],
)
def test_bleu_marks_ngrams_up_to_any_n(translation, reference, largest) -> None:
    layout = bleu.lay_out(translation, reference, largest=largest)
    theirs = sacrebleu.BLEU(effective_order=True, max_ngram_order=largest).sentence_score(translation, [reference])
    assert layout.score == pytest.approx(theirs.score) and len(layout.precisions) == largest
    assert [(p.matched, p.total) for p in layout.precisions] == list(zip(theirs.counts, theirs.totals))
    marks = [[n for _, n in side] for side in (layout.translation, layout.reference)]
    assert list(map(len, marks)) == [layout.translation_length, layout.reference_length]
    assert max(map(max, marks)) <= largest
    # Words that are marked at all are the matched 1-grams, in either sentence; marks of n stand in runs of at least n.
    matched = layout.precisions[0].matched
    for side in marks:
        assert sum(n > 0 for n in side) == matched
        for n in set(side) - {0}:
            runs = "".join("x" if one >= n else " " for one in side).split()
            assert max(map(len, runs)) >= n


def test_layer_norm_matches_torch(model) -> None:
    with torch.inference_mode():
        output = model(torch.tensor([[4, 5, 6, 7]]), torch.tensor([[1, 5, 8]]), record=True)
    for records, stack in ((output.encoder_records, model.encoder), (output.decoder_records, model.decoder)):
        for index, passed in enumerate(records[1].sublayers):
            norm, read = stack.layers[1].sublayers[index].norm, passed.norm_input[0, 2]
            normalized = stations.layer_norm(passed, 2)
            with torch.inference_mode():
                expected = torch.nn.functional.layer_norm(read, (32,), norm.weight, norm.bias, norm.eps).numpy()
            np.testing.assert_allclose(normalized.output, expected, atol=1e-5)
            assert normalized.error < 1e-5
            assert normalized.mean == pytest.approx(float(read.mean()))
            assert normalized.variance == pytest.approx(float(read.var(unbiased=False)))
            assert normalized.sample_variance == pytest.approx(float(read.var()))  # torch's own default
            variances = normalized.variance, normalized.sample_variance
            of_output, of_sample = (math.sqrt(variance + normalized.epsilon) for variance in variances)
            expected = of_output / of_sample * (normalized.output - normalized.bias)
            np.testing.assert_allclose(normalized.sample_output - normalized.bias, expected, atol=1e-9)


def test_bleu_without_a_reference_raises() -> None:
    with pytest.raises(ValueError, match="reference is empty"):
        bleu.lay_out("A boat", "  ")

"""Beam search equals greedy decoding at width 1, and its scores and tree equal those of full passes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch

from attention_atlas.model.decode.beam import Fate, beam_search, length_penalty
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.nets.masks import pad

LIMIT = 14


def sources(count: int, tokenizer, seed: int = 3) -> list[list[int]]:
    """Return sentences of 1 to 9 random pieces, between a language symbol and the end symbol."""
    numbers = random.Random(seed)
    pieces = [i for i in range(len(tokenizer)) if i not in tokenizer.special_ids]
    return [[4, *numbers.choices(pieces, k=numbers.randint(1, 9)), tokenizer.end_id] for _ in range(count)]


def late_token(decoded: list[list[int]]) -> int:
    """Return a token that greedy decoding writes often and late, to serve as the end symbol.

    The tiny model never ends a sentence by itself; with this end symbol hypotheses have many lengths.
    """
    first_at: dict[int, list[int]] = {}
    for ids in decoded:
        for token in set(ids):
            first_at.setdefault(token, []).append(ids.index(token))
    often = {token: places for token, places in first_at.items() if len(places) >= 40}
    return max(often, key=lambda token: sum(often[token]) / len(often[token]))


@pytest.fixture(scope="module")
def setting(tiny_model, tokenizer):
    """(model, sources, options) for 200 sentences, many of which end before the limit."""
    selected, ends = sources(200, tokenizer), {"begin_id": tokenizer.begin_id, "end_id": -1}
    ends["end_id"] = late_token(greedily((tiny_model, selected, ends)))
    return tiny_model, selected, ends


@torch.inference_mode()
def search(setting, selected=None, **options):
    model, all_sources, ends = setting
    selected = all_sources if selected is None else selected
    return beam_search(model, model.encode(pad(selected, 0)), [LIMIT] * len(selected), **{**ends, **options})


@torch.inference_mode()
def greedily(setting):
    model, selected, ends = setting
    return greedy(model, model.encode(pad(selected, 0)), [LIMIT] * len(selected), **ends)


@torch.inference_mode()
def rescored(setting, source: list[int], *hypotheses: Sequence[int]) -> list[torch.Tensor]:
    """Return the natural log-probability of each token of hypotheses by one teacher-forced pass."""
    model, _, ends = setting
    inputs = pad([[ends["begin_id"], *ids[:-1]] for ids in hypotheses], 0)
    log_p = model(torch.tensor([source] * len(inputs)), inputs).logits.log_softmax(-1)
    return [row[range(len(ids)), list(ids)] for row, ids in zip(log_p, hypotheses)]


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_width_one_is_greedy_decoding(setting, alpha):
    expected = greedily(setting)
    finished = sum(ids[-1] == setting[2]["end_id"] for ids in expected)
    assert 20 < finished < 200, "the sentences should be of both kinds"
    results = search(setting, width=1, length_penalty=alpha)
    assert [list(r.hypotheses[0].ids) for r in results] == expected


def test_a_wider_beam_scores_below_greedy_only_where_it_pruned_greedys_path(setting):
    """Without a length penalty. The tree shows the step at which greedy's prefix was pruned."""
    explained = better = compared = 0
    for source, ids, result in zip(setting[1], greedily(setting), search(setting, width=5, keep_pruned=True)):
        if ids[-1] != setting[2]["end_id"]:
            continue  # greedy found no translation to compare with
        compared += 1
        total, best = float(rescored(setting, source, ids)[0].sum()), result.hypotheses[0]
        better += best.finished and best.score > total + 1e-4
        if not best.finished or best.score < total - 1e-4:
            fates = {result.prefix(n): node.fate for n, node in enumerate(result.nodes)}
            on_the_way = [fates.get(tuple(ids[:k])) for k in range(1, len(ids) + 1)]
            assert Fate.PRUNED in on_the_way or None in on_the_way
            explained += 1
    assert compared > 20 and better > 5
    assert explained <= compared // 4  # an untrained model's distributions are flat: its beams lose good paths


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_node_scores_equal_those_of_a_full_pass(setting, alpha):
    for source, result in zip(
        setting[1][:5], search(setting, setting[1][:5], width=4, n_best=4, length_penalty=alpha, keep_pruned=True)
    ):
        prefixes = [result.prefix(n) for n in range(len(result.nodes))]
        for node, ids, expected in zip(result.nodes, prefixes, rescored(setting, source, *prefixes)):
            assert node.depth == len(ids)
            assert node.log_probability == pytest.approx(float(expected[-1]), abs=1e-4)
            assert node.total == pytest.approx(float(expected.sum()), abs=1e-4)
            assert node.score == pytest.approx(node.total / length_penalty(len(ids), alpha), abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_searches_do_not_depend_on_the_batch(setting, alpha):
    together = search(setting, setting[1][:30], width=3, n_best=2, length_penalty=alpha)
    for source, result in zip(setting[1], together):
        (alone,) = search(setting, [source], width=3, n_best=2, length_penalty=alpha)
        assert [h.ids for h in alone.hypotheses] == [h.ids for h in result.hypotheses]
        for one, other in zip(alone.hypotheses, result.hypotheses):
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


def test_the_best_hypothesis_does_not_depend_on_n_best(setting):
    """The search may stop early only where no later hypothesis could be among the best."""
    few = search(setting, setting[1][:60], width=5, n_best=1, length_penalty=0.6)
    all_of_them = search(setting, setting[1][:60], width=5, n_best=5, length_penalty=0.6)
    for one, many in zip(few, all_of_them):
        assert len(many.hypotheses) == 5
        if one.hypotheses[0].finished:
            assert one.hypotheses[0].ids == many.hypotheses[0].ids
    assert sum(len(r.nodes) for r in few) < sum(len(r.nodes) for r in all_of_them)


def test_each_step_keeps_the_best_candidates(setting):
    width = 4
    for result in search(setting, setting[1][:20], width=width, n_best=width, keep_pruned=True):
        left = width
        for depth in range(1, LIMIT + 1):
            step = [node for node in result.nodes if node.depth == depth]
            if not step:
                assert left == 0
                break
            selected = [n for n in step if n.fate != Fate.PRUNED]
            dropped = [n.total for n in step if n.fate == Fate.PRUNED]
            assert len(selected) == left
            assert not dropped or min(n.total for n in selected) >= max(dropped)
            for node in step:
                assert node.parent is None or result.nodes[node.parent].fate == Fate.KEPT
            left = sum(n.fate == Fate.KEPT for n in selected)
        for node in result.nodes:
            is_end = node.token_id == setting[2]["end_id"]
            assert node.fate == Fate.PRUNED or (node.fate == Fate.FINISHED) == is_end


def test_hypotheses_are_distinct_and_in_order(setting):
    for result in search(setting, width=5, n_best=5, length_penalty=1.0):
        assert len({h.ids for h in result.hypotheses}) == len(result.hypotheses) == 5
        order = [(not h.finished, -h.score) for h in result.hypotheses]
        assert order == sorted(order)


def test_a_length_penalty_favours_longer_translations(setting):
    def length(alpha: float) -> int:
        return sum(len(r.hypotheses[0].ids) for r in search(setting, width=5, n_best=5, length_penalty=alpha))

    assert length(0.0) < length(2.0)


def test_the_length_penalty_equals_the_papers_formula():
    assert length_penalty(7, 0.0) == 1.0
    assert length_penalty(1, 0.9) == 1.0
    assert length_penalty(13, 0.5) == pytest.approx((18 / 6) ** 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": 0}, "from 1 to 8, found 0"),
        ({"width": 9}, "found 9"),
        ({"width": 2.0}, "found 2.0"),
        ({"length_penalty": -0.1}, "found -0.1"),
        ({"length_penalty": float("nan")}, "found nan"),
        ({"width": 3, "n_best": 4}, "from 1 to the beam width, 3, found 4"),
        ({"n_best": 0}, "found 0"),
    ],
)
def test_settings_out_of_range_raise_errors(setting, options, words):
    with pytest.raises(ValueError, match=words):
        search(setting, setting[1][:1], **options)


def test_an_unknown_node_raises_an_error(setting):
    (result,) = search(setting, setting[1][:1], width=2)
    with pytest.raises(ValueError, match="found 999999"):
        result.prefix(999999)


def test_translate_batch_uses_beam_search(tiny_translator):
    texts = ["Der kleine Hund", "", "Zwei Kinder bauen eine Burg.", "Tee"]
    plain = tiny_translator.translate_batch(texts)
    assert tiny_translator.translate_batch(texts, beam=3, batch_size=2)[1] == ""
    assert tiny_translator.translate_batch(texts, beam=1) == plain
    best = tiny_translator.beam([tiny_translator.encode(t) for t in texts if t], width=3)
    expected = [tiny_translator.tokenizer.decode(r.hypotheses[0].ids) for r in best]
    assert [t for t in tiny_translator.translate_batch(texts, beam=3) if t] == [t for t in expected if t]
    with pytest.raises(ValueError, match="found 11"):
        tiny_translator.translate_batch(texts, beam=11)


def test_a_search_stays_within_the_limit_whatever_it_begins_with(tiny_translator):
    limit, end = tiny_translator.max_tokens - 1, tiny_translator.tokenizer.end_id
    source, token = tiny_translator.encode("Hund."), tiny_translator.encode_typed("dog")[0]
    for length in (limit - 2, limit - 1):
        (result,) = tiny_translator.beam([source], width=3, prefix=[token] * length)
        assert max(len(hypothesis.ids) for hypothesis in result.hypotheses) <= limit
    for prefix in ([token] * limit, [token] * (limit + 1), [token, end], [end, token], [10**6], "dog"):
        with pytest.raises(ValueError, match=r"token|target|end of the sentence"):
            tiny_translator.beam([source], width=3, prefix=prefix)
    memory = tiny_translator.model.encode(tiny_translator.pad([source]))
    with pytest.raises(ValueError, match="at least one step"):
        beam_search(tiny_translator.model, memory, [0], begin_id=1, end_id=2, prefix=[token])

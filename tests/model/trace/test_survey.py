"""Statistics against plain loops; planted patterns get their name and random maps none."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

from attention_atlas.model.analysis.survey.sums import Sums, estimate_kinds
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.survey.statistics import statistics_of
from attention_atlas.model.trace.survey.survey import adjust_p_values
from attention_atlas.model.trace.tokens import Token, TokenKind

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS
SENTENCES, FIRM = 60, 0.85


def sentence(random, *, words: int, copies: bool = True) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """Source tokens in a frame of symbols, and decoder inputs; punctuation in the middle and at the end."""

    def side() -> list[Token]:
        tokens = [Token(f"\u2581w{n}", TokenKind.TEXT) for n in random.permutation(words)]
        tokens.insert(words // 2, Token(",", TokenKind.TEXT))
        if copies:
            tokens[-1] = tokens[0]
        return [*tokens, Token(".", TokenKind.TEXT)]

    begin, end = Token("<2en>", TokenKind.SYMBOL), Token("</s>", TokenKind.SYMBOL)
    return (begin, *side(), end), (Token("<s>", TokenKind.SYMBOL), *side())


def facts(random, source, inputs) -> tuple[set[int], np.ndarray]:
    """One rare source token, and links that go from right to left."""
    links = np.zeros((len(inputs), len(source)), bool)
    for target in range(len(inputs) - 1):
        links[target, 1 + (len(source) - 3) * (len(inputs) - 2 - target) // (len(inputs) - 2)] = True
    return {int(random.integers(1, len(source) - 1))}, links


def maps_on(random, counted: dict, name: str, allowed: np.ndarray) -> np.ndarray:
    """FIRM of each row on the cells of a statistic, the rest at random, and so all of rows that have none. Even rows
    for what is no statistic of cells."""
    if name not in counted:
        return allowed / allowed.sum(1, keepdims=True)
    drawn = random.gamma(0.3, size=allowed.shape) * allowed + 1e-12 * allowed
    drawn /= drawn.sum(1, keepdims=True)
    place = counted[name].cells
    on = place / np.maximum(place.sum(1, keepdims=True), 1)
    return np.where(place.any(1)[:, None], FIRM * on + (1 - FIRM) * drawn, drawn)


def surveyed(kind: AttentionKind, heads, maps) -> list[tuple[str, ...]]:
    """The names of heads whose maps a function makes: maps(random, head, found places, allowed) -> [query, key]."""
    sums, random, rows = Sums(0), np.random.default_rng(3), defaultdict(list)
    for number in range(SENTENCES):
        source, inputs = sentence(random, words=int(random.integers(9, 18)))
        queries = source if kind is ENCODER else inputs
        keys = inputs if kind is DECODER else source
        (rare, links), allowed = facts(random, source, inputs), cells.allowed_cells(kind, len(queries), len(keys))
        counted = cells.statistic_cells(kind, queries, keys, rare, links)
        weights = np.stack([maps(random, head, counted, allowed) for head in heads])
        for name, value in cells.measure(kind, weights, queries, keys, rare=rare, links=links).items():
            rows[f"{kind.value}/{name}"].append((number, value.values, value.chance))
    sums.totals.add(np.arange(SENTENCES), rows)
    return estimate_kinds(sums, {kind: 1}, {kind: len(heads)})[kind].head_names()[0]


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_planted_patterns_get_exactly_their_name(kind):
    measured_elsewhere = ("confidence", "induction", "gradient", "ablation")
    names = [name for name in statistics_of(kind) if name not in measured_elsewhere and not name.endswith("_norm")]

    def planted(random, head, counted, allowed):
        return maps_on(random, counted, head, allowed)

    names_by_head = dict(zip(names, surveyed(kind, names, planted)))
    assert names_by_head == {name: (name,) for name in names}


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_random_maps_get_no_name(kind, spread):
    def rows(random, head, counted, allowed):
        weights = np.exp(spread * random.standard_normal(allowed.shape)) * allowed
        return weights / weights.sum(1, keepdims=True)

    names = surveyed(kind, range(40), rows)
    assert sum(map(len, names)) <= 0.05 * 40


def test_chance_is_the_mean_of_random_rows():
    """Rows of the flat Dirichlet distribution, drawn: mean weights, entropies and largest weights."""
    random = np.random.default_rng(5)
    source, inputs = sentence(random, words=9)
    for kind, queries, keys in ((ENCODER, source, source), (DECODER, inputs, inputs), (CROSS, inputs, source)):
        allowed = cells.allowed_cells(kind, len(queries), len(keys))
        drawn = random.exponential(size=(4000, *allowed.shape)) * allowed
        drawn /= drawn.sum(-1, keepdims=True)
        rare, links = facts(random, source, inputs)
        measurements = cells.measure(kind, drawn, queries, keys, rare=rare, links=links)
        for name, value in measurements.items():
            assert abs(value.values.mean() - value.chance) < 5 * value.values.std() / np.sqrt(4000), name


def test_statistics_match_plain_loops():
    random = np.random.default_rng(8)
    for _ in range(5):
        source, _ = sentence(random, words=10)
        maps = random.dirichlet(np.ones(len(source)), size=(2, 3, len(source)))
        measurements = cells.measure(ENCODER, maps, source, source)
        words = [i for i, token in enumerate(source) if token.kind is TokenKind.TEXT]
        before = [maps[..., t, t - 1] for t in words if t - 1 in words]
        np.testing.assert_allclose(measurements["previous"].values, np.mean(before, 0), atol=1e-12)
        end = [maps[..., t, -1] for t in words]
        np.testing.assert_allclose(measurements["end"].values, np.mean(end, 0), atol=1e-12)
        copies = [
            sum(maps[..., t, j] for j in words if j != t and source[j] == source[t])
            for t in words
            if any(j != t and source[j] == source[t] for j in words)
        ]
        np.testing.assert_allclose(measurements["same_token"].values, np.mean(copies, 0), atol=1e-12)
        entropy = stats.entropy(maps, axis=-1).mean(-1) / np.log(len(source))
        np.testing.assert_allclose(measurements["breadth"].values, entropy, atol=1e-12)
        np.testing.assert_allclose(measurements["confidence"].values, maps.max(-1).mean(-1), atol=1e-12)
        lengths = random.uniform(0.1, 2, (2, 3, len(source)))
        by_length = cells.measure(ENCODER, maps, source, source, lengths)["end_norm"].values
        share = [maps[..., t, -1] * lengths[..., -1] / (maps[..., t, :] * lengths).sum(-1) for t in words]
        np.testing.assert_allclose(by_length, np.mean(share, 0), atol=1e-12)


def test_adjusted_p_values_match_scipy():
    p = np.random.default_rng(1).beta(0.3, 1, size=(7, 9))
    expected = stats.false_discovery_control(p, axis=None).reshape(p.shape)
    np.testing.assert_allclose(adjust_p_values(p), expected, atol=1e-15)


def test_a_sentence_of_symbols_alone_has_no_rows():
    tokens = (Token("<2en>", TokenKind.SYMBOL), Token("</s>", TokenKind.SYMBOL))
    measurements = cells.measure(ENCODER, np.full((1, 2, 2), 0.5), tokens, tokens)
    assert set(measurements) == {"breadth", "confidence"}

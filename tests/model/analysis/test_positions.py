"""Positional schemes, their criteria, and the geometry of the sinusoids, against closed forms and scipy."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag, toeplitz
from scipy.signal import periodogram
from scipy.spatial.distance import cdist, pdist

from attention_atlas.model.analysis.positions import codes, geometry
from attention_atlas.model.analysis.positions.codes import SCHEMES, of_table
from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.nets.positions import encoding
from attention_atlas.model.nets.transformer import Transformer

BY_NAME = {scheme.name: scheme for scheme in SCHEMES}
PAPER = BY_NAME["sine and cosine"]


def test_schemes_follow_their_formulas() -> None:
    length, d_model, base = 9, 6, 100.0
    tables = {name: scheme.table(length, d_model, base=base) for name, scheme in BY_NAME.items()}
    for pos in range(length):
        assert tables["count"][pos] == [pos]
        assert tables["normalised count"][pos] == [pos / 8]
        assert list(tables["binary index"][pos]) == [int(bit) for bit in reversed(f"{pos:06b}")]
        sines = [math.sin(pos / base ** (i / d_model)) for i in range(d_model)]
        np.testing.assert_allclose(tables["sine only"][pos], sines, atol=1e-12)
        sines = [math.sin(pos / base ** (2 * j / d_model)) for j in range(d_model)]
        np.testing.assert_allclose(tables["sine only, exponent 2j/d"][pos], sines, atol=1e-12)
        angles = [pos / base ** (2 * i / d_model) for i in range(d_model // 2)]
        papers = [f(a) for a in angles for f in (math.sin, math.cos)]
        np.testing.assert_allclose(tables["sine and cosine"][pos], papers, atol=1e-6)
        mistaken = [f(pos / base ** (2 * i / d_model)) for i, f in enumerate((math.sin, math.cos) * 3)]
        np.testing.assert_allclose(tables["a tutorial's exponents"][pos], mistaken, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("count", (True, True, True, True, False)),
        ("normalised count", (True, False, False, True, True)),
        ("binary index", (True, True, False, False, True)),
        ("sine only", (True, True, True, False, True)),
        ("sine only, exponent 2j/d", (True, True, True, False, True)),
        ("a tutorial's exponents", (True, True, True, False, True)),
        ("sine and cosine", (True, True, True, True, True)),
    ],
)
def test_the_five_criteria(name: str, expected: tuple[bool, ...]) -> None:
    assert tuple(v.passed for v in codes.judge(BY_NAME[name], 32, 32)) == expected


@pytest.mark.parametrize("code", ["interleaved", "halves", "fairseq", "learned", "count", "sine", "tutorial", "binary"])
def test_a_models_table_gets_the_verdicts_of_its_scheme(code: str) -> None:
    config = ModelConfig(9, 32, 4, 1, 1, 32, max_length=64, position_code=PositionCode(code))
    table = Transformer(config).source_positions
    rows = 64 if code == "learned" else None
    verdicts = codes.judge(of_table("own", lambda n: table(0, n), rows=rows), 32, 32)
    names = {"count": "count", "sine": "sine only", "tutorial": "a tutorial's exponents", "binary": "binary index"}
    if code == "learned":
        assert [one.passed for one in verdicts[:3]] == [True, True, False] and "64 rows" in verdicts[2].shown_by
    elif code == "binary":
        assert [one.passed for one in verdicts] == [True, True, True, False, True], "it has d_model bits, not five"
    elif code != "fairseq":
        expected = codes.judge(BY_NAME[names.get(code, "sine and cosine")], 32, 32)
        assert [one.passed for one in verdicts] == [one.passed for one in expected]
    with pytest.raises(ValueError, match="64 rows"):
        codes.judge(of_table("own", lambda n: table(0, n), rows=64), 65, 32)


@pytest.mark.parametrize(("length", "bits"), [(2, 1), (16, 4), (17, 5), (64, 6)])
def test_a_binary_index_names_no_longer_text(length, bits) -> None:
    table = codes.fit(BY_NAME["binary index"], length).table(length, 64)
    assert table.shape == (length, bits) and len({tuple(row) for row in table}) == length
    verdicts = codes.judge(BY_NAME["binary index"], length, 64)
    extends = verdicts[2]
    assert verdicts[0].passed and not extends.passed
    assert f"there are {2**bits} rows, and none for position {2**bits}" in extends.shown_by


def test_neighbouring_binary_codes_are_not_equally_far_apart() -> None:
    gaps = pdist(codes.fit(BY_NAME["binary index"], 8).table(8, 64)[:3])  # of 0 and 1, 0 and 2, 1 and 2
    assert gaps[0] == 1 and gaps[2] == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("base", [100.0, 10_000.0, 1e9, math.inf])
def test_float32_errors_are_those_of_numpys_float32(base) -> None:
    length, d_model = 100, 8
    at, pairs = np.arange(length)[:, None], np.arange(0, d_model, 2)
    exponents = pairs / d_model
    angles = (at / base**exponents, at.astype(np.float32) / np.float32(base) ** exponents.astype(np.float32))
    exact, single = (np.stack((np.sin(a), np.cos(a)), -1).reshape(length, d_model) for a in angles)
    error = codes.float32_error(PAPER, length, d_model, base=base)
    assert error == pytest.approx(np.abs(exact - single.astype(np.float64)).max(), rel=0.5, abs=2e-7) and error < 1e-4
    assert codes.float32_error(BY_NAME["count"], length, d_model) == 0


def test_an_infinite_base_leaves_one_wave() -> None:
    table = PAPER.table(50, 8, base=math.inf)
    at = np.arange(50)
    np.testing.assert_allclose(table, np.stack([np.sin(at), np.cos(at), *[0 * at, 0 * at + 1] * 3], axis=1), atol=1e-6)
    gap, first, second = codes.closest_pair(table)
    assert second - first == 44 and gap == pytest.approx(2 * abs(math.sin(22)), abs=1e-6)  # 44 = 14 pi + 0.018


@pytest.mark.parametrize("name", ["count", "sine and cosine"])
def test_the_gradient_of_a_matrix_grows_with_its_input(name) -> None:
    table = BY_NAME[name].table(50, 8)
    weight = torch.nn.Linear(table.shape[1], 4, bias=False, dtype=torch.float64)
    norms = codes.weight_gradients(table)
    for at in (1, 10, 49):
        weight.zero_grad()
        (weight(torch.from_numpy(table[at])) * 0.5).sum().backward()
        assert norms[at] == pytest.approx(float(weight.weight.grad.norm()))
    growth = norms[40] / norms[4]
    assert growth == pytest.approx(10 if name == "count" else 1, abs=1e-5)


def test_a_violation_is_shown_by_a_pair_that_has_it() -> None:
    verdict = codes.judge(BY_NAME["binary index"], 16, 8)[3]
    match = re.match(r"(\d+) apart: positions (\d+) and (\d+) are \S+ apart, (\d+) and (\d+) ", verdict.shown_by)
    offset, low, low_end, high, high_end = map(int, match.groups())
    table = BY_NAME["binary index"].table(16, 8)
    assert low_end - low == high_end - high == offset
    gap = np.linalg.norm(table[high_end] - table[high]) - np.linalg.norm(table[low_end] - table[low])
    assert gap == pytest.approx(verdict.measured)


def test_the_closest_pair_agrees_with_scipy() -> None:
    table = np.random.default_rng(0).normal(size=(13, 7))
    gap, first, second = codes.closest_pair(table)
    assert gap == pytest.approx(pdist(table).min()) == np.linalg.norm(table[first] - table[second])


def test_fewest_dimensions_is_the_fewest() -> None:
    assert codes.fewest_dimensions(BY_NAME["binary index"], 33)[0] == 6  # 2^5 < 33 <= 2^6
    assert codes.fewest_dimensions(BY_NAME["normalised count"], 64, margin=0.5)[0] is None
    fewest, gap, _ = codes.fewest_dimensions(PAPER, 64, margin=0.5)
    gaps = {width: pdist(PAPER.table(64, width)).min() for width in range(2, 64, 2)}
    assert fewest == min(width for width, gap in gaps.items() if gap > 0.5)
    assert gap == pytest.approx(gaps[fewest])


def test_wavelengths() -> None:
    paper, smaller = (geometry.waves(512, base).rates[:5].round(4).tolist() for base in (10_000, 1_000))
    assert paper == [1, 0.9647, 0.9306, 0.8977, 0.8660] and smaller == [1, 0.9734, 0.9475, 0.9222, 0.8977]
    np.testing.assert_allclose(geometry.waves(4, 100.0).lengths, [2 * math.pi, 2 * math.pi * 10])


@pytest.mark.parametrize("code", [PositionCode.INTERLEAVED, PositionCode.HALVES, PositionCode.FAIRSEQ])
def test_codes_with_waves_rotate_by_their_rates(code: PositionCode) -> None:
    config = ModelConfig(9, d_model=12, num_heads=2, position_code=code, position_offset=3, position_base=70.0)
    table, waves = encoding(config, torch.arange(20)).double().numpy(), geometry.waves_of(config)
    angles = np.outer(np.arange(20) + 3, waves.rates)
    np.testing.assert_allclose(table[:, waves.sines], np.sin(angles), atol=1e-5)
    np.testing.assert_allclose(table[:, waves.cosines], np.cos(angles), atol=1e-5)
    assert sorted((*waves.sines, *waves.cosines)) == list(range(12))
    assert geometry.rotation_residual(table, 7, waves) < 1e-5
    with pytest.raises(ValueError, match="no waves"):
        geometry.waves(12, code=PositionCode.LEARNED)


@given(length=st.integers(2, 40), pairs=st.integers(1, 20), base=st.floats(2.0, 20_000.0))
@settings(max_examples=25)
def test_similarity_has_its_closed_form_and_is_toeplitz(length: int, pairs: int, base: float) -> None:
    table = PAPER.table(length, 2 * pairs, base=base)
    rates = base ** (-np.arange(pairs) / pairs)
    offsets = np.arange(length)
    dots = np.cos(np.outer(offsets, rates)).sum(-1)  # sum of cos(k w)
    gaps = np.sqrt(np.maximum(0, 4 * (np.sin(np.outer(offsets, rates) / 2) ** 2).sum(-1)))  # 2 |sin(k w / 2)|
    similarity = geometry.dot_products(table)
    np.testing.assert_allclose(similarity.matrix, toeplitz(dots), atol=1e-5)
    np.testing.assert_allclose(similarity.by_offset, dots, atol=1e-5)
    assert similarity.residual < 1e-5
    np.testing.assert_allclose(geometry.distances(table).by_offset, gaps, atol=1e-5)


def test_a_matrix_that_is_not_toeplitz_has_a_residual() -> None:
    similarity = geometry.dot_products(BY_NAME["count"].table(5, 1))
    assert similarity.matrix[similarity.worst] == 16 or similarity.matrix[similarity.worst] == 0
    means = [np.mean([a * (a + k) for a in range(5 - k)]) for k in range(5)]
    np.testing.assert_allclose(similarity.by_offset, means)
    assert similarity.residual == pytest.approx(max(abs(a * b - means[abs(a - b)]) for a in range(5) for b in range(5)))


@pytest.mark.parametrize("shift", [0, 1, 7])
def test_a_shift_is_a_rotation(shift: int) -> None:
    table = PAPER.table(20, 8, base=50.0)
    blocks = [
        np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
        for a in (shift / 50.0 ** (i / 4) for i in range(4))
    ]
    matrix = geometry.rotation_matrix(shift, geometry.waves(8, 50.0))
    np.testing.assert_allclose(matrix, block_diag(*blocks), atol=1e-12)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(8), atol=1e-12)
    assert geometry.rotation_residual(table, shift, geometry.waves(8, 50.0)) < 1e-6
    assert shift == 0 or geometry.rotation_residual(BY_NAME["sine only"].table(20, 8), shift, geometry.waves(8)) > 0.1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PAPER.table(0, 8), "found 0"),
        (lambda: codes.judge(PAPER, 1, 8), "at least 2 to compare positions, found 1"),
        (lambda: geometry.rotation_residual(PAPER.table(20, 8), 20, geometry.waves(8)), "found 20"),
        (lambda: geometry.waves(5), "found 5"),
    ],
)
def test_impossible_sizes_are_refused(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_small_distances_keep_their_digits() -> None:
    """Wide codes that lie close together, as well as far apart: where sums of squares would lose half the digits."""
    random = np.random.default_rng(2)
    table = random.normal(size=(30, 40))
    table[10:20] = table[:10] + 1e-7 * random.normal(size=(10, 40))
    table[20] = table[0]
    distances = geometry.pairwise_distances(table)
    np.testing.assert_allclose(distances, cdist(table, table), rtol=1e-9, atol=1e-15)
    assert distances[20, 0] == 0 and (distances == distances.T).all()


def test_a_shared_frequency_is_what_makes_a_shift_a_rotation() -> None:
    mistaken, paper = (BY_NAME[name].table(64, 256) for name in ("a tutorial's exponents", "sine and cosine"))
    assert geometry.rotation_residual(paper, 3, geometry.waves(256)) < 1e-6
    assert geometry.rotation_residual(mistaken, 3, geometry.waves(256)) == pytest.approx(1.96, abs=0.01)
    # Nor is it any other matrix's fault: the best one, found by least squares, is off as well.
    long = BY_NAME["a tutorial's exponents"].table(512, 256)
    best, *_ = np.linalg.lstsq(long[:-3], long[3:], rcond=None)
    assert np.abs(long[:-3] @ best - long[3:]).max() > 0.5


@pytest.mark.parametrize(
    ("name", "width", "gap", "at"),
    [("count", 1, 1.0, 0), ("normalised count", 1, 1 / 19, 0), ("binary index", 4, 0.0, 15)],
)
def test_the_nearest_code_to_an_index_of_minus_one(name, width, gap, at) -> None:
    """-1 in two's complement is all ones: with four bits that of position 15."""
    nearest = codes.nearest_to(BY_NAME[name], -1, 20, width)
    assert nearest == (pytest.approx(gap), at)


def test_the_papers_code_of_minus_one_equals_no_other() -> None:
    gap, at = codes.nearest_to(PAPER, -1, 30, 16)
    before = [f(-1 / 10_000 ** (2 * i / 16)) for i in range(8) for f in (math.sin, math.cos)]
    expected = cdist([before], PAPER.table(30, 16))[0]
    assert at == expected.argmin() == 0 and gap == pytest.approx(expected.min(), abs=1e-6) and gap > 0.5


@pytest.mark.parametrize("length", [24, 25])
def test_the_strongest_wave_equals_scipys(length) -> None:
    at, random = np.arange(length), np.random.default_rng(3)
    for column in (np.sin(2 * np.pi * 3 * at / length), 2 + np.cos(np.pi * at), random.normal(size=length), at * 1.0):
        frequencies, power = periodogram(column, detrend="constant")
        wave, share = geometry.strongest_wave(column)
        assert wave == pytest.approx(1 / frequencies[power.argmax()])
        assert share == pytest.approx(power.max() / power.sum())
    assert geometry.strongest_wave(np.sin(2 * np.pi * 3 * at / length)) == pytest.approx((length / 3, 1.0))
    assert geometry.strongest_wave(np.full(length, 0.3)) == (math.inf, 0.0)

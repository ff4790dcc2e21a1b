"""Colour scales as colour-blind readers see them: monotonic and distinct."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.viz import theme
from attention_atlas.viz.figures.circuit import DrawnEdge, ModelShape, plot_circuit
from attention_atlas.viz.figures.curves import plot_curves

# Machado, Oliveira and Fernandes 2009, at full severity, on linear RGB.
SEEN_BY = {
    "anyone": np.eye(3),
    "protanopes": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopes": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopes": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
    "achromats": np.array([[0.2126, 0.7152, 0.0722]] * 3),  # who see luminance alone
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)  # sRGB's primaries, white D65
NOTICED = 10  # colour difference; 2.3 is just noticeable


def lab(colours: tuple[str, ...], seen: np.ndarray) -> np.ndarray:
    """Convert colours "#rrggbb", as seen by these eyes, to CIELAB [colour, 3] (lightness from 0 to 100 first)."""
    values = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    xyz = np.clip(linear @ seen.T, 0, 1) @ TO_XYZ.T / TO_XYZ.sum(1)
    root = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack((116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])), 1)


def test_lab_coordinates_of_white_black_and_red():
    colours = lab(("#ffffff", "#000000", "#ff0000"), SEEN_BY["anyone"])
    assert np.allclose(colours, [[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20]], atol=0.1)


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("name", theme.SCALES)
def test_lightness_of_scales_is_monotonic(name, eyes):
    steps = np.diff(lab(theme.SCALES[name], SEEN_BY[eyes])[:, 0])
    assert (steps > 2).all() or (steps < -2).all(), steps


@pytest.mark.parametrize("eyes", [eyes for eyes in SEEN_BY if eyes != "achromats"])  # signs are written, too
@pytest.mark.parametrize("page", theme.DIVERGING)
def test_diverging_colours_are_distinct_and_monotonic(page, eyes):
    colours = lab(theme.DIVERGING[page], SEEN_BY[eyes])
    middle = np.linalg.norm(colours - colours[2], axis=1)
    assert middle[0] > middle[1] > NOTICED and middle[4] > middle[3] > NOTICED, middle
    for low, high in ((0, 4), (1, 3)):
        assert np.linalg.norm(colours[low] - colours[high]) > NOTICED, (low, high)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the difference CIEDE2000 of two colours in CIELAB (Sharma, Wu and Dalal 2005)."""
    chroma = (np.hypot(*a[1:]) + np.hypot(*b[1:])) / 2
    stretch = 1 + 0.5 * (1 - np.sqrt(chroma**7 / (chroma**7 + 25**7)))
    (c1, h1), (c2, h2) = (
        (np.hypot(stretch * x, y), np.degrees(np.arctan2(y, stretch * x)) % 360) for _, x, y in (a, b)
    )
    turn = 0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    light, chroma = (a[0] + b[0]) / 2, (c1 + c2) / 2
    hue = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    cosines = [np.cos(np.radians(factor * hue - shift)) for factor, shift in ((1, 30), (2, 0), (3, -6), (4, 63))]
    scale = 1 + np.dot((-0.17, 0.24, 0.32, -0.20), cosines)
    by_light = (b[0] - a[0]) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    by_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    by_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * scale)
    rotated = np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2)))) * 2 * np.sqrt(chroma**7 / (chroma**7 + 25**7))
    return float(np.sqrt(by_light**2 + by_chroma**2 + by_hue**2 - rotated * by_chroma * by_hue))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_differences_of_published_pairs(first, second, expected):
    assert difference(np.array(first), np.array(second)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("eyes", SEEN_BY)
def test_lines_of_heads_and_curves_differ_in_colour_or_dash(eyes):
    colours = lab(theme.HEAD_COLOURS, SEEN_BY[eyes])
    alike = [
        pair
        for pair in combinations(range(len(colours)), 2)
        if difference(*colours[list(pair)]) < NOTICED and len({theme.HEAD_DASHES[i] for i in pair}) == 1
    ]
    assert len(theme.HEAD_DASHES) == len(colours) and not alike, alike


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("page", (0, 1))
def test_marks_differ_from_the_page_and_from_texts(page, eyes):
    colour = {name: pair[page] for name, pair in theme.COLOURS.items()}
    colour["above"] = theme.DIVERGING[("light", "dark")[page]][-1]
    marks, grounds = ("accent", "above", "target", "good", "bad", "warn"), ("paper", "panel")
    for pair in [*product(marks, grounds), ("ink", "accent"), ("ink", "muted")]:
        assert difference(*lab(tuple(colour[name] for name in pair), SEEN_BY[eyes])) >= NOTICED, pair


# Signs and verdicts have two colours that some people cannot tell apart: a sign, a mark or a dash says the same
# (tests/page/test_display_modes.py).
@pytest.mark.parametrize("eyes", ["anyone", "protanopes", "deuteranopes", "tritanopes"])
@pytest.mark.parametrize("page", (0, 1))
def test_colours_of_the_two_signs_and_the_two_languages_differ(page, eyes):
    accent, target = (theme.COLOURS[name][page] for name in ("accent", "target"))
    above = theme.DIVERGING[("light", "dark")[page]][-1]
    for pair in ((accent, above), (accent, target)):
        assert difference(*lab(pair, SEEN_BY[eyes])) >= NOTICED, pair


def test_edges_of_a_circuit_that_count_against_the_token_are_dashed():
    edges = [DrawnEdge("encoder.embed", "logits", "", worth) for worth in (1.0, -0.5)]
    shape = ModelShape(1, 1, 2, ("a", "b"))
    assert [trace.line.dash for trace in plot_circuit(edges, shape).data[:2]] == ["solid", "dash"]


def test_curves_have_these_dashes_and_methods_have_marks_of_their_own():
    curves = plot_curves({str(i): np.arange(3.0) for i in range(8)}).data
    assert [curve.line.dash for curve in curves] == list(theme.HEAD_DASHES)
    assert len(set(theme.MARKS)) == len(theme.MARKS) >= len(METHODS)

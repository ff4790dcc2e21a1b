"""Colour scales as colour-blind readers see them: monotonic and distinct."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from attention_atlas.viz import theme

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
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)  # sRGB's primaries, white D65
NOTICED = 10  # CIE 1976 colour difference; 2.3 is just noticeable


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


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("page", theme.DIVERGING)
def test_diverging_colours_are_distinct_and_monotonic(page, eyes):
    colours = lab(theme.DIVERGING[page], SEEN_BY[eyes])
    middle = np.linalg.norm(colours - colours[2], axis=1)
    assert middle[0] > middle[1] > NOTICED and middle[4] > middle[3] > NOTICED, middle
    for low, high in ((0, 4), (1, 3)):
        assert np.linalg.norm(colours[low] - colours[high]) > NOTICED, (low, high)


@pytest.mark.parametrize("eyes", SEEN_BY)
def test_head_colours_are_distinct(eyes):
    colours = lab(theme.HEAD_COLOURS, SEEN_BY[eyes])
    distances = {(i, j): np.linalg.norm(colours[i] - colours[j]) for i, j in combinations(range(len(colours)), 2)}
    assert min(distances.values()) > NOTICED, distances

"""Codecs against their error bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attention_atlas.viz.wire.codecs import EXACT, ROOT, SIGNED, SMALL

NUMBERS = st.floats(-1e6, 1e6, width=32) | st.just(float("nan"))


@given(arrays.arrays(np.float32, arrays.array_shapes(max_dims=2, max_side=6), elements=NUMBERS))
def test_signed16_is_within_its_error_bound(values):
    decoded = SIGNED.decode(SIGNED.encode(values), values.shape)
    assert np.array_equal(np.isnan(decoded), np.isnan(values))
    limit = np.nanmax(np.abs(values), initial=0.0).astype(np.float64)
    root = (np.abs(values.astype(np.float64)) / (limit or 1.0)) ** 0.25
    bound = limit * (4 * root**3 + 4 / 32767) / 65534 + 1e-7 * np.abs(values) + 1e-45
    present = ~np.isnan(values)
    assert (np.abs(decoded.astype(np.float64) - values)[present] <= bound[present]).all()
    assert (np.sign(decoded)[present] * np.sign(values)[present] >= 0).all()
    assert (decoded[values == 0] == 0).all()


@given(arrays.arrays(np.float32, arrays.array_shapes(max_dims=3, max_side=5), elements=st.floats(0, 1, width=32)))
@example(np.array([0.9482694], np.float32))  # its root lies so near the middle of two codes that float32 would decide
def test_root_codecs_are_within_their_error_bounds(values):
    for codec, steps in ((ROOT, 65535), (SMALL, 255)):
        decoded, half = codec.decode(codec.encode(values), values.shape), 0.5 / steps
        bound = 4 * (values.astype(np.float64) ** 0.25 + half) ** 3 * half + 1e-7
        assert (np.abs(decoded.astype(np.float64) - values) <= bound).all() and (decoded[values == 0] == 0).all()


@given(arrays.arrays(np.float32, (3, 4), elements=NUMBERS))
def test_float32_is_exact(values):
    assert np.array_equal(EXACT.decode(EXACT.encode(values), values.shape), values, equal_nan=True)


@pytest.mark.parametrize("wrong", [-0.25, 1.5, float("nan"), float("inf")])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="from 0 to 1"):
        ROOT.encode(np.array([0.5, wrong], np.float32))
    with pytest.raises(ValueError, match="from 0 to 1"):
        SMALL.encode(np.array([0.5, wrong], np.float32))
    with pytest.raises(ValueError, match="finite"):
        SIGNED.encode(np.array([0.5, float("-inf")]))

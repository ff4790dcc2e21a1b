"""What the head of the page says of a translation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viz.wire.summary import warnings


def test_unsure_is_said_only_of_a_model_that_was_measured_on_held_out_sentences(hand_made_trace):
    unsure = replace(hand_made_trace, log_probability=np.full_like(hand_made_trace.log_probability, -3.0))
    measured = {"unusual_log_probability": -1.2}
    assert any("held-out sentences" in str(line) for line in warnings(unsure, measured))
    assert not any("held-out sentences" in str(line) for line in warnings(unsure, {}))
    certain = replace(unsure, log_probability=np.full_like(unsure.log_probability, -1.1))
    assert not any("held-out sentences" in str(line) for line in warnings(certain, measured))

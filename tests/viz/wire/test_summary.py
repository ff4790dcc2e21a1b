"""The summary in the page's header."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attention_atlas.model.trace.tokens import Token, TokenKind
from attention_atlas.viz.wire.summary import BYTE_SHARE_LIMIT, warnings


def test_warnings_about_bytes_and_missing_ends(hand_made_trace):
    unsure = replace(hand_made_trace, log_probability=np.full_like(hand_made_trace.log_probability, -9.0))
    assert warnings(unsure) == []  # the separate line of doubts reports low probabilities
    assert [str(line)[:21] for line in warnings(replace(unsure, finished=False))] == [
        "Stopped after "[:21] + f"{len(unsure.target_ids)} tokens"[:7]
    ]
    spelled = tuple(Token(t, TokenKind.BYTE) for t in unsure.source_tokens)
    (line,) = warnings(replace(unsure, source_tokens=spelled))
    assert "byte by byte" in str(line) and BYTE_SHARE_LIMIT < 1

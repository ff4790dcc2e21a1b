"""The data of the glossary's pictures equal the trace, for any size of sentence and any selection."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.questions.glossary import page_glossary
from attention_atlas.viz.wire.glossary import MAX_TOKENS
from bench.made.synthetic import random_trace


@pytest.mark.parametrize(("source", "target"), [(2, 1), (9, 8), (80, 60)])
@pytest.mark.parametrize("kind", AttentionKind)
@pytest.mark.parametrize("query", [None, 0, 59])
def test_the_pictures_show_the_weights_and_probabilities_of_the_trace(source, target, kind, query) -> None:
    trace = random_trace(source, target)
    if kind not in trace.kinds:
        pytest.skip("a kind of recurrent networks")
    fields = {"selection": {"kind": kind.value, "layer": 1, "head": 2, "query": query}}
    sent = json.loads(json.dumps(page_glossary(SimpleNamespace(trace=lambda _: trace), None, fields)))
    assert len(json.dumps(sent)) < 30_000
    weights = trace.maps(kind).weights[1, 2]
    for values, expected in zip(sent["maps"][kind.value]["weights"], weights):
        shown = [np.nan if value is None else value for value in values]
        np.testing.assert_allclose(np.nan_to_num(shown), expected[:MAX_TOKENS], atol=1e-4)
    name, row = sent["heads"][0]
    assert name == "2·3"
    (place,) = {i for i, values in enumerate(weights) if np.allclose(values[:MAX_TOKENS], row, atol=1e-4)}
    assert query is None or place == query or query >= len(weights)
    assert dict(sent["layers"])["2·3"] == row
    step = sent["step"]
    np.testing.assert_allclose(
        [candidate["probability"] for candidate in step["candidates"]],
        trace.top_probabilities[step["index"]][: len(step["candidates"])],
    )
    np.testing.assert_allclose(sent["surprisals"], -trace.log_probability[:MAX_TOKENS], atol=1e-4)

"""Projections, joined heads and score matrices against torch.nn's layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.formulas import stages
from attention_atlas.model.checks.oracle import torch_attention
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from tests.conftest import build_tiny_model, make_translator

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module", params=["pre-norm", "post-norm"])
def example(request, tiny_translator, tokenizer):
    """A translator, a trace, and the recorded pass of it."""
    translator = tiny_translator
    if request.param == "post-norm":
        translator = make_translator(build_tiny_model(tokenizer, norm_first=False), tokenizer)
    trace = translator.translate("Meine Schwester malt ein rotes Boot.")
    return translator, trace, translator.inspect(trace)


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_queries_keys_and_values_equal_torchs_linear(example, kind) -> None:
    translator, _, output = example
    module, record = translator.model.attention(kind, 1), output.layer(kind, 1)
    parts = stages.projections(translator, output, kind, 1)
    own = record.sublayer(kind.sublayer).read[0]
    streams = (own, *([output.memory[0]] * 2 if kind is AttentionKind.CROSS else [own] * 2))
    for part, stream, weight, bias in zip(
        parts, streams, module.projection.weight.chunk(3), module.projection.bias.chunk(3)
    ):
        np.testing.assert_array_equal(part.read, stream.numpy())
        expected = torch.nn.functional.linear(stream, weight, bias).numpy()
        np.testing.assert_allclose(part.projected, expected, **CLOSE)
        assert part.heads.shape == (4, len(stream), 8) and part.error < 1e-5
        for head in range(4):
            np.testing.assert_array_equal(part.heads[head], part.projected[:, 8 * head : 8 * head + 8])
    own = output.attention(kind, 1)
    for part, theirs in zip(parts, (own.queries, own.keys, own.values)):
        np.testing.assert_allclose(part.heads, theirs[0].numpy(), **CLOSE)


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_joined_heads_equal_torchs_attention(example, kind) -> None:
    """With the same weights and streams, nn.MultiheadAttention gives the sum of the parts."""
    translator, _, output = example
    ours, record = translator.model.attention(kind, 1), output.layer(kind, 1)
    own = record.sublayer(kind.sublayer).read
    keys = output.memory if kind is AttentionKind.CROSS else own
    length = own.shape[1]
    future = ~torch.ones(length, length, dtype=torch.bool).tril() if kind is AttentionKind.DECODER_SELF else None
    expected = torch_attention(ours)(own, keys, keys, attn_mask=future)[0][0].numpy()
    for query in (0, length - 1):
        joined = stages.join_heads(translator, output, kind, 1, query=query)
        np.testing.assert_allclose(joined.output, expected[query], **CLOSE)
        np.testing.assert_allclose(joined.recorded, expected[query], **CLOSE)
        assert joined.error < 1e-5
        np.testing.assert_allclose(joined.head_outputs.sum(0) + joined.bias, joined.output, **CLOSE)
        np.testing.assert_allclose(
            ours.output(torch.tensor(joined.contexts.ravel()).float()).numpy(), joined.output, **CLOSE
        )
        # A share is the length of a part's projection onto the output, relative to the output's length.
        unit = joined.output / np.linalg.norm(joined.output)
        along = [float(part @ unit) / np.linalg.norm(joined.output) for part in (*joined.head_outputs, joined.bias)]
        np.testing.assert_allclose(joined.shares, along, **CLOSE)
        assert joined.shares.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="found 99"):
        stages.join_heads(translator, output, kind, 1, query=99)


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_the_score_matrix_equals_the_recorded_weights(example, kind) -> None:
    output, trace = example[2], example[1]
    for head in range(4):
        matrix, record = stages.score_matrix(output, kind, 1, head), output.attention(kind, 1)
        q, k = record.queries[0, head].double(), record.keys[0, head].double()
        np.testing.assert_allclose(matrix.scaled, (torch.einsum("qd,kd->qk", q, k) / 8**0.5).numpy(), **CLOSE)
        np.testing.assert_allclose(matrix.weights, trace.maps(kind).weights[1, head], **CLOSE)
        np.testing.assert_allclose(matrix.weights, torch.tensor(matrix.masked).softmax(-1).numpy(), **CLOSE)
        closed = np.isinf(matrix.masked)
        length = len(matrix.masked)
        assert closed.sum() == (length * (length - 1) // 2 if kind is AttentionKind.DECODER_SELF else 0)
        np.testing.assert_array_equal(matrix.masked[~closed], matrix.scaled[~closed])
        assert matrix.error < 1e-5

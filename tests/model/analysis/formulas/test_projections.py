"""Where attention starts and ends, and the whole score matrix, against torch.nn's layers and numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.formulas import projections
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from tests.conftest import build_tiny_model
from tests.model.analysis.formulas.recorded import recorded

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module", params=["pre-norm", "post-norm"])
def seen(request, tiny_translator, tokenizer):
    return recorded(
        tiny_translator if request.param == "pre-norm" else build_tiny_model(tokenizer, norm_first=False), tokenizer
    )


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_queries_keys_and_values_are_torchs_linear_of_the_stream(seen, kind) -> None:
    translator, _, output = seen
    module, record = translator.model.attention(kind, 1), output.layer(kind, 1)
    found = projections.projections(translator, output, kind, 1)
    own = record.sublayer(kind.sublayer).read[0]
    streams = (own, *([output.memory[0]] * 2 if kind is AttentionKind.CROSS else [own] * 2))
    for part, stream, weight, bias in zip(
        found, streams, module.projection.weight.chunk(3), module.projection.bias.chunk(3)
    ):
        np.testing.assert_array_equal(part.read, stream.numpy())
        expected = torch.nn.functional.linear(stream, weight, bias).numpy()
        np.testing.assert_allclose(part.projected, expected, **CLOSE)
        assert part.heads.shape == (4, len(stream), 8) and part.error < 1e-5
        for head in range(4):  # the slice of columns that is marked is what the head has
            np.testing.assert_array_equal(part.heads[head], part.projected[:, 8 * head : 8 * head + 8])
    own = output.attention(kind, 1)
    for part, theirs in zip(found, (own.queries, own.keys, own.values)):
        np.testing.assert_allclose(part.heads, theirs[0].numpy(), **CLOSE)


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_heads_join_as_in_torchs_attention(seen, kind) -> None:
    """The sum of the parts is what nn.MultiheadAttention, with our weights, gives for the same streams."""
    translator, _, output = seen
    ours, record = translator.model.attention(kind, 1), output.layer(kind, 1)
    theirs = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.projection.weight,
            "in_proj_bias": ours.projection.bias,
            "out_proj.weight": ours.output.weight,
            "out_proj.bias": ours.output.bias,
        }
    )
    own = record.sublayer(kind.sublayer).read
    keys = output.memory if kind is AttentionKind.CROSS else own
    length = own.shape[1]
    future = ~torch.ones(length, length, dtype=torch.bool).tril() if kind is AttentionKind.DECODER_SELF else None
    expected = theirs(own, keys, keys, attn_mask=future)[0][0].numpy()
    for query in (0, length - 1):
        found = projections.join_heads(translator, output, kind, 1, query=query)
        np.testing.assert_allclose(found.output, expected[query], **CLOSE)
        np.testing.assert_allclose(found.recorded, expected[query], **CLOSE)
        assert found.error < 1e-5
        np.testing.assert_allclose(found.said.sum(0) + found.bias, found.output, **CLOSE)
        np.testing.assert_allclose(ours.output(torch.tensor(found.joined).float()).numpy(), found.output, **CLOSE)
        # A share is the length of a part's projection on the output, as a share of the output's.
        unit = found.output / np.linalg.norm(found.output)
        along = [float(part @ unit) / np.linalg.norm(found.output) for part in (*found.said, found.bias)]
        np.testing.assert_allclose(found.shares, along, **CLOSE)
        assert found.shares.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="found 99"):
        projections.join_heads(translator, output, kind, 1, query=99)


def test_a_head_in_the_wrong_place_is_seen(seen) -> None:
    found = projections.join_heads(seen[0], seen[2], AttentionKind.CROSS, 0, query=1)
    swapped = projections.Joined(
        found.contexts, found.joined, found.said, found.bias, found.output[::-1], found.recorded
    )
    assert swapped.error > 0.01


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_the_score_matrix_is_every_row_at_once(seen, kind) -> None:
    output, trace = seen[2], seen[1]
    for head in range(4):
        found, record = projections.score_matrix(output, kind, 1, head), output.attention(kind, 1)
        q, k = record.queries[0, head].double(), record.keys[0, head].double()
        np.testing.assert_allclose(found.scaled, (torch.einsum("qd,kd->qk", q, k) / 8**0.5).numpy(), **CLOSE)
        np.testing.assert_allclose(found.weights, trace.maps(kind).weights[1, head], **CLOSE)
        np.testing.assert_allclose(found.weights, torch.tensor(found.masked).softmax(-1).numpy(), **CLOSE)
        closed = np.isinf(found.masked)
        length = len(found.masked)
        assert closed.sum() == (length * (length - 1) // 2 if kind is AttentionKind.DECODER_SELF else 0)
        np.testing.assert_array_equal(found.masked[~closed], found.scaled[~closed])
        assert found.error < 1e-5

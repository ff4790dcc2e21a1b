"""Sources for tests of decoding, and changes that the cached step applies itself (CACHED) or leaves to a pass."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.decode.distributions import TOP_TOKENS, Distributions
from attention_atlas.model.decode.recorded import BatchMaps
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import PatchValue, Sweep
from attention_atlas.model.trace.interventions import Interventions, Patch, Positions, Stream
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.translation import TranslationTrace
from tests.model.nets.test_interventions import EVERY_KIND

SOURCES = [[4, 20, 31, 45, 20, 61, 2], [4, 33, 2], [4, 90, 17, 55, 2]]
BEGIN = 1
DECODER, CROSS = AttentionKind.DECODER_SELF, AttentionKind.CROSS
BROKEN = Interventions(
    heads_off={(DECODER, 0, 1), (DECODER, 2, 3), (CROSS, 1, 0), (CROSS, 1, 2)}, target_positions=Positions(shift=3)
)


def gates(rows: int, *positions: int) -> dict[AttentionKind, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return {kind: torch.rand(rows, 3, 4, *positions, generator=random) * 2 for kind in (DECODER, CROSS)}


PATCH = Patch(Stream(Side.DECODER, 1), (2, 4))
SWEEPS = {  # by the number of rows
    "gates": lambda rows: Sweep(gates=gates(rows)),
    "gates of all rows": lambda rows: Sweep(gates=gates(1)),
    "gates and heads off": lambda rows: Sweep(BROKEN, gates=gates(rows)),
    "gates by position": lambda rows: Sweep(gates=gates(rows, 5)),
    "gates and a cut edge": lambda rows: Sweep(EVERY_KIND["cross edge cut"], gates=gates(rows)),
    "replacements of heads": lambda rows: Sweep(
        gates=gates(rows), replacements={kind: torch.ones(rows, 3, 4, 1, 8) for kind in gates(1)}
    ),
    "a stream patched": lambda rows: Sweep(
        Interventions(patches={PATCH}), values={PATCH: PatchValue(torch.ones(rows, 2, 32))}
    ),
}
CACHED = {
    "plain": lambda rows: Interventions(),
    "broken": lambda rows: BROKEN,  # everything that the cached step applies
    **{name: SWEEPS[name] for name in ("gates", "gates of all rows", "gates and heads off")},
}


def same_maps(actual: BatchMaps, whole: ForwardOutput, steps: int, row: int = 0, *, atol: float = 1e-5) -> None:
    """Assert that the maps of one sentence's steps equal those of a pass, without the padding of targets."""
    assert actual.kinds == whole.kinds
    for kind in actual.kinds:
        ours, theirs = actual.maps(kind, row), whole.maps(kind, row)
        if kind is not AttentionKind.ENCODER_SELF:
            ours, theirs = ours[:, :, :steps], theirs[:, :, :steps]
        if kind is DECODER:
            ours, theirs = ours[..., :steps], theirs[..., :steps]
        torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


def assert_distributions_equal(logits: torch.Tensor, ids: list[int], actual: Distributions | TranslationTrace) -> None:
    """Compare with NumPy's distributions of logits [step, vocabulary]."""
    values = logits.detach().double().numpy()
    p = np.exp(values - values.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    best = np.argsort(-p, axis=-1, kind="stable")[:, :TOP_TOKENS]
    top_ids, top = np.asarray(actual.top_ids, np.int64), np.asarray(actual.top_probabilities)
    np.testing.assert_allclose(top, np.take_along_axis(p, best, -1), atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(p, top_ids, -1), top, atol=1e-5)
    np.testing.assert_allclose(actual.entropy, -(p * np.log2(p)).sum(-1), atol=1e-4)
    np.testing.assert_allclose(actual.log_probability, np.log(p[range(len(ids)), ids]), atol=1e-4)
    assert actual.chosen_rank.tolist() == [int((row > row[i]).sum()) + 1 for row, i in zip(values, ids)]

"""Sources for tests of decoding, and changes that the cached step applies itself (CACHED) or leaves to a pass."""

from __future__ import annotations

import torch

from attention_atlas.model.decode.recorded import Maps
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import PatchValue, Sweep
from attention_atlas.model.trace.interventions import Interventions, Patch, Positions, Stream
from attention_atlas.model.trace.kinds import AttentionKind, Side
from tests.model.nets.test_interventions import EVERY_KIND

SOURCES = [[4, 20, 31, 45, 20, 61, 2], [4, 33, 2], [4, 90, 17, 55, 2]]
BEGIN = 1
BROKEN = Interventions(
    heads_off=frozenset(
        {
            (AttentionKind.DECODER_SELF, 0, 1),
            (AttentionKind.DECODER_SELF, 2, 3),
            (AttentionKind.CROSS, 1, 0),
            (AttentionKind.CROSS, 1, 2),
        }
    ),
    target_positions=Positions(shift=3),
)


def gates(rows: int, *positions: int) -> dict[AttentionKind, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return {
        kind: torch.rand(rows, 3, 4, *positions, generator=random) * 2
        for kind in (AttentionKind.DECODER_SELF, AttentionKind.CROSS)
    }


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
        Interventions(patches=frozenset({PATCH})), values={PATCH: PatchValue(torch.ones(rows, 2, 32))}
    ),
}
CACHED = {
    "plain": lambda rows: Interventions(),
    "broken": lambda rows: BROKEN,  # everything that the cached step applies
    **{name: SWEEPS[name] for name in ("gates", "gates of all rows", "gates and heads off")},
}


def same_maps(actual: Maps, whole: ForwardOutput, row: int = 0, *, atol: float = 1e-5) -> None:
    """Assert that the maps of one sentence's steps equal those of a pass, which may be padded."""
    assert actual.kinds == whole.kinds
    for kind in actual.kinds:
        ours = actual.maps(kind, row)
        theirs = whole.maps(kind, row)[:, :, : ours.shape[2], : ours.shape[3]]
        torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)

"""Greedy decoding: the most probable token at each step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from attention_atlas.model.decode.stepped import Steps
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS


def greedy(
    model: Transformer,
    source: SourceMemory,
    limits: list[int],
    *,
    begin_id: int,
    end_id: int,
    interventions: Changes = NO_INTERVENTIONS,
    prefix: Sequence[int] = (),
    seen: Steps | None = None,
) -> list[list[int]]:
    """The most probable token at each step until end_id or the sentence's limit of steps.

    prefix: y1 .. yk, after which every sentence goes on; they are read in one pass and are no steps.
    seen: receives what each step leaves behind.
    Returns each sentence's new ids, without begin_id or prefix; one that finished ends in end_id.
    Eight parameters: what every way of decoding takes, and three options that few callers name.
    """
    batch = len(limits)
    device = source.memory.device
    results: list[list[int]] = [[] for _ in range(batch)]
    alive = list(range(batch))
    start = torch.tensor([[begin_id, *prefix]] * batch, device=device)
    decoder = StepDecoder(model, source, start, interventions=interventions)
    while alive:
        best = decoder.choices.argmax(-1)
        if seen is not None:
            seen.add(alive, decoder, best)
        going = []
        for row, (sentence, token) in enumerate(zip(alive, best.tolist())):
            results[sentence].append(token)
            if token != end_id and len(results[sentence]) < limits[sentence]:
                going.append(row)
        if len(going) < len(alive) and going:
            rows = torch.tensor(going, device=device)
            decoder.select(rows)
            best = best.index_select(0, rows)
        alive = [alive[row] for row in going]
        if alive:
            decoder.append(best)
    return results

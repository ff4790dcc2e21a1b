"""Greedy decoding: the most probable token at each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.blocks import argmax
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS

if TYPE_CHECKING:
    from attention_atlas.model.decode.recorded import StepRecorder


def greedy(
    model: Transformer,
    source: SourceMemory,
    limits: list[int],
    *,
    begin_id: int,
    end_id: int,
    interventions: Changes = NO_INTERVENTIONS,
    prefix: Sequence[int] = (),
    forced: Sequence[int] | None = None,
    recorder: StepRecorder | None = None,
) -> list[list[int]]:
    """Take the most probable token at each step, until end_id or the sentence's limit of steps.

    source    an encoded batch
    limits    the number of steps that each sentence may take
    prefix    y1 .. yk that every sentence starts with; it is read in one pass and does not count as steps
    forced    tokens of a single sentence that are taken instead of the most probable ones
    recorder  is called with each step

    Returns each sentence's new ids, without begin_id and prefix; a finished sentence ends in end_id.
    """
    device = source.memory.device
    results: list[list[int]] = [[] for _ in limits]
    alive = list(range(len(limits)))
    start = torch.tensor([[begin_id, *prefix]] * len(limits), device=device)
    decoder = StepDecoder(model, source, start, interventions=interventions)
    while alive:
        best = argmax(decoder.choices) if forced is None else start.new_tensor([forced[len(results[0])]])
        if recorder is not None:
            recorder.add(alive, decoder, best)
        unfinished = []
        for row, (sentence, token) in enumerate(zip(alive, best.tolist())):
            results[sentence].append(token)
            if token != end_id and len(results[sentence]) < limits[sentence]:
                unfinished.append(row)
        if len(unfinished) < len(alive) and unfinished:
            rows = torch.tensor(unfinished, device=device)
            decoder.select(rows)
            best = best.index_select(0, rows)
        alive = [alive[row] for row in unfinished]
        if alive:
            decoder.append(best)
    return results

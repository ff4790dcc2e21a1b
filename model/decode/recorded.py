"""Decoding, greedy or forced, with every map of the pass."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from model.decode.greedy import Seen, greedy
from model.decode.steps import StepDecoder
from model.nets.layer import SourceMemory
from model.nets.masks import pad
from model.nets.records import ForwardOutput
from model.nets.sweep import Changes
from model.nets.transformer import Transformer
from model.trace.interventions import NO_INTERVENTIONS


def greedy_with_records(
    model: Transformer, source: SourceMemory, limits: list[int], *, begin_id: int, end_id: int,
    prefix: Sequence[int] = (), interventions: Changes = NO_INTERVENTIONS,
) -> tuple[list[list[int]], ForwardOutput]:
    """greedy(), with the prefix in front of the new ids, then one recorded teacher-forced pass over them, which gives
    every map.

    The logits [batch, longest, vocabulary] of the new ids are not computed again: they are those that each token was
    chosen by. Rows after a sentence's end are 0.
    Seven parameters: those of greedy().
    """
    seen: Seen = []
    found = greedy(model, source, limits, begin_id=begin_id, end_id=end_id, prefix=prefix,
                   interventions=interventions, seen=seen)
    first = seen[0][1]
    if len(found) == 1:
        logits = torch.stack([logits for _, logits in seen], dim=1)
    else:
        logits = first.new_zeros(len(found), len(seen), first.shape[-1])
        for step, (sentences, chosen_by) in enumerate(seen):
            logits[sentences, step] = chosen_by
    found = [[*prefix, *ids] for ids in found]
    return found, _recorded(model, source, found, logits, begin_id, interventions)


def forced_with_records(
    model: Transformer, source: SourceMemory, ids: Sequence[int], *, begin_id: int, given: int = 0,
    interventions: Changes = NO_INTERVENTIONS,
) -> ForwardOutput:
    """What greedy_with_records gives for one sentence, of y1 .. yT that are given. One step for each of them, too: its
    own ids then give what it gave to the last digit, and not only to what float32 leaves of sums in another order.
    given: how many of the first ids were its prefix, which it read in one pass.
    Six parameters: those of greedy(), with the ids in place of a limit."""
    given = min(given, len(ids) - 1)
    decoder = StepDecoder(model, source, torch.tensor([[begin_id, *ids[:given]]], device=source.memory.device),
                          interventions=interventions)
    logits = [decoder.logits]
    for token in ids[given:-1]:
        decoder.append(decoder.prefix.new_tensor([token]))
        logits.append(decoder.logits)
    return _recorded(model, source, [list(ids)], torch.stack(logits, dim=1), begin_id, interventions)


def _recorded(model: Transformer, source: SourceMemory, found: list[list[int]], logits: Tensor, begin_id: int,
              interventions: Changes) -> ForwardOutput:
    """Six parameters: what both callers have in hand when their ids are found."""
    inputs = pad([[begin_id, *ids[:-1]] for ids in found], model.config.pad_id).to(logits.device)
    return model.read(source, inputs, interventions=interventions, record=True, logits=logits)

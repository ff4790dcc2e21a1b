"""Decoding, greedy or forced, with every map of the pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from attention_atlas.model.decode.distributions import Distributions, joined, summarised
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.held import Held
from attention_atlas.model.decode.stepped import Steps
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.places.visit import projected
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import ComputedWeights


class Maps(Protocol):
    """What a trace needs of a recorded pass, as ForwardOutput has it; SteppedMaps has it of a decode, Held of a long
    text."""

    @property
    def kinds(self) -> tuple[AttentionKind, ...]: ...

    def maps(self, kind: AttentionKind, row: int) -> Tensor | ComputedWeights: ...


@dataclass(frozen=True, eq=False)
class Recorded:
    """output: the maps of a batch's ids, of a recorded teacher-forced pass over them or of the steps that found them;
    distributions: what each sentence's tokens were chosen by, one a sentence."""

    output: Maps
    distributions: list[Distributions]


def greedy_with_records(
    model: Transformer,
    source: SourceMemory,
    limits: list[int],
    *,
    begin_id: int,
    end_id: int,
    prefix: Sequence[int] = (),
    interventions: Changes = NO_INTERVENTIONS,
    held: Held | None = None,
) -> tuple[list[list[int]], Recorded]:
    """greedy(), with the prefix in front of the new ids, and every map: of what the steps left behind, or, where that
    does not say all, of one recorded teacher-forced pass over the ids. The distributions are those that each token was
    chosen by, and are not computed again. source: with records, unless there is held: what the encoder's pass was
    watched by, which then watches one over the ids in place of a record.
    Eight parameters: those of greedy(), and that one.
    """
    seen = Steps(len(limits), maps=held is None)
    found = greedy(
        model, source, limits, begin_id=begin_id, end_id=end_id, prefix=prefix, interventions=interventions, seen=seen
    )
    found = [[*prefix, *ids] for ids in found]
    return found, _recorded(model, source, found, seen, begin_id, interventions, held)


def forced_with_records(
    model: Transformer,
    source: SourceMemory,
    ids: Sequence[int],
    *,
    begin_id: int,
    given: int = 0,
    interventions: Changes = NO_INTERVENTIONS,
    held: Held | None = None,
) -> Recorded:
    """What greedy_with_records gives for one sentence, of y1 .. yT that are given. One step for each of them, too: its
    own ids then give what it gave to the last digit, and not only to what float32 leaves of sums in another order.
    given: how many of the first ids were its prefix, which it read in one pass.
    Seven parameters: those of greedy_with_records(), with the ids in place of a limit."""
    given = min(given, len(ids) - 1)
    decoder = StepDecoder(
        model,
        source,
        torch.tensor([[begin_id, *ids[:given]]], device=source.memory.device),
        interventions=interventions,
    )
    seen = Steps(1, maps=held is None)
    for step, token in enumerate(ids[given:]):
        chosen = decoder.prefix.new_tensor([token])
        seen.add([0], decoder, chosen)
        if step < len(ids) - given - 1:
            decoder.append(chosen)
    return _recorded(model, source, [list(ids)], seen, begin_id, interventions, held)


def _recorded(
    model: Transformer,
    source: SourceMemory,
    found: list[list[int]],
    seen: Steps,
    begin_id: int,
    interventions: Changes,
    held: Held | None,
) -> Recorded:
    """Seven parameters: what both callers have in hand when their ids are found."""
    steps = seen.choices.of_each()
    if (maps := seen.maps(model, source, interventions)) is not None:
        return Recorded(maps, steps)
    device = source.memory.device
    inputs = pad([[begin_id, *ids[:-1]] for ids in found], model.config.pad_id).to(device)
    output = model.read(source, inputs, interventions=held.watched if held else interventions, record=held is None)
    whole = []
    for row, (ids, last) in enumerate(zip(found, steps)):
        first = len(ids) - len(last)  # of those that were read in one pass, nothing is known yet
        whole.append(
            last
            if not first
            else joined(
                [
                    *distributions(
                        model, output.hidden[row, :first], torch.tensor(ids[:first], device=device), interventions
                    ),
                    last,
                ]
            )
        )
    return Recorded(held or output, whole)


def with_distributions(
    model: Transformer,
    output: ForwardOutput,
    found: Sequence[Sequence[int]],
    interventions: Changes = NO_INTERVENTIONS,
    held: Held | None = None,
) -> Recorded:
    """A recorded pass over the ids of each sentence, or one that `held` watched, with what it says of them itself."""
    rows = [torch.tensor(ids, device=output.hidden.device) for ids in found]
    return Recorded(
        held or output,
        [
            joined(distributions(model, output.hidden[row, : len(ids)], ids, interventions))
            for row, ids in enumerate(rows)
        ],
    )


def distributions(
    model: Transformer, hidden: Tensor, ids: Tensor, interventions: Changes = NO_INTERVENTIONS
) -> list[Distributions]:
    """What the decoder's output from the first step on, hidden [step, d_model], says of the tokens ids [step], in
    blocks."""
    parts = blocks(len(ids), model.config.num_target_tokens)
    return [
        summarised(projected(model, hidden[None, part], interventions, first=part.start)[0], ids[part])
        for part in parts
    ]

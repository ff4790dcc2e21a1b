"""Passes over one sentence without sets of heads: what sets have in common is run once, and kept for those to come.

Where layers are numbered from the first of the encoder to the last of the decoder, the streams of two sets are the same
up to the first layer in which they differ. Of single heads that halves what is run; and where heads are taken away one
after another, most of what the next sets need is there.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.why.effects import Head

Instead = dict[AttentionKind, Tensor]  # [1, layers, heads, positions, d_head]: what is heard of a closed gate
Place = tuple[int, int]  # a layer of both stacks (of cross-attention's keys and values: ~layer), and the heads up to it
ROOM = 1 << 23  # numbers that are kept: 32 MB in float32


class Ablations:
    """A case without sets of heads, with these values in their places. last: of the decoder's rows so many are asked
    for; None: all."""

    def __init__(self, case: Case, instead: Instead, *, last: int | None = None) -> None:
        self.case, self.instead, self.last = case, instead, last
        self.stacks = case.model.encoder, case.model.decoder
        self.read = len(self.stacks[0].layers)  # the layers whose streams the decoder reads, and the first of its own
        self.layers = self.read + len(self.stacks[1].layers)
        heads = sorted(all_heads(case), key=self._layer_of)
        self.bits = {head: 1 << number for number, head in enumerate(heads)}
        self.below = [sum(self.bits[head] for head in heads if self._layer_of(head) <= i) for i in range(self.layers)]
        self._kept: dict[Place, Tensor] = {}
        self._numbers, self._lock = 0, threading.Lock()

    def dealt(self, sets: Sequence[Sequence[Head]]) -> list[list[int]]:
        """Which sets are to be run together, as chunks of one size: each gets some of those that begin to differ early,
        which take longest."""
        keys = [self._key(heads) for heads in sets]
        order = sorted(range(len(sets)), key=lambda row: [keys[row] & below for below in self.below])
        chunks = len(self.case.chunks(len(sets)))
        return [order[number::chunks] for number in range(chunks)]

    @torch.inference_mode()
    def without(self, sets: Sequence[Sequence[Head]]) -> Tensor:
        """The decoder's output without each set of heads, [batch, target or last, d_model]; of an empty set the plain
        pass's own, to the last bit, but where a head that is off in that, too, would be heard as something else."""
        keys, found = [self._key(heads) for heads in sets], {}
        if 0 in keys and not self.instead:
            found[self.layers - 1, 0] = self.case.output.hidden[0, -self.last if self.last else 0 :]
        gates = closed(self.case, sets)
        instead = {kind: self.instead[kind] for kind in gates if kind in self.instead}
        sweep = Sweep(self.case.interventions, gates, instead)
        for layer, missing in enumerate(self._missing(keys, found)):
            if missing:
                self._run(layer, missing, sweep, found)
        self._keep(found)
        return torch.stack([found[self.layers - 1, key] for key in keys])

    def _layer_of(self, head: Head) -> int:
        kind, layer, _ = head
        return layer if kind is AttentionKind.ENCODER_SELF else self.read + layer

    def _key(self, heads: Sequence[Head]) -> int:
        key = 0
        for head in heads:
            key |= self.bits[head]
        return key

    def _missing(self, keys: list[int], found: dict[Place, Tensor]) -> list[dict[int, int]]:
        """For each layer the heads up to it that have to be run, and the number of a set that begins with these. What
        is kept and needed goes into found: another thread may forget it."""
        wanted: list[dict[int, int]] = [{} for _ in range(self.layers)]
        wanted[-1] = {key: row for row, key in enumerate(keys) if (self.layers - 1, key) not in found}
        for layer in reversed(range(self.layers)):
            for key, row in list(wanted[layer].items()):
                if (kept := self._kept.get((layer, key))) is not None:
                    found[layer, key] = kept
                    del wanted[layer][key]
                    continue
                if layer not in (0, self.read):
                    wanted[layer - 1][key & self.below[layer - 1]] = row
                if layer >= self.read:
                    wanted[self.read - 1][key & self.below[self.read - 1]] = row
        return wanted

    def _run(self, layer: int, missing: dict[int, int], sweep: Sweep, found: dict[Place, Tensor]) -> None:
        decoder = layer >= self.read
        number, stack = (layer - self.read, self.stacks[1]) if decoder else (layer, self.stacks[0])
        if number == 0:
            x = self._entering[decoder].expand(len(missing), -1, -1)
        else:
            x = torch.stack([found[layer - 1, key & self.below[layer - 1]] for key in missing])
        x, _ = stack(
            x,
            causal_mask(x.shape[1], device=x.device) if decoder else None,
            self._sources(layer, missing, found) if decoder else None,
            interventions=sweep.select(torch.tensor(list(missing.values()), device=x.device)),
            start=number,
            stop=number + 1,
            last=self.last if decoder and self.last else x.shape[1],
        )
        found.update(((layer, key), row) for key, row in zip(missing, x))

    def _sources(self, layer: int, missing: dict[int, int], found: dict[Place, Tensor]) -> SourceMemory:
        """What a layer of the decoder reads of the encoder: keys and values, projected once for each stream of it."""
        read, module = [key & self.below[self.read - 1] for key in missing], self.stacks[1].layers[layer - self.read]
        new = []
        for key in dict.fromkeys(read):
            if (kept := self._kept.get((~layer, key))) is not None:
                found[~layer, key] = kept
            elif (~layer, key) not in found:
                new.append(key)
        if new:
            memory = torch.stack([found[self.read - 1, key] for key in new])
            both = torch.stack(module.cross_attention.project_keys_values(memory), dim=1)  # [new, 2, heads, source, ..]
            found.update(((~layer, key), row) for key, row in zip(new, both))
        if len(set(read)) == 1:
            both = found[~layer, read[0]].expand(len(read), -1, -1, -1, -1)
        else:
            both = torch.stack([found[~layer, key] for key in read])
        keys, values = both.unbind(1)
        memory = found[self.read - 1, read[0]][None]  # of which nothing but these is read
        return SourceMemory(memory, None, projected={layer - self.read: (keys, values)})

    @cached_property
    def _entering(self) -> tuple[Tensor, Tensor]:
        """What the first layer of either stack reads, [1, length, d_model]."""
        case = self.case
        lengths = torch.tensor([case.source_rows.shape[1]])
        return (
            case.model.place(case.source_rows, case.interventions),
            case.model.place(case.target_rows, case.interventions, decoder=True, lengths=lengths),
        )

    def _keep(self, found: dict[Place, Tensor]) -> None:
        with self._lock:
            for place, tensor in found.items():
                if place[0] != self.layers - 1 and place not in self._kept:
                    self._kept[place] = tensor
                    self._numbers += tensor.numel()
            while self._numbers > ROOM:
                self._numbers -= self._kept.pop(next(iter(self._kept))).numel()


def all_heads(case: Case) -> list[Head]:
    """Every head of the model."""
    return [
        (kind, layer, head)
        for kind, layers in case.model.num_layers.items()
        for layer in range(layers)
        for head in range(case.model.num_heads[kind])
    ]


def closed(case: Case, sets: Sequence[Sequence[Head]]) -> dict[AttentionKind, Tensor]:
    """Gates by kind [batch, layers, heads] of a batch whose row i has the heads of sets[i] off."""
    gates = {
        kind: case.source_rows.new_ones(len(sets), layers, case.model.num_heads[kind])
        for kind, layers in case.model.num_layers.items()
    }
    for kind, gate in gates.items():
        off = [(row, layer, head) for row, heads in enumerate(sets) for k, layer, head in heads if k == kind]
        if off:
            gate[tuple(torch.tensor(off).T)] = 0.0
    return gates

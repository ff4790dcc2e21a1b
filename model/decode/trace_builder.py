"""From the maps and distributions of a decode to the traces of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from attention_atlas.model.decode.recorded import Recorded
from attention_atlas.model.nets.sweep import Changes, in_trace
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps, ComputedWeights
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.trace.tokens import Token
from attention_atlas.model.trace.translation import TranslationTrace, tokens_of


@dataclass(frozen=True)
class Request:
    """One text that stands in line: its tidied form, its source ids and what it asks for. target: y1 .. yT, where they
    are given; prefix: what decoding goes on from, where that is not what every translation begins with."""

    text: str
    source_ids: tuple[int, ...]
    direction: str
    interventions: Changes = NO_INTERVENTIONS
    decoding: Decoding = GREEDY
    target: tuple[int, ...] | None = None
    prefix: tuple[int, ...] = ()


class Names(Protocol):
    """What a trace needs of a tokenizer (model.text.interface has the whole)."""

    begin_id: int
    end_id: int

    def source_tokens(self, ids: Sequence[int], text: str) -> tuple[Token, ...]: ...

    def tokens(self, ids: Iterable[int]) -> tuple[Token, ...]: ...

    def in_words(self, tokens: Sequence[Token]) -> tuple[Token, ...]: ...

    def decode(self, ids: Iterable[int]) -> str: ...


class TraceBuilder:
    """Turns rows of a decoded batch into traces, without their padding."""

    def __init__(
        self,
        recorded: Recorded,
        tokenizer: Names,
        *,
        seconds: float,
        device: str,
        checkpoint: str,
        digest: str,
        recipe: ToyRecipe | None = None,
        room: float = math.inf,
    ) -> None:
        """seconds to recipe are the traces' own record of where they come from. room: bytes up to which maps of queries
        and keys that a pass held are computed here and now."""
        self.output, self.distributions, self.tokenizer = recorded.output, recorded.distributions, tokenizer
        self.room = room
        self.origin = {
            "seconds": seconds,
            "device": device,
            "checkpoint": checkpoint,
            "digest": digest,
            "recipe": recipe,
        }

    def __call__(self, row: int, request: Request, target_ids: list[int]) -> TranslationTrace:
        """The trace of batch row `row`; target_ids y1 .. yT, the last one predicted but not read."""
        source_ids = request.source_ids
        tokenizer = self.tokenizer
        source_tokens = tokenizer.in_words(tokenizer.source_tokens(source_ids, request.text))
        decoder_ids = (tokenizer.begin_id, *target_ids[:-1])
        inputs = tokenizer.in_words(tokenizer.tokens(decoder_ids))
        # A symbol that decoding may never choose is still a probability of the model: nothing is hidden here.
        steps = self.distributions[row]
        top_ids = steps.top_ids.cpu().numpy().astype(np.int32)
        return TranslationTrace(
            source_text=request.text,
            direction=request.direction,
            source_ids=source_ids,
            source_tokens=source_tokens,
            decoder_ids=decoder_ids,
            decoder_inputs=inputs,
            target_ids=tuple(target_ids),
            target_tokens=tokenizer.in_words(tokenizer.tokens(target_ids)),
            finished=target_ids[-1] == tokenizer.end_id,
            translation=tokenizer.decode(target_ids),
            **self._maps(row, source_tokens, inputs),
            top_ids=top_ids,
            top_tokens=tuple(map(tokenizer.tokens, top_ids.tolist())),
            top_probabilities=steps.top_probabilities.cpu().numpy(),
            chosen_rank=steps.chosen_rank.cpu().numpy().astype(np.int32),
            entropy=steps.entropy.cpu().numpy(),
            log_probability=steps.log_probability.cpu().numpy(),
            interventions=in_trace(request.interventions),
            decoding=request.decoding,
            **self.origin,
        )

    def _maps(self, row: int, source: tuple[str, ...], inputs: tuple[str, ...]) -> dict[str, AttentionMaps | None]:
        """The maps of one row by kind, without its padding; None for a kind that the model does not have."""
        found: dict[str, AttentionMaps | None] = {kind.value: None for kind in AttentionKind}
        # Row by row: all rows' maps at once would lie in memory beside the pass's own and the traces'.
        mine = {kind: self.output.maps(kind, row) for kind in self.output.kinds}  # [layers, heads, query, key]
        held = [maps for maps in mine.values() if isinstance(maps, ComputedWeights)]
        fits = sum(maps.size * maps.dtype.itemsize for maps in held) <= self.room
        for kind, maps in mine.items():
            queries, keys = tokens_of(kind, source, inputs)
            if not isinstance(maps, ComputedWeights):
                maps = np.ascontiguousarray(maps[:, :, : len(queries), : len(keys)].float().cpu().numpy())
            elif fits:
                maps = maps[:]
            found[kind.value] = AttentionMaps(maps, queries, keys)
        return found

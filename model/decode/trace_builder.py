"""Build translation traces from the maps and distributions of a decoded batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.decode.long_text import LongTextCache
from attention_atlas.model.decode.recorded import BatchMaps, RecordedDecode
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.text.interface import TokenNames
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.model.trace.translation import TranslationTrace, tokens_of


@dataclass(frozen=True)
class Request:
    """One text to translate, normalized and encoded, with the settings of its decoding.

    target  y1 .. yT of a forced target; None: decode
    prefix  the ids that decoding continues; (): those that every translation in this direction starts with
    max_length  the most tokens that the translation may have; None: by the source's length
    """

    text: str
    source_ids: tuple[int, ...]
    direction: str
    interventions: Changes = NO_INTERVENTIONS
    decoding: Decoding = GREEDY
    target: tuple[int, ...] | None = None
    prefix: tuple[int, ...] = ()
    max_length: int | None = None


def build_trace(
    recorded: RecordedDecode,
    tokenizer: TokenNames,
    row: int,
    request: Request,
    target_ids: list[int],
    *,
    max_bytes: float = math.inf,
    **origin: Any,
) -> TranslationTrace:
    """Turn a row of a decoded batch into a trace, without its padding.

    target_ids  y1 .. yT, of which the last was predicted but not read
    max_bytes   a trace whose maps are computed from queries and keys stores the maps themselves up to this size
    origin      further fields of the trace: seconds, device, checkpoint, digest, and for some recipe or attention_only
    """
    source_ids, changes = request.source_ids, request.interventions
    source_tokens = tokenizer.in_words(tokenizer.source_tokens(source_ids, request.text))
    decoder_ids = (tokenizer.begin_id, *target_ids[:-1])
    inputs = tokenizer.in_words(tokenizer.tokens(decoder_ids))
    # Tokens that decoding must not choose stay in the distribution, as the model computed it.
    steps = recorded.distributions[row]
    top_ids = steps.top_ids.numpy().astype(np.int32)
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
        **_maps_of_row(recorded.output, row, source_tokens, inputs, max_bytes),
        top_ids=top_ids,
        top_tokens=tuple(map(tokenizer.tokens, top_ids.tolist())),
        top_probabilities=steps.top_probabilities.numpy(),
        chosen_rank=steps.chosen_rank.numpy().astype(np.int32),
        entropy=steps.entropy.numpy(),
        log_probability=steps.log_probability.numpy(),
        interventions=changes.for_trace() if isinstance(changes, Sweep) else changes,
        decoding=request.decoding,
        **origin,
    )


def _maps_of_row(
    output: BatchMaps | LongTextCache, row: int, source: tuple[str, ...], inputs: tuple[str, ...], max_bytes: float
) -> dict[str, AttentionMaps | None]:
    """Return the maps of one row by kind, without padding; None for a kind that the model does not have."""
    by_kind: dict[str, AttentionMaps | None] = {kind.value: None for kind in AttentionKind}
    tokens = {kind: tokens_of(kind, source, inputs) for kind in output.kinds}
    if isinstance(output, LongTextCache):
        computed = {kind: output.maps(kind) for kind in output.kinds}
        fits = sum(maps.size * maps.dtype.itemsize for maps in computed.values()) <= max_bytes
        maps = {kind: AttentionMaps(maps[:] if fits else maps, *tokens[kind]) for kind, maps in computed.items()}
    else:
        maps = {
            kind: AttentionMaps.deferred(output.reader(kind, row, *map(len, tokens[kind])), *tokens[kind])
            for kind in output.kinds
        }
    return by_kind | {kind.value: of_kind for kind, of_kind in maps.items()}

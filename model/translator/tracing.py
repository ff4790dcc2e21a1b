"""Turn a batch of requests into traces: decode, record every map, and fall back to smaller batches or the CPU."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch

from attention_atlas.model.decode.long_text import LongTextCache
from attention_atlas.model.decode.recorded import RecordedDecode, greedy_with_records, with_distributions
from attention_atlas.model.decode.trace_builder import Request, build_trace
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace

if TYPE_CHECKING:
    from attention_atlas.model.translator.translator import Translator

CPU_COPY_BYTES = 128_000_000  # the largest weights that are copied to the CPU for a text too long for the GPU

log = logging.getLogger(__name__)


def trace_requests(translator: Translator, requests: Sequence[Request]) -> list[TranslationTrace]:
    """Return the traces of requests with equal interventions, decoding, limits and forced prefixes, read in one batch.

    A batch too large for the device's memory is halved. A single text too large for it goes through a copy of the
    model on the CPU; where the model is too large to copy, Refusal is raised.
    """
    if not requests:
        return []
    started = time.perf_counter()
    sources = [list(request.source_ids) for request in requests]
    try:
        targets, recorded = decode_and_record(translator, sources, requests[0])
    except torch.OutOfMemoryError:
        if len(requests) == 1 and translator.device.type == "cpu":
            raise
    else:
        build = partial(
            build_trace,
            recorded,
            translator.tokenizer,
            seconds=time.perf_counter() - started,
            device=str(translator.device),
            checkpoint=translator.name,
            digest=translator.digest,
            recipe=translator.recipe,
            max_bytes=translator.limits.trace_bytes,
        )
        return [build(row, request, targets[row]) for row, request in enumerate(requests)]
    # Retry outside of the handler, which would keep the tensors of the failed pass.
    if len(requests) > 1:
        half = len(requests) // 2
        return [*trace_requests(translator, requests[:half]), *trace_requests(translator, requests[half:])]
    length = len(sources[0])
    if translator.weight_bytes > CPU_COPY_BYTES:
        raise Refusal("The device has no memory left for a text of {n} tokens: try a shorter one.", n=length)
    log.warning("%s is out of memory: a text of %d tokens goes through the CPU", translator.device, length)
    return trace_requests(translator.cpu_copy, requests)


def is_long(translator: Translator, request: Request) -> bool:
    """Return whether a recorded pass over this text and its translation would exceed the limits on maps."""
    source = len(request.source_ids)
    target = translator.step_limit(source) if request.target is None else len(request.target)
    if not isinstance(translator.model, Transformer):
        return False
    return translator.limits.needs_long_text_cache(translator.config, source, target)


@torch.inference_mode()
def decode_and_record(
    translator: Translator, sources: list[list[int]], request: Request
) -> tuple[list[list[int]], RecordedDecode]:
    """Return the target ids of each source, decoded or forced as the request says, with their maps and distributions.

    The encoder runs once, except with beam search, whose best hypotheses are read again with records.
    """
    model, tokenizer, interventions = translator.model, translator.tokenizer, request.interventions
    forced = translator.forced_prefix(request.direction)
    prefix = request.prefix or forced
    long_text = LongTextCache(model, interventions) if is_long(translator, request) else None
    changes = interventions if long_text is None else long_text.storing
    if request.target is None and request.decoding.width > 1:
        searches = translator.beam(
            sources,
            request.direction,
            width=request.decoding.width,
            interventions=interventions,
            length_penalty=request.decoding.length_penalty,
            prefix=prefix,
            max_length=request.max_length,
        )
        ids = [list(search.hypotheses[0].ids) for search in searches]
        inputs = translator.pad([[tokenizer.begin_id, *row[:-1]] for row in ids])
        output = model(translator.pad(sources), inputs, interventions=changes, record=long_text is None)
        return ids, with_distributions(model, output, ids, interventions, long_text)
    memory = model.encode(translator.pad(sources), interventions=changes, record=long_text is None)
    limits, continuation = translator.step_limits(sources, prefix, request.max_length), None
    if request.target is not None:
        # The forced prefix is read in one pass, as in greedy decoding.
        prefix = forced[: len(request.target) - 1] if request.target[: len(forced)] == forced else ()
        continuation = request.target[len(prefix) :]
        limits = [len(continuation)]
    return greedy_with_records(
        model,
        memory,
        limits,
        begin_id=tokenizer.begin_id,
        end_id=tokenizer.end_id,
        prefix=prefix,
        forced=continuation,
        interventions=interventions,
        long_text=long_text,
    )

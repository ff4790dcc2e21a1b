"""Greedy decoding over tensors at fixed addresses, so that one CUDA graph repeats its step.

A step of a small model launches some two hundred kernels, which takes longer than they run. A graph launches them at
once, where each step makes the same calls on the same tensors. So the position is a tensor, lengths are rounded up, and
sentences that have ended go on until all have.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from attention_atlas.model.config import PositionCode
from attention_atlas.model.decode.distributions import Distributions, summarize
from attention_atlas.model.nets.blocks import argmax
from attention_atlas.model.nets.decoder_step import DecoderStep, LayerQueriesKeys
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.transformer import Transformer

if TYPE_CHECKING:
    from attention_atlas.model.decode.recorded import StepRecorder

log = logging.getLogger(__name__)

MAX_SENTENCES = 64  # of a batch: in larger ones the kernels take longer than their launches
ROUND_TO = 32  # lengths are rounded up to multiples
CHECK_EVERY = 4  # steps after which the host asks whether all sentences have ended
MAX_GRAPHS = 8  # of one model; the least recently used is dropped


class StaticDecoder:
    """Greedy decoding of `sentences` sources of at most `source_length` tokens, for at most `capacity` steps.

    run() takes one step. It reads and writes the same tensors each time.

    position   int64 [1], that of the tokens that the next step reads
    ids        int64 [sentences], those tokens
    chosen     int64 [sentences, step], the tokens that each step chose
    summaries  the distributions that they were chosen by, [sentence, step, ..]
    layers     queries and keys of each layer's attentions, [sentence, heads, step, d_head]
    """

    def __init__(self, model: Transformer, sentences: int, source_length: int, capacity: int) -> None:
        weights, stack = model.target_matrix, model.config.of(model.decoder.side)

        def rows(length: int) -> Tensor:
            return weights.new_zeros(sentences, stack.num_heads, length, stack.d_head)

        self.step = DecoderStep(model)
        self.position = torch.zeros(1, dtype=torch.long, device=weights.device)
        self.ids = self.position.new_zeros(sentences)
        self.chosen = self.position.new_zeros(sentences, capacity)
        self.layers = [LayerQueriesKeys(rows(capacity), rows(capacity), rows(capacity)) for _ in model.decoder.layers]
        self.caches = [_StaticLayerCache(layer.keys, rows(capacity), self.position) for layer in self.layers]
        mask = torch.zeros(sentences, 1, 1, source_length, dtype=torch.bool, device=weights.device)
        keys_values = {layer.index: (rows(source_length), rows(source_length)) for layer in model.decoder.layers}
        self.source = SourceMemory(weights.new_empty(0), mask, projected=keys_values)
        self.encodings = model.target_positions(0, capacity)
        self.bias = weights.new_zeros(1, 1, 1, capacity)
        self.key_positions = torch.arange(capacity, device=weights.device)
        self.is_banned = torch.zeros(model.config.num_target_tokens, dtype=torch.bool, device=weights.device)
        self.is_banned[list(model.config.banned_ids)] = True
        like = summarize(weights.new_zeros(1, len(self.is_banned)), self.position)
        self.summaries = like.map(lambda column: column.new_zeros(sentences, capacity, *column.shape[1:]))
        self.repeat: Callable[[], None] = self.run

    def run(self) -> None:
        """Read `ids` at `position`, choose the next ones, and move on."""
        encoding = None if self.encodings is None else self.encodings.index_select(0, self.position)
        bias = self.bias.masked_fill(self.key_positions > self.position, float("-inf"))
        new: list[LayerQueriesKeys] = []
        logits = self.step.compute(self.ids, self.source, self.caches, encoding, [bias] * len(self.caches), 0, new)
        best = argmax(logits.masked_fill(self.is_banned, float("-inf")))
        for stored, computed in zip(self.layers, new):
            stored.queries.index_copy_(2, self.position, computed.queries)
            stored.cross_queries.index_copy_(2, self.position, computed.cross_queries)
        self.chosen.index_copy_(1, self.position, best[:, None])
        for column, values in zip(self.summaries.columns, summarize(logits, best).columns):
            column.index_copy_(1, self.position, values[:, None])
        self.ids.copy_(best)
        self.position.add_(1)

    def start(self, source: SourceMemory, begin_id: int) -> None:
        """Begin a batch of at most `sentences` sources; the remaining rows repeat the last one."""
        sentences, length = len(self.ids), source.memory.shape[1]
        rows = self.key_positions.new_tensor([min(row, len(source.memory) - 1) for row in range(sentences)])
        self.source.mask.zero_()
        self.source.mask[..., :length] = True if source.mask is None else source.mask.index_select(0, rows)
        for layer in self.step.layers:
            for static, given in zip(self.source.keys_values(layer.layer), source.keys_values(layer.layer)):
                static[:, :, :length] = given.index_select(0, rows)
        for cache in self.caches:  # rows that are masked still must be finite
            cache.keys.zero_()
            cache.values.zero_()
        self.position.zero_()
        self.ids.fill_(begin_id)

    def records(self, sentences: int, steps: int) -> tuple[Distributions, list[LayerQueriesKeys]]:
        """Return copies of `summaries` and `layers` for the sentences and steps of a batch."""
        layers = [LayerQueriesKeys(*(part[:sentences, :, :steps].clone() for part in layer)) for layer in self.layers]
        return self.summaries.map(lambda column: column[:sentences, :steps].clone()), layers


class _StaticLayerCache:
    """A LayerCache of fixed capacity, whose position is a tensor."""

    def __init__(self, keys: Tensor, values: Tensor, position: Tensor) -> None:
        self.keys, self.values, self.position = keys, values, position

    def extend(self, _start: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new row, and return all rows: the caller masks those after the position."""
        self.keys.index_copy_(2, self.position, keys)
        self.values.index_copy_(2, self.position, values)
        return self.keys, self.values


class CaptureError(RuntimeError):
    """The device could not capture a step."""


class GraphPool:
    """The most recently used static decoders of one model, each with its captured step."""

    def __init__(self) -> None:
        self.is_usable = True  # until a capture fails
        self._decoders: OrderedDict[tuple, StaticDecoder] = OrderedDict()
        self._lock = Lock()

    @torch.inference_mode()
    def decode(
        self,
        model: Transformer,
        source: SourceMemory,
        limits: list[int],
        *,
        begin_id: int,
        end_id: int,
        recorder: StepRecorder | None = None,
    ) -> list[list[int]]:
        """Decode as model.decode.steps.greedy does. Raises CaptureError before the first step."""
        sentences, longest = len(limits), max(limits)
        with self._lock:  # a graph has one set of tensors
            decoder = self._decoder(model, sentences, source.memory.shape[1], longest)
            decoder.start(source, begin_id)
            last = torch.tensor(limits, device=source.memory.device)
            for steps in range(1, longest + 1):
                decoder.repeat()
                if steps % CHECK_EVERY == 0 and steps < longest:
                    is_end = decoder.chosen[:sentences, :steps] == end_id
                    if (is_end.any(1) | (last <= steps)).all():
                        break
            results = [_until(ids, end_id, limit) for ids, limit in zip(decoder.chosen.tolist(), limits)]
            if recorder is not None:
                recorder.add_batch(*decoder.records(sentences, max(map(len, results))))
        return results

    def _decoder(self, model: Transformer, sentences: int, source_length: int, steps: int) -> StaticDecoder:
        """Return a decoder of these sizes or larger ones."""
        addresses = tuple(parameter.data_ptr() for parameter in model.parameters())
        sizes = 1 << (sentences - 1).bit_length(), _round_up(source_length), _round_up(steps)
        key = (addresses, *sizes)
        if key not in self._decoders:
            capacity = max(steps, min(sizes[2], model.config.reach))
            decoder = StaticDecoder(model, *sizes[:2], capacity)
            try:
                with _capture_lock:
                    decoder.repeat = capture(decoder.run, decoder.ids.device)
            except RuntimeError as error:
                self.is_usable = False
                self._decoders.clear()
                log.warning("decoding steps cannot be captured on %s: they are launched one by one", decoder.ids.device)
                raise CaptureError(str(error)) from error
            self._decoders[key] = decoder
            if len(self._decoders) > MAX_GRAPHS:
                self._decoders.popitem(last=False)
        self._decoders.move_to_end(key)
        return self._decoders[key]


_pools: WeakKeyDictionary[Transformer, GraphPool] = WeakKeyDictionary()
_pools_lock = Lock()
_capture_lock = Lock()  # the graphs of two models are not captured at once


def graphs_of(model: Transformer, source: SourceMemory, sentences: int) -> GraphPool | None:
    """Return the graphs of a model in evaluation mode without hooks; None where its steps are not decoded by graphs."""
    if not can_capture(source.memory.device) or sentences > MAX_SENTENCES or not isinstance(model, Transformer):
        return None
    if model.decoder.relative or model.config.position_code is PositionCode.NORMALISED:
        return None  # what positions add differs from step to step, or by sentence
    with _pools_lock:
        pool = _pools.setdefault(model, GraphPool())
    return pool if pool.is_usable else None


def can_capture(device: torch.device) -> bool:
    """Return whether the device has CUDA graphs."""
    return device.type == "cuda" and torch.cuda.is_initialized()


def capture(run: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Return a function that does what run() does, by one CUDA graph. device: that of its tensors."""
    with torch.cuda.device(device):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()  # libraries set themselves up at their first calls, which cannot be captured
            run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may use the device
            run()
    return graph.replay


def _until(ids: list[int], end_id: int, limit: int) -> list[int]:
    """Return the ids up to the first end_id, at most `limit`."""
    ids = ids[:limit]
    return ids[: ids.index(end_id) + 1] if end_id in ids else ids


def _round_up(length: int) -> int:
    return -(-length // ROUND_TO) * ROUND_TO

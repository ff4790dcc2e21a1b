"""The front door: a text in, everything that happened inside out."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import torch

from attention_atlas.model import checkpoint as checkpoints
from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.decode.held import Held
from attention_atlas.model.decode.recorded import Recorded, forced_with_records, greedy_with_records, with_distributions
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.decode.trace_builder import Request, TraceBuilder
from attention_atlas.model.nets.lean.halves import looking_once
from attention_atlas.model.nets.places.visit import check_positions
from attention_atlas.model.nets.sweep import Changes, with_given
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.batching import Batcher
from attention_atlas.model.serve.cores import map_over_cores
from attention_atlas.model.serve.device import choose_device
from attention_atlas.model.serve.limits import FLOAT, BatchLimits
from attention_atlas.model.text.tidy import tidy
from attention_atlas.model.trace import check_count, check_sequence
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import whole_ids
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator.passes import Passes

__all__ = ["Translator"]

TWIN_BYTES = 128_000_000  # of weights that may lie in the CPU's memory, too, for the rare text too long for a GPU's

log = logging.getLogger(__name__)


class Translator(Passes):
    """A checkpoint on a device: it translates, and returns traces of everything that happened inside.

    >>> translator = Translator.load("de-en", device="cpu")
    >>> trace = translator.translate("Der Hund schläft.")
    >>> trace.translation, trace.cross.weights.shape  # [layers, heads, target, source]
    ('The dog is sleeping.', (4, 8, 6, 6))

    One instance serves many threads, and batches what they ask for at the same time.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, *, limits: BatchLimits = BatchLimits()) -> None:
        super().__init__(checkpoint, device, limits)
        self._requests = self._batcher(limits)
        self._twin: Translator | None = None
        self._twin_lock = threading.Lock()

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None, *, limits: BatchLimits = BatchLimits()) -> Translator:
        """Load a checkpoint.

        folder   a checkpoint's folder, or the name of a shipped one, such as "de-en"
        device   "cpu", "cuda" or "mps"; None: CUDA if present, else CPU
        limits   of memory and waiting, for servers

        ValueError if the folder holds no checkpoint or the device cannot be used.
        """
        return cls(checkpoints.load(folder), choose_device(device), limits=limits)

    def to(self, device: torch.device) -> None:
        """Move the model to a device. Only before an app starts serving."""
        self.model.to(device)
        self.device: torch.device = device
        # The old one's threads would be missing in a process forked from this one.
        self._requests = self._batcher(self.limits)

    def _batcher(self, limits: BatchLimits) -> Batcher[Request, TranslationTrace]:
        return Batcher(
            self._traced, limits, size=lambda length: FLOAT * self.config.pass_numbers(length, self.step_limit(length))
        )

    def translate(
        self,
        text: str,
        direction: str | None = None,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> TranslationTrace:
        """Translate one text and return everything that happened inside.

        direction       such as "de-en"; None: the checkpoint's first
        interventions   what the pass is changed by, such as Interventions(heads_off=[("cross", 2, 4)])
        beam, length_penalty   as in translate_batch()

        ValueError as in trace().
        """
        return self.trace(text, direction, interventions=interventions, beam=beam, length_penalty=length_penalty)

    def trace(
        self,
        text: str | None = None,
        direction: str | None = None,
        *,
        source_ids: Sequence[int] | None = None,
        target: str | Sequence[int] | None = None,
        prefix: str | Sequence[int] | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> TranslationTrace:
        """Translate from given ids, or read a target that is given in whole or in part.

        text, source_ids   what is translated, as a text or as the ids of encode(); with both, the ids are read, and
                           the text is their label
        target   read as if the model had written it: a text, or ids y1 .. yT with `</s>` or (unfinished) without. A
                 trace's own target_ids reproduce it to the last digit
        prefix   how the translation begins: a text, or ids; decoding continues from there, for at least ten steps
                 where the model reaches that far

        Calls from many threads at once share batches (model/serve/batching.py), unless something is given.

        ValueError, in words, for a text, ids, a target or interventions that cannot be used, and Busy when more wait
        than the limits allow.
        """
        if target is not None and (prefix is not None or (beam, length_penalty) != (1, 0.0)):
            raise ValueError("a target is the whole of a translation: give it without prefix, beam and length_penalty")
        begun = self._begun(prefix, direction) if target is None else ()
        whole = self.encode_target(target, direction) if isinstance(target, str) else target
        if whole is not None or begun[-1:] == (self.tokenizer.end_id,) or len(begun) == self.max_tokens - 1:
            whole = tuple(self.check_target(begun if whole is None else whole))
        decoding = Decoding(beam, length_penalty, len(whole if whole is not None else begun))
        request = self._request(text, direction, interventions, decoding, source_ids)
        if whole is not None or begun:
            return self._traced([replace(request, target=whole, prefix=begun)])[0]
        # A long text goes through alone: padding would change how its maps' rows are summed.
        alone = object() if self._is_long(request) else None
        key = (request.interventions, decoding, self.forced_prefix(request.direction), alone)
        return self._requests(request, length=len(request.source_ids), key=key)

    def trace_batch(
        self, texts: Iterable[str], direction: str | None = None, *, interventions: Changes = NO_INTERVENTIONS
    ) -> list[TranslationTrace]:
        """Return the traces of many texts, translated in one batch. ValueError as in trace()."""
        requests = [self._request(text, direction, interventions) for text in check_sequence("texts", texts)]
        if not any(map(self._is_long, requests)):
            return self._traced(requests)
        return [self._traced([request])[0] for request in requests]

    def traces(
        self, texts: Iterable[str], direction: str | None = None, *, batch_size: int = 32
    ) -> Iterator[TranslationTrace]:
        """Yield the traces of any number of texts, in their order. `batch_size` at a time are translated on each core,
        or on one GPU, and no more are in memory at once. ValueError as in trace()."""
        at_once = torch.get_num_threads() if self.device.type == "cpu" else 1
        for part in batched(check_sequence("texts", texts), at_once * check_count("batch size", batch_size)):
            by_length = sorted(range(len(part)), key=lambda i: -len(tidy(part[i])))  # what is padded takes time, too
            rows = list(batched(by_length, min(batch_size, math.ceil(len(part) / at_once))))
            asked = [[part[i] for i in batch] for batch in rows]
            found = map_over_cores(looking_once(partial(self.trace_batch, direction=direction)), asked)
            traces = dict(zip(chain(*rows), chain(*found)))
            yield from (traces[i] for i in range(len(part)))

    def translate_batch(
        self,
        texts: Iterable[str],
        direction: str | None = None,
        *,
        batch_size: int = 64,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> list[str]:
        """Return the translations of many texts, without maps, in the order of the texts.

        batch_size       texts in one pass, sorted by length
        beam             the width of the search, 1 to 8; 1 is greedy decoding
        length_penalty   as in model.decode.beam.beam_search

        An empty text has an empty translation. ValueError for a text or a setting that cannot be used.
        """
        direction, texts = self.check_direction(direction), list(check_sequence("texts", texts))
        rows = [i for i, text in enumerate(texts) if tidy(text)]
        found = self.generate(
            [self.encode(texts[i], direction) for i in rows],
            direction,
            batch_size=batch_size,
            beam=beam,
            length_penalty=length_penalty,
        )
        results = [""] * len(texts)
        for i, ids in zip(rows, found):
            results[i] = self.tokenizer.decode(ids)
        return results

    def _request(
        self,
        text: str | None,
        direction: str | None,
        interventions: Changes,
        decoding: Decoding = GREEDY,
        source_ids: Sequence[int] | None = None,
    ) -> Request:
        """A text tidied and encoded, with what it asks for. ValueError, in words, for what cannot be served."""
        direction = self.check_direction(direction)
        interventions = self._with_vectors(with_given(self.changes, interventions), direction)
        self.model.check(interventions, batch=1)
        if source_ids is None:
            ids = self.encode(text := text or "", direction)
        else:
            ids = self._within(whole_ids(source_ids, self.config.vocabulary_size))
            text = self.tokenizer.decode_source(ids) if text is None else text
        check_positions(interventions, self.config, [ids], self.max_tokens)
        return Request(tidy(text), tuple(ids), direction, interventions, decoding)

    def _is_long(self, request: Request) -> bool:
        """Whether a pass over this text and its translation would hold too much of its maps."""
        source = len(request.source_ids)
        target = len(request.target) if request.target is not None else self._limits([request.source_ids], ())[0]
        return isinstance(self.model, Transformer) and self.limits.holds(self.config, source, target)

    def _traced(self, requests: Sequence[Request]) -> list[TranslationTrace]:
        """Traces of requests of equal interventions, decoding and forced prefixes, in one batch; in halves where that
        is too large for the device's memory."""
        if not requests:
            return []
        try:
            return self._traced_at_once(requests)
        except torch.OutOfMemoryError:
            if len(requests) == 1:
                raise
        # Outside of the handler, which would keep the tensors of the failed pass.
        half = len(requests) // 2
        return [*self._traced(requests[:half]), *self._traced(requests[half:])]

    def _traced_at_once(self, requests: Sequence[Request]) -> list[TranslationTrace]:
        started = time.perf_counter()
        sources = [list(request.source_ids) for request in requests]
        try:
            targets, recorded = self._decode_and_record(sources, requests[0])
        except torch.OutOfMemoryError as error:
            if len(requests) > 1 or self.device.type == "cpu":
                raise  # of many, _traced() tries again with fewer
            if self.weight_bytes > TWIN_BYTES:
                raise Refusal(
                    "The device has no memory left for a text of {n} tokens: try a shorter one.", n=len(sources[0])
                ) from error
            log.warning("%s is out of memory: a text of %d tokens goes through the CPU", self.device, len(sources[0]))
            return self._cpu_twin()._traced(requests)
        build = TraceBuilder(
            recorded,
            self.tokenizer,
            seconds=time.perf_counter() - started,
            device=str(self.device),
            checkpoint=self.name,
            digest=self.digest,
            recipe=self.recipe,
            room=self.limits.trace_bytes,
        )
        return [build(row, request, targets[row]) for row, request in enumerate(requests)]

    def _cpu_twin(self) -> Translator:
        """The same model on the CPU, made when first needed: only of a small one."""
        with self._twin_lock:
            if self._twin is None:
                model = type(self.model)(self.config)
                model.load_state_dict({name: t.cpu() for name, t in self.model.state_dict().items()})
                twin = Checkpoint(
                    self.name,
                    model.eval(),
                    self.tokenizer,
                    self.directions,
                    self.metrics,
                    self.digest,
                    languages=self.languages,
                )
                self._twin = Translator(twin, torch.device("cpu"), limits=self.limits)
            return self._twin

    @torch.inference_mode()
    def _decode_and_record(self, sources: list[list[int]], asked: Request) -> tuple[list[list[int]], Recorded]:
        """The ids that are asked for, and their maps and distributions; the encoder runs once where nothing is
        searched."""
        forced, interventions = self.forced_prefix(asked.direction), asked.interventions
        prefix = asked.prefix or forced
        held = Held(self.model, interventions) if self._is_long(asked) else None
        watched = interventions if held is None else held.watched
        if asked.target is None and asked.decoding.width > 1:
            found = self.beam(
                sources,
                asked.direction,
                width=asked.decoding.width,
                interventions=interventions,
                length_penalty=asked.decoding.length_penalty,
                prefix=prefix,
            )
            ids = [list(result.hypotheses[0].ids) for result in found]
            inputs = self._padded([self._decoder_ids(row) for row in ids])
            output = self.model(self._padded(sources), inputs, interventions=watched, record=held is None)
            return ids, with_distributions(self.model, output, ids, interventions, held)
        memory = self.model.encode(self._padded(sources), interventions=watched, record=held is None)
        if asked.target is not None:
            return [list(asked.target)], forced_with_records(
                self.model,
                memory,
                asked.target,
                begin_id=self.tokenizer.begin_id,
                # What is no choice of a translation, it would have read in one pass.
                given=len(forced) if asked.target[: len(forced)] == forced else 0,
                interventions=interventions,
                held=held,
            )
        return greedy_with_records(
            self.model,
            memory,
            self._limits(sources, prefix),
            begin_id=self.tokenizer.begin_id,
            end_id=self.tokenizer.end_id,
            prefix=prefix,
            interventions=interventions,
            held=held,
        )

"""The library's front door: text in, translations and traces out.

>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> trace = translator.translate("Der Hund schläft.")
>>> trace.cross.weights.shape[2:] == (len(trace.target_ids), len(trace.source_ids))  # [layers, heads, target, source]
True
>>> forced = translator.trace("Der Hund schläft.", target="A dog is sleeping.")  # read as if the model had written it
>>> forced.translation, bool(forced.log_probability.sum() < trace.log_probability.sum())
('A dog is sleeping.', True)
>>> translator.translate_batch(["Der Hund schläft."]) == [trace.translation]
True
"""

from __future__ import annotations

import copy
import logging
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from model import checkpoint as checkpoints
from model.checkpoint import Checkpoint
from model.decode import scoring
from model.decode.beam import BeamResult, beam_search
from model.decode.greedy import greedy
from model.decode.held import Held
from model.decode.recipes import difference, with_vectors
from model.decode.recorded import Recorded, forced_with_records, greedy_with_records, with_distributions
from model.decode.runs import AT_ONCE, Run, batched, chunks, paired, run
from model.decode.trace_builder import Request, TraceBuilder
from model.nets.masks import pad
from model.nets.networks import check_transformer
from model.nets.places.registry import Place, places
from model.nets.records import ForwardOutput
from model.nets.sweep import Changes, Sweep, edited, joined
from model.nets.transformer import Transformer
from model.serve.batching import Batcher
from model.serve.cores import map_over_cores
from model.serve.device import choose_device
from model.serve.limits import FLOAT, BatchLimits
from model.text.tidy import tidy
from model.trace.decoding import GREEDY, Decoding
from model.trace.directions import parse_direction
from model.trace.edits import Edit, Recipe
from model.trace.interventions import NO_INTERVENTIONS
from model.trace.language import Refusal
from model.trace.tokens import whole_ids
from model.trace.translation import TranslationTrace

TWIN_BYTES = 128_000_000  # of weights that may lie in the CPU's memory, too, for the rare text too long for a GPU's

log = logging.getLogger(__name__)


class Translator:
    """A checkpoint on a device. One instance serves many threads, and batches what they ask for at the same time."""

    def __init__(self, checkpoint: Checkpoint, device: torch.device, *, limits: BatchLimits = BatchLimits()) -> None:
        self.name, self.digest, self.metrics = checkpoint.name, checkpoint.digest, checkpoint.metrics
        self.directions, self.tokenizer = checkpoint.directions, checkpoint.tokenizer
        self.languages = checkpoint.languages  # of which any pair is a direction, too; None: of none
        self.examples, self.survey, self.folder = checkpoint.examples, checkpoint.survey, checkpoint.folder
        self.device = device
        self.changes: Changes = NO_INTERVENTIONS  # that every pass of edit()'s copies is made with
        self.model = checkpoint.model.to(device)
        self.config = self.model.config
        self.max_tokens = limits.longest(self.config)  # that each side of a text may have
        self.requests = self._batcher(limits)
        self._twin: Translator | None = None
        self._twin_lock = threading.Lock()

    @cached_property
    def scratch(self) -> Path:
        """A private folder for what is computed about these weights while they are served; it is deleted with them.
        An app whose processes fork asks for it before they do."""
        self._scratch = tempfile.TemporaryDirectory(prefix="attention-atlas-")
        return Path(self._scratch.name)

    def close(self) -> None:
        """Delete what was kept on disk, for a program that ends without Python's own cleanup."""
        if "scratch" in vars(self):
            self._scratch.cleanup()

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None, *, limits: BatchLimits = BatchLimits()) -> Translator:
        """Load a checkpoint folder. device None: CUDA if present, else CPU. ValueError if either cannot be used."""
        return cls(checkpoints.load(folder), choose_device(device), limits=limits)

    def places(self) -> tuple[Place, ...]:
        """Every place of a pass by its name, with its axes: what edit() and run() take. A Refusal for a network that
        is not a Transformer."""
        check_transformer(self.model)
        return places(self.config)

    def edit(self, edits: Mapping[str, Edit | Callable]) -> Translator:
        """This translator with something changed at named places, in everything that it does: one pass, steps, beam,
        batches. It shares the model, and other threads may use it alongside this one.

        edits: place or glob -> Add, Replace, Scale or Ablate (model.trace.edits), which a trace keeps, or a function of
        the tensor and of where it is (model.nets.places.visit.At) that returns the tensor to continue with; a trace
        records such a function only in words. ValueError for an unknown place. Usable in a `with` statement:

        with translator.edit({"decoder.2.resid_post": Add(direction, strength=4)}) as steered:
            steered.translate(text)
        """
        check_transformer(self.model)
        changed = copy.copy(self)
        changed.changes = self._with_vectors(joined(self.changes, edited(edits)))
        self.model.check(changed.changes, batch=1)
        return changed

    def _with_vectors(self, changes: Changes, direction: str | None = None) -> Changes:
        """The same with the vectors that recipes make in this model unchanged."""

        def vector(recipe: Recipe, place: str) -> np.ndarray:
            plain = copy.copy(self)
            plain.changes = NO_INTERVENTIONS
            texts, languages = [recipe.towards, recipe.away], recipe.languages or direction
            return difference(plain.run(texts, names=[place], direction=languages), place)

        return with_vectors(changes, vector)

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *_: object) -> None:
        pass  # an edit ends with the translator that has it: there is nothing to take back

    def to(self, device: torch.device) -> None:
        """Move the model to a device. Only before an app starts serving."""
        self.model, self.device = self.model.to(device), device
        # The old one's threads would be missing in a process forked from this one.
        self.requests = self._batcher(self.requests.limits)

    def _batcher(self, limits: BatchLimits) -> Batcher[Request, TranslationTrace]:
        return Batcher(
            self._traced, limits, size=lambda length: FLOAT * self.config.pass_numbers(length, self.step_limit(length))
        )

    def encode(self, text: str, direction: str | None = None) -> list[int]:
        """Source ids of a text: `<2xx>` .. `</s>`.

        ValueError, in words, if it is empty, longer than the limit, or the direction is not this checkpoint's.
        """
        text = tidy(text)
        if not text:
            raise Refusal("The text is empty: type a sentence to translate.")
        return self._within(self._source_ids(text, direction))

    def _within(self, ids: list[int]) -> list[int]:
        if not ids:
            raise Refusal("The text is empty: type a sentence to translate.")
        if len(ids) > self.max_tokens:
            raise Refusal(
                "The text is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=self.max_tokens
            )
        return ids

    def encode_typed(self, text: str, *, joined: bool = False) -> list[int]:
        """Ids of text that a person types into a target. joined: without the space that starts a word. ValueError, in
        words, for empty text."""
        if not text.strip():
            raise Refusal("There is no text: type a word or more.")
        return (self.tokenizer.encode_joined if joined else self.tokenizer.encode)(tidy(text))

    def encode_target(self, text: str, direction: str | None = None) -> list[int]:
        """Ids of a whole translation: the forced prefix, the text's ids, `</s>`. ValueError for empty text."""
        return [*self.forced_prefix(direction), *self.encode_typed(text), self.tokenizer.end_id]

    def check_target(self, target_ids: Sequence[int]) -> list[int]:
        """The ids as a list. ValueError if there are none, too many, an unknown one, or `</s>` before the end."""
        ids, limit = whole_ids(target_ids, self.config.num_target_tokens), self.max_tokens - 1
        if not ids:
            raise Refusal("The target is empty: there is nothing to follow.")
        if len(ids) > limit:
            raise Refusal("The target is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=limit)
        if self.tokenizer.end_id in ids[:-1]:
            raise Refusal("Nothing can follow the end of the sentence.")
        return ids

    def fits(self, text: str, direction: str | None = None) -> bool:
        """Whether a text is within the limit."""
        return len(self._source_ids(tidy(text), direction)) <= self.max_tokens

    def _source_ids(self, text: str, direction: str | None) -> list[int]:
        source, target = parse_direction(self.check_direction(direction))
        return self.tokenizer.encode_source(text, target, source)

    def check_direction(self, direction: str | None) -> str:
        """The direction itself, the checkpoint's first for None; ValueError if the checkpoint does not have it."""
        direction = self.directions[0] if direction is None else direction
        if direction not in self.directions and not (self.languages and direction in self.languages):
            raise Refusal(
                "Unknown direction {direction}: this model translates {all}.",
                direction=repr(direction),
                all=", ".join(self.directions),
            )
        return direction

    def forced_prefix(self, direction: str | None = None) -> tuple[int, ...]:
        """The ids that every translation in this direction begins with: in most models none."""
        return self.tokenizer.forced_prefix(parse_direction(self.check_direction(direction))[1])

    def translate(
        self,
        text: str,
        direction: str | None = None,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> TranslationTrace:
        """Translate one text and return everything that happened inside. beam, length_penalty: as in translate_batch().
        ValueError as in trace()."""
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
        """translate() from given ids, or with a target that is given in whole or in part.

        text, source_ids   what is translated, as a text or as the ids of encode(); with both, the ids are read, and
                           the text is their label
        target   read as if the model had written it: a text, or ids y1 .. yT with `</s>` or (unfinished) without. A
                 trace's own target_ids reproduce it to the last digit
        prefix   how the translation begins: a text, or ids; decoding continues from there, for at least ten steps
                 where the model reaches that far

        Calls from many threads at once share batches (model/serve/batching.py), unless something is given.

        ValueError, in words, for a text, ids, a target or interventions that cannot be used, and Busy when more wait
        than the limits allow. Nine parameters: those of translate(), and what may be given.
        """
        if target is not None and (prefix is not None or (beam, length_penalty) != (1, 0.0)):
            raise ValueError("a target is the whole of a translation: give it without prefix, beam and length_penalty")
        begun = self._begun(prefix, direction) if target is None else ()
        whole = self.encode_target(target, direction) if isinstance(target, str) else target
        if whole is not None or begun[-1:] == (self.tokenizer.end_id,) or len(begun) == self.max_tokens - 1:
            whole = tuple(self.check_target(begun if whole is None else whole))
        decoding = Decoding(beam, length_penalty, len(whole if whole is not None else begun))
        request = self.request(text, direction, interventions, decoding, source_ids)
        if whole is not None or begun:
            return self._traced([replace(request, target=whole, prefix=begun)])[0]
        # A long text goes through alone: padding would change how its maps' rows are summed.
        alone = object() if self._is_long(request) else None
        key = (request.interventions, decoding, self.forced_prefix(request.direction), alone)
        return self.requests(request, length=len(request.source_ids), key=key)

    def _begun(self, prefix: str | Sequence[int] | None, direction: str | None) -> tuple[int, ...]:
        if isinstance(prefix, str):
            prefix = [*self.forced_prefix(direction), *self.encode_typed(prefix)] if prefix.strip() else ()
        return () if prefix is None or not len(prefix) else tuple(self.check_target(prefix))

    def trace_batch(
        self, texts: Sequence[str], direction: str | None = None, *, interventions: Changes = NO_INTERVENTIONS
    ) -> list[TranslationTrace]:
        """Translate many in one batch. The steps that find the ids leave behind what every map follows from."""
        requests = [self.request(text, direction, interventions) for text in texts]
        if not any(map(self._is_long, requests)):
            return self._traced(requests)
        return [self._traced([request])[0] for request in requests]

    def request(
        self,
        text: str | None,
        direction: str | None,
        interventions: Changes,
        decoding: Decoding = GREEDY,
        source_ids: Sequence[int] | None = None,
    ) -> Request:
        """A text tidied and encoded, with what it asks for. ValueError, in words, for what cannot be served."""
        direction = self.check_direction(direction)
        interventions = self._with_vectors(joined(self.changes, interventions), direction)
        self.model.check(interventions, batch=1)
        if source_ids is None:
            ids = self.encode(text := text or "", direction)
        else:
            ids = self._within(whole_ids(source_ids, self.config.vocabulary_size))
            text = self.tokenizer.decode_source(ids) if text is None else text
        interventions.check_positions(len(ids), self.max_tokens)
        return Request(tidy(text), tuple(ids), direction, interventions, decoding)

    def _is_long(self, request: Request) -> bool:
        """Whether a pass over this text and its translation would hold too much of its maps."""
        source = len(request.source_ids)
        target = len(request.target) if request.target is not None else self._limits([request.source_ids], ())[0]
        return isinstance(self.model, Transformer) and self.requests.limits.holds(self.config, source, target)

    def _traced(self, requests: Sequence[Request]) -> list[TranslationTrace]:
        """Traces of requests of equal interventions, decoding and forced prefixes, in one batch."""
        if not requests:
            return []
        started = time.perf_counter()
        sources = [list(request.source_ids) for request in requests]
        try:
            targets, recorded = self._decode_and_record(sources, requests[0])
        except torch.OutOfMemoryError as error:
            if len(requests) > 1 or self.device.type == "cpu":
                raise  # of many, the batcher tries again with fewer
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
            room=self.requests.limits.trace_bytes,
        )
        return [build(row, request, targets[row]) for row, request in enumerate(requests)]

    @property
    def weight_bytes(self) -> int:
        """Of all parameters."""
        return sum(parameter.nbytes for parameter in self.model.parameters())

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
                self._twin = Translator(twin, torch.device("cpu"), limits=self.requests.limits)
            return self._twin

    def translate_batch(
        self,
        texts: Sequence[str],
        direction: str | None = None,
        *,
        batch_size: int = 64,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> list[str]:
        """Translations of many texts without maps, in length-sorted batches; order is kept. beam: the width of the
        search, 1 to 8; 1 is greedy decoding. length_penalty: as in model.beam.beam_search. An empty text gives an
        empty translation. ValueError for a text or a setting that cannot be used."""
        direction = self.check_direction(direction)
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

    def generate(
        self,
        sources: Sequence[list[int]],
        direction: str | None = None,
        *,
        batch_size: int = 64,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> list[list[int]]:
        """translate_batch between ids: source ids (of encode()) -> y1 .. yT, with `</s>` unless stopped by length."""
        Decoding(beam, length_penalty)  # raises
        prefix = self.forced_prefix(direction)
        sources = [whole_ids(ids, self.config.vocabulary_size) for ids in sources]

        def decoded(rows: list[int]) -> list[list[int]]:
            batch = [sources[i] for i in rows]
            if beam == 1:
                return [[*prefix, *ids] for ids in self._greedy(batch, prefix)]
            return [
                list(r.hypotheses[0].ids)
                for r in self.beam(batch, direction, width=beam, length_penalty=length_penalty)
            ]

        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))  # the longest first: none is last alone
        batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
        found = map_over_cores(decoded, batches) if self.device.type == "cpu" else map(decoded, batches)
        results: list[list[int]] = [[] for _ in sources]
        for rows, ids in zip(batches, found):
            for i, target in zip(rows, ids):
                results[i] = target
        return results

    def log_probabilities(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]], *, batch_size: int = 64
    ) -> list[list[float]]:
        """The natural log-probability of each target token y1 .. yT given its source and the tokens before it."""
        sources = [whole_ids(ids, self.config.vocabulary_size) for ids in sources]
        targets = [whole_ids(ids, self.config.num_target_tokens) for ids in targets]
        return scoring.of_targets(
            self.model,
            sources,
            targets,
            begin_id=self.tokenizer.begin_id,
            device=self.device,
            batch_size=batch_size,
            interventions=self.changes,
        )

    @torch.inference_mode()
    def beam(
        self,
        sources: Sequence[Sequence[int]],
        direction: str | None = None,
        *,
        width: int = 5,
        length_penalty: float = 0.0,
        n_best: int = 1,
        keep_pruned: bool = False,
        interventions: Changes = NO_INTERVENTIONS,
        prefix: Sequence[int] = (),
    ) -> list[BeamResult]:
        """Beam search for a batch of source ids (of encode()); the options are those of model.beam.beam_search.
        prefix: what all hypotheses begin with; empty: what every translation in this direction begins with.

        Eight parameters: those of beam_search() that a user chooses.
        """
        prefix = tuple(prefix) or self.forced_prefix(direction)
        sources = [whole_ids(ids, self.config.vocabulary_size) for ids in sources]
        interventions = self._with_vectors(joined(self.changes, interventions), direction)
        memory = self.model.encode(self._padded(sources), interventions=interventions)
        return beam_search(
            self.model,
            memory,
            self._limits(sources, prefix),
            begin_id=self.tokenizer.begin_id,
            end_id=self.tokenizer.end_id,
            width=width,
            length_penalty=length_penalty,
            n_best=n_best,
            interventions=interventions,
            prefix=prefix,
            keep_pruned=keep_pruned,
        )

    def run(
        self,
        texts: Sequence[str],
        targets: Sequence[str] | None = None,
        *,
        names: Sequence[str] = ("*.resid_post",),
        direction: str | None = None,
        grad: bool = False,
    ) -> Run:
        """The values of one pass over these sentences at named places, by name or glob: run["decoder.2.resid_post"],
        [batch, position, d_model]. targets: translations to read, one per text; None: the model's own. grad: keep
        gradients for what is returned. ValueError for names, texts or targets that cannot be used; runs() is for many
        sentences."""
        if not texts:
            raise ValueError("there is no text to read: name one or more")
        return next(self.runs(texts, targets, names=names, direction=direction, grad=grad, room=sys.maxsize))

    def runs(
        self,
        texts: Iterable[str],
        targets: Iterable[str] | None = None,
        *,
        names: Sequence[str] = ("*.resid_post",),
        direction: str | None = None,
        grad: bool = False,
        room: int = 1 << 28,
    ) -> Iterator[Run]:
        """run() in order, with as many sentences at a time as fit into `room` bytes: any number of sentences can be
        streamed. Seven parameters: those of run(), and how much memory to use."""
        check_transformer(self.model)
        direction = self.check_direction(direction)
        pairs = zip(texts, repeat(None)) if targets is None else paired(texts, targets)
        for part in batched(pairs, room if room == sys.maxsize else AT_ONCE):
            sources = [self.encode(text, direction) for text, _ in part]
            wanted = (
                self.generate(sources, direction)
                if targets is None
                else [self.encode_target(target, direction) for _, target in part]
            )
            lengths = [*zip(map(len, sources), map(len, wanted))]
            for rows in chunks(self.config, names, lengths, room):
                found = run(
                    self.model,
                    [sources[i] for i in rows],
                    [wanted[i] for i in rows],
                    names,
                    begin_id=self.tokenizer.begin_id,
                    interventions=self.changes,
                    grad=grad,
                )
                tokens = tuple(
                    (
                        self.tokenizer.source_tokens(sources[i], tidy(part[i][0])),
                        self.tokenizer.tokens(self._decoder_ids(wanted[i])),
                    )
                    for i in rows
                )
                yield replace(found, tokens=tokens)

    def traces(
        self, texts: Iterable[str], direction: str | None = None, *, batch_size: int = 32
    ) -> Iterator[TranslationTrace]:
        """translate() of any number of texts, in their order, `batch_size` at a time on each core (on one GPU): no
        more are in memory at once."""
        at_once = torch.get_num_threads() if self.device.type == "cpu" else 1
        for part in batched(texts, at_once * batch_size):
            by_length = sorted(range(len(part)), key=lambda i: -len(part[i]))  # what is padded takes time, too
            rows = list(batched(by_length, min(batch_size, math.ceil(len(part) / at_once))))
            asked = [[part[i] for i in batch] for batch in rows]
            found = map_over_cores(partial(self.trace_batch, direction=direction), asked)
            traces = dict(zip(chain(*rows), chain(*found)))
            yield from (traces[i] for i in range(len(part)))

    def inspect(
        self,
        source_ids: Sequence[int],
        target_ids: Sequence[int],
        *,
        interventions: Changes = NO_INTERVENTIONS,
        beside: Sequence[Sequence[int]] = (),
    ) -> ForwardOutput:
        """One recorded teacher-forced pass of a batch of one, or of as many rows as a sweep has. target_ids: y1 .. yT,
        `</s>` or not; the decoder reads `<s>` and all of them but the last, so that row t predicts target_ids[t].
        beside: other sources of the same target, as further rows. A Refusal for texts whose full record does not fit
        into memory."""
        interventions = self._with_vectors(joined(self.changes, interventions))
        rows = interventions.rows if isinstance(interventions, Sweep) else 1
        source = whole_ids(source_ids, self.config.vocabulary_size)
        if not source:
            raise Refusal("The text is empty: type a sentence to translate.")
        target = self._decoder_ids(whole_ids(target_ids, self.config.num_target_tokens))
        if FLOAT * self.config.pass_numbers(len(source), len(target)) > self.requests.limits.batch_bytes:
            raise Refusal(
                "A full record of a pass over texts of {source} and {target} tokens does not fit into memory: ask "
                "about a shorter text.",
                source=len(source),
                target=len(target),
            )
        sources = [*[source] * rows, *map(list, beside)]
        return self._inspect(sources, [target] * len(sources), interventions)

    def _decoder_ids(self, target_ids: Sequence[int]) -> list[int]:
        return [self.tokenizer.begin_id, *target_ids[:-1]]

    def step_limit(self, source_length: int) -> int:
        """How many tokens a translation may have, including a given beginning: a little more than twice the source,
        within max_tokens."""
        return min(self.max_tokens - 1, 2 * source_length + 10)

    def _limits(self, sources: Sequence[Sequence[int]], prefix: tuple[int, ...]) -> list[int]:
        room, given = self.max_tokens - 1 - len(prefix), len(prefix)
        # A long prefix still gets a few steps of its own, as far as the model reaches.
        return [min(max(self.step_limit(len(ids)) - given, 10), room) for ids in sources]

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

    @torch.inference_mode()
    def _greedy(self, sources: list[list[int]], prefix: tuple[int, ...]) -> list[list[int]]:
        return greedy(
            self.model,
            self.model.encode(self._padded(sources), interventions=self.changes),
            self._limits(sources, prefix),
            begin_id=self.tokenizer.begin_id,
            end_id=self.tokenizer.end_id,
            prefix=prefix,
            interventions=self.changes,
        )

    @torch.inference_mode()
    def _inspect(self, sources: list[list[int]], decoder_ids: list[list[int]], interventions: Changes) -> ForwardOutput:
        return self.model(self._padded(sources), self._padded(decoder_ids), interventions=interventions, record=True)

    def _padded(self, sequences: list[list[int]]) -> Tensor:
        return pad(sequences, self.tokenizer.pad_id).to(self.device)

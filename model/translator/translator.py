"""The class Translator: a checkpoint's tokenizer and network, and a batcher that joins the calls of many threads."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from attention_atlas.model import checkpoint as checkpoints
from attention_atlas.model.checkpoint import Checkpoint, Example
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.decode.beam import BeamResult, beam_search
from attention_atlas.model.decode.runs import AT_ONCE, Item, Run, batched, chunks, paired, run
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.decode.trace_builder import Request
from attention_atlas.model.nets import blocks
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.places.registry import Place, places
from attention_atlas.model.nets.places.visit import At, check_positions, has_visits
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes, Sweep, add_changes, changes_from_edits, combine
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.batching import Batcher
from attention_atlas.model.serve.cores import map_over_cores
from attention_atlas.model.serve.device import choose_device
from attention_atlas.model.serve.limits import FLOAT, BatchLimits
from attention_atlas.model.text.interface import TextTokenizer, normalize_text
from attention_atlas.model.trace import check_count, check_sequence
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.directions import Languages, parse_direction
from attention_atlas.model.trace.edits import Edit
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.trace.survey.survey import Survey
from attention_atlas.model.trace.tokens import check_ids
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator.steering import fill_vectors
from attention_atlas.model.translator.tracing import is_long, trace_requests

__all__ = ["Sentence", "Translator"]

Sentence = str | Sequence[int] | TranslationTrace
"""A text, its ids, or a trace, which holds the ids of both sides."""


class Translator:
    """A checkpoint on a device: it translates, and returns traces of everything that happened inside.

    >>> translator = Translator.load("de-en", device="cpu")
    >>> trace = translator.translate("Der Hund schläft.")
    >>> trace.translation, trace.cross.weights.shape  # [layers, heads, target, source]
    ('The dog is sleeping.', (4, 8, 6, 6))

    One instance serves many threads: it joins the requests that they make at the same time into batches.

    tokenizer     text to ids and back
    model         the network: a Transformer or another of model.nets.networks; edited copies share it
    max_tokens    the most tokens that each side of a sentence may have
    languages     those of which any pair is a direction, beyond `directions`; None if there are none
    weight_bytes  the bytes of the model's parameters
    changes       the edits that every pass makes, empty unless edit() made this translator
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, *, limits: BatchLimits = BatchLimits()) -> None:
        self.name: str = checkpoint.name
        self.digest: str = checkpoint.digest
        self.metrics: dict[str, Any] = checkpoint.metrics
        self.directions: tuple[str, ...] = checkpoint.directions
        self.languages: Languages | None = checkpoint.languages
        self.examples: Mapping[str, tuple[Example, ...]] = checkpoint.examples
        self.survey: Survey | None = checkpoint.survey
        self.folder: Path | None = checkpoint.folder
        self.recipe: ToyRecipe | None = checkpoint.recipe
        self.tokenizer: TextTokenizer = checkpoint.tokenizer
        self.model: Transformer = checkpoint.model
        self.config: ModelConfig = checkpoint.model.config
        self.limits: BatchLimits = limits
        self.max_tokens: int = limits.max_text_tokens(self.config)
        self.weight_bytes: int = sum(parameter.nbytes for parameter in self.model.parameters())
        self.changes: Changes = NO_INTERVENTIONS
        self.to(device)

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None, *, limits: BatchLimits = BatchLimits()) -> Translator:
        """Load a checkpoint.

        folder   a checkpoint's folder, or the name of a shipped one, such as "de-en"
        device   "cpu", "cuda" or "mps"; None: CUDA if present, else the CPU
        limits   bounds on memory and waiting, for servers

        Raises ValueError if the folder holds no checkpoint or the device cannot be used.
        """
        return cls(checkpoints.load(folder), choose_device(device), limits=limits)

    def to(self, device: torch.device) -> None:
        """Move the model to a device. Call it only before an app starts serving."""
        self.model.to(device)
        self.device: torch.device = device
        # A new batcher, too: a process forked from this one would lack the threads of the old one.
        self._batcher: Batcher[Request, TranslationTrace] = Batcher(
            partial(trace_requests, self),
            self.limits,
            size=lambda length: FLOAT * self.config.pass_numbers(length, self.step_limit(length)),
        )

    @cached_property
    def cpu_copy(self) -> Translator:
        """A copy of the model on the CPU, for the rare text that is too long for the device's memory."""
        model = type(self.model)(self.config)
        model.load_state_dict({name: tensor.cpu() for name, tensor in self.model.state_dict().items()})
        checkpoint = Checkpoint(
            self.name,
            model.eval(),
            self.tokenizer,
            self.directions,
            self.metrics,
            self.digest,
            languages=self.languages,
        )
        return Translator(checkpoint, torch.device("cpu"), limits=self.limits)

    # Texts and ids

    def check_direction(self, direction: str | None) -> str:
        """Return the direction, or the checkpoint's first for None. Raises Refusal if the checkpoint lacks it."""
        direction = self.directions[0] if direction is None else direction
        if direction not in self.directions and not (self.languages and direction in self.languages):
            raise Refusal(
                "Unknown direction {direction}: this model translates {all}.",
                direction=repr(direction),
                all=", ".join(self.directions),
            )
        return direction

    def encode(self, text: str, direction: str | None = None) -> list[int]:
        """Return the source ids of a text, with the symbols that the encoder reads around it: `<2xx>` .. `</s>`.

        Raises Refusal if the text is empty or longer than max_tokens, or the direction is not the checkpoint's.
        """
        text = normalize_text(text)
        return self._check_source(self._encode_source(text, direction) if text else [])

    def encode_typed(self, text: str, *, joined: bool = False) -> list[int]:
        """Return the ids of text that a person types into a target. Raises Refusal for empty text.

        joined: without the space that starts a word.
        """
        if not (text := normalize_text(text)):
            raise Refusal("There is no text: type at least one word.")
        return (self.tokenizer.encode_joined if joined else self.tokenizer.encode)(text)

    def encode_target(self, text: str, direction: str | None = None) -> list[int]:
        """Return the ids of a whole translation: the forced prefix, the text's ids, `</s>`.

        Raises Refusal for empty text.
        """
        return [*self.forced_prefix(direction), *self.encode_typed(text), self.tokenizer.end_id]

    def source_ids(self, sentence: Sentence, direction: str | None = None) -> list[int]:
        """Return the source ids of a text, of ids or of a trace; ids and a trace's ids are used unchanged.

        Raises Refusal as encode() does, and ValueError for ids outside the vocabulary.
        """
        if isinstance(sentence, str):
            return self.encode(sentence, direction)
        ids = sentence.source_ids if isinstance(sentence, TranslationTrace) else sentence
        return self._check_source(check_ids(ids, self.config.vocabulary_size))

    def target_ids(self, sentence: Sentence, direction: str | None = None) -> list[int]:
        """Return the target ids of a text, of ids or of a trace.

        A trace's ids are those that the model wrote, which may differ from the encoding of its translation. Raises
        Refusal as encode_target() does, and ValueError for ids outside the vocabulary.
        """
        if isinstance(sentence, str):
            return self.encode_target(sentence, direction)
        ids = sentence.target_ids if isinstance(sentence, TranslationTrace) else sentence
        return check_ids(ids, self.config.num_target_tokens)

    def check_target(self, target_ids: Sequence[int]) -> list[int]:
        """Return the ids as a list. Raises Refusal if there are none or too many, or `</s>` before the last."""
        ids, limit = check_ids(target_ids, self.config.num_target_tokens), self.max_tokens - 1
        if not ids:
            raise Refusal("The target is empty: type a translation.")
        if len(ids) > limit:
            raise Refusal("The target is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=limit)
        if self.tokenizer.end_id in ids[:-1]:
            raise Refusal("Nothing can follow the end of the sentence.")
        return ids

    def fits(self, text: str, direction: str | None = None) -> bool:
        """Return whether a text has at most max_tokens tokens."""
        return len(self._encode_source(normalize_text(text), direction)) <= self.max_tokens

    def forced_prefix(self, direction: str | None = None) -> tuple[int, ...]:
        """Return the ids that every translation in this direction begins with; most models have none."""
        return self.tokenizer.forced_prefix(parse_direction(self.check_direction(direction))[1])

    def step_limit(self, source_length: int) -> int:
        """Return the most tokens a translation may have, its prefix included: 10 more than twice the source's."""
        return min(self.max_tokens - 1, 2 * source_length + 10)

    def step_limits(
        self, sources: Sequence[Sequence[int]], prefix: Sequence[int] = (), max_length: int | None = None
    ) -> list[int]:
        """Return the most tokens that each translation may add to a prefix; a long prefix gets at least ten steps if
        the model reaches that far.

        max_length: of the whole translation, `</s>` included; at least one token is added to a prefix.
        """
        longest = self.max_tokens - 1 - len(prefix)
        if max_length is not None:
            longest = min(longest, max(check_count("max_length", max_length) - len(prefix), 1))
        return [min(max(self.step_limit(len(ids)) - len(prefix), 10), longest) for ids in sources]

    def pad(self, sequences: list[list[int]]) -> Tensor:
        """Return id sequences as one tensor [batch, length] on the model's device, padded on the right."""
        return pad(sequences, self.tokenizer.pad_id).to(self.device)

    def _encode_source(self, text: str, direction: str | None) -> list[int]:
        source, target = parse_direction(self.check_direction(direction))
        return self.tokenizer.encode_source(text, target, source)

    def _check_source(self, ids: list[int]) -> list[int]:
        if not ids:
            raise Refusal("The text is empty: type a sentence to translate.")
        if len(ids) > self.max_tokens:
            raise Refusal(
                "The text is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=self.max_tokens
            )
        return ids

    def _check_sources(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        checked = [check_ids(ids, self.config.vocabulary_size) for ids in check_sequence("sources", sources)]
        if not all(checked):
            raise Refusal("The text is empty: type a sentence to translate.")
        return checked

    # Passes

    def places(self) -> tuple[Place, ...]:
        """Return every place of a pass (TransformerLens: hook point), with its name and axes, as edit() and run() take
        them. Raises Refusal for a network that is not a Transformer."""
        check_transformer(self.model)
        return places(self.config)

    def edit(self, edits: Mapping[str, Edit | Callable[[Tensor, At], Tensor]]) -> Self:
        """Return a translator that edits named places in every pass, decoding step and batch.

        edits: place or glob -> Add, Replace, Scale or Ablate (model.trace.edits), which a trace records, or a function
        of the tensor and its location (model.nets.places.At) that returns the tensor to continue with; a trace records
        only that there was such a function.

        The copy shares the model with this translator, which other threads may use meanwhile. Edits of an edited
        translator come after its earlier ones; an edit that it already makes is not made again when it is also passed
        as `interventions`. A trace's maps are the softmax's output: an edit of `pattern` shows in run(), not in them.
        Analyses that read the model's parts instead of running it (Why, circuits) refuse an edited translator.

        Raises ValueError for an unknown place. Usable in a `with` statement.

        >>> translator = Translator.load("checkpoints/de-en", device="cpu")
        >>> translator.edit({"logits": lambda values, at: 2 * values}).translate("Ja.").translation
        'Yes.'
        """
        check_transformer(self.model)
        copied = copy.copy(self)
        copied.changes = fill_vectors(self, combine(self.changes, changes_from_edits(edits)))
        self.model.check(copied.changes, batch=1)
        return copied

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing to undo: the edits end with this copy."""

    def inspect(
        self,
        source: Sentence,
        target: Sentence | None = None,
        *,
        direction: str | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        more_sources: Sequence[Sequence[int]] = (),
    ) -> ForwardOutput:
        """Run one recorded teacher-forced pass, with a row for each intervention of a sweep.

        source, target  texts, ids or traces; None: the source trace's own target. Target ids are y1 .. yT, with `</s>`
                        or without; the decoder reads `<s>` and all of them but the last, so that row t predicts
                        target_ids[t]
        direction       of texts
        more_sources    source ids of further rows, which read the same target

        Raises Refusal for texts whose full record does not fit into memory.
        """
        if target is None:
            if not isinstance(source, TranslationTrace):
                raise ValueError("there is no target to read: only a trace has its own")
            target = source
        interventions = fill_vectors(self, add_changes(self.changes, interventions))
        rows = interventions.rows if isinstance(interventions, Sweep) else 1
        source_ids = self.source_ids(source, direction)
        decoder_ids = [self.tokenizer.begin_id, *self.target_ids(target, direction)[:-1]]
        if FLOAT * self.config.pass_numbers(len(source_ids), len(decoder_ids)) > self.limits.batch_bytes:
            raise Refusal(
                "Recording a full pass over {source} and {target} tokens does not fit into memory: try a shorter text.",
                source=len(source_ids),
                target=len(decoder_ids),
            )
        sources = [*[source_ids] * rows, *map(list, more_sources)]
        check_positions(interventions, self.config, sources, self.max_tokens)
        inputs = self.pad([decoder_ids] * len(sources))
        with torch.inference_mode():
            return self.model(self.pad(sources), inputs, interventions=interventions, record=True)

    def run(
        self,
        texts: Sequence[Sentence] | TranslationTrace,
        targets: Sequence[Sentence] | None = None,
        *,
        names: Sequence[str] = ("*.resid_post",),
        direction: str | None = None,
        grad: bool = False,
    ) -> Run:
        """Return the values at named places in one pass over these sentences.

        run["decoder.2.resid_post"] is a tensor [batch, position, d_model].

        texts     texts, ids or traces; or one trace. Only a trace's tokens are used, not its interventions
        targets   the translations to read, one for each text; None: a trace's own, else what the model translates
        names     places or globs
        grad      keep the graph, for torch.autograd.grad

        Raises ValueError for names, texts or targets that cannot be used. For many sentences use runs().
        """
        texts = [texts] if isinstance(texts, TranslationTrace) else texts
        if not check_sequence("texts", texts):
            raise ValueError("there is no text to read: name one or more")
        return next(self.runs(texts, targets, names=names, direction=direction, grad=grad, max_bytes=sys.maxsize))

    def runs(
        self,
        texts: Iterable[Sentence],
        targets: Iterable[Sentence] | None = None,
        *,
        names: Sequence[str] = ("*.resid_post",),
        direction: str | None = None,
        grad: bool = False,
        max_bytes: int = 1 << 28,
    ) -> Iterator[Run]:
        """Yield run() for successive batches of a stream of sentences.

        max_bytes: the memory of one batch's tensors; a sentence that needs more is read alone.
        """
        check_transformer(self.model)
        if not check_sequence("names", names):
            raise ValueError("there is no place to read: name one or more")
        direction = self.check_direction(direction)
        pairs = zip(check_sequence("texts", texts), repeat(None)) if targets is None else paired(texts, targets)
        for part in batched(pairs, max_bytes if max_bytes == sys.maxsize else AT_ONCE):
            sentences = [text for text, _ in part]
            part_targets = [
                text if target is None and isinstance(text, TranslationTrace) else target for text, target in part
            ]
            source_ids = [self.source_ids(text, direction) for text in sentences]
            check_positions(self.changes, self.config, source_ids, self.max_tokens)
            to_translate = [ids for ids, target in zip(source_ids, part_targets) if target is None]
            translations = iter(self.generate(to_translate, direction))
            target_ids = [
                next(translations) if target is None else self.target_ids(target, direction) for target in part_targets
            ]
            for rows in chunks(self.config, names, [*zip(map(len, source_ids), map(len, target_ids))], max_bytes):
                values = run(
                    self.model,
                    [source_ids[i] for i in rows],
                    [target_ids[i] for i in rows],
                    names,
                    begin_id=self.tokenizer.begin_id,
                    interventions=self.changes,
                    grad=grad,
                )
                tokens = tuple(
                    (
                        self._source_tokens(sentences[i], source_ids[i]),
                        self.tokenizer.tokens([self.tokenizer.begin_id, *target_ids[i][:-1]]),
                    )
                    for i in rows
                )
                yield replace(values, tokens=tokens)

    def _source_tokens(self, sentence: Sentence, ids: list[int]) -> tuple[str, ...]:
        if isinstance(sentence, TranslationTrace):
            return sentence.source_tokens
        text = sentence if isinstance(sentence, str) else self.tokenizer.decode_source(ids)
        return self.tokenizer.source_tokens(ids, normalize_text(text))

    @torch.inference_mode()
    def log_probabilities(
        self,
        sources: Sequence[Sentence],
        targets: Sequence[Sentence] | None = None,
        *,
        direction: str | None = None,
        batch_size: int = 64,
    ) -> list[list[float]]:
        """Return the natural log-probability of each target token y1 .. yT given its source and the tokens before it.

        sources, targets: texts, ids or traces. None: the sources are traces, whose own targets are read.
        """
        if targets is None:
            if not all(isinstance(source, TranslationTrace) for source in check_sequence("sources", sources)):
                raise ValueError("there are no targets to read: only traces have their own")
            targets = sources
        if len(check_sequence("sources", sources)) != len(check_sequence("targets", targets)):
            raise ValueError(f"each source has its target: found {len(sources)} and {len(targets)}")
        sources = [self.source_ids(source, direction) for source in sources]
        targets = [self.target_ids(target, direction) for target in targets]
        check_positions(self.changes, self.config, sources, self.max_tokens)
        results: list[list[float]] = [[] for _ in sources]
        by_length = sorted((i for i in range(len(sources)) if targets[i]), key=lambda i: len(targets[i]))
        for batch in batched(by_length, batch_size):
            inputs = self.pad([[self.tokenizer.begin_id, *targets[i][:-1]] for i in batch])
            output = self.model(self.pad([sources[i] for i in batch]), inputs, interventions=self.changes)
            ids = self.pad([targets[i] for i in batch])
            if has_visits(self.changes):  # edits of logits depend on the position, which blocks of rows do not show
                values = output.logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
            else:
                hidden, vocabulary = output.hidden.flatten(0, 1), self.config.num_target_tokens
                values = blocks.log_probabilities(output.project, hidden, ids.flatten(), vocabulary)
            for i, row in zip(batch, values.view(ids.shape).tolist()):
                results[i] = row[: len(targets[i])]
        return results

    # Translations without maps

    def translate_batch(
        self,
        texts: Iterable[str],
        direction: str | None = None,
        *,
        batch_size: int = 64,
        beam: int = 1,
        length_penalty: float = 0.0,
        max_length: int | None = None,
    ) -> list[str]:
        """Return the translations of many texts, without maps, in the order of the texts.

        batch_size       texts in one pass, sorted by length
        beam             the width of the search, 1 to 8; 1 is greedy decoding
        length_penalty   as in model.decode.beam.beam_search
        max_length       the most tokens of a translation, `</s>` included; None: ten more than twice the source's

        An empty text has an empty translation. Raises ValueError for a text or a setting that cannot be used.
        """
        direction, texts = self.check_direction(direction), list(check_sequence("texts", texts))
        rows = [i for i, text in enumerate(texts) if normalize_text(text)]
        targets = self.generate(
            [self.encode(texts[i], direction) for i in rows],
            direction,
            batch_size=batch_size,
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
        )
        translations = dict(zip(rows, map(self.tokenizer.decode, targets)))
        return [translations.get(i, "") for i in range(len(texts))]

    def generate(
        self,
        sources: Sequence[Sequence[int]],
        direction: str | None = None,
        *,
        batch_size: int = 64,
        beam: int = 1,
        length_penalty: float = 0.0,
        max_length: int | None = None,
    ) -> list[list[int]]:
        """Return the target ids y1 .. yT of source ids (as encode() gives them), with `</s>` unless cut by length.

        The options are those of translate_batch().
        """
        Decoding(beam, length_penalty)  # raises for a width or penalty that cannot be used
        prefix = self.forced_prefix(direction)
        sources = self._check_sources(sources)
        check_positions(self.changes, self.config, sources, self.max_tokens)

        def decode(rows: Sequence[int]) -> list[list[int]]:
            batch = [sources[i] for i in rows]
            if beam > 1:
                searches = self.beam(batch, direction, width=beam, length_penalty=length_penalty, max_length=max_length)
                return [list(search.hypotheses[0].ids) for search in searches]
            with torch.inference_mode():
                targets = greedy(
                    self.model,
                    self.model.encode(self.pad(batch), interventions=self.changes),
                    self.step_limits(batch, prefix, max_length),
                    begin_id=self.tokenizer.begin_id,
                    end_id=self.tokenizer.end_id,
                    prefix=prefix,
                    interventions=self.changes,
                )
            return [[*prefix, *ids] for ids in targets]

        return self._in_batches(decode, list(map(len, sources)), batch_size)

    def _in_batches(
        self, work: Callable[[Sequence[int]], Sequence[Item]], lengths: Sequence[int], batch_size: int
    ) -> list[Item]:
        """Return the results of rows of these lengths, in order. work(rows) computes those of a batch.

        Rows of similar length share a batch, so that little is padded. There are as few batches as batch_size allows,
        and they are equal: a small last one would leave a core waiting for the others.
        """
        rows = len(lengths)
        count = math.ceil(rows / check_count("batch size", batch_size))
        longest_first = sorted(range(rows), key=lambda i: -lengths[i])
        batches = list(batched(longest_first, math.ceil(rows / count))) if rows else []
        results = map_over_cores(work, batches) if self.device.type == "cpu" else map(work, batches)
        by_row = dict(zip(chain(*batches), chain(*results)))
        return [by_row[i] for i in range(rows)]

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
        max_length: int | None = None,
    ) -> list[BeamResult]:
        """Search a batch of source ids (as encode() gives them) with a beam.

        The options are those of model.decode.beam.beam_search, and max_length, as in translate_batch(). prefix: the ids
        that all hypotheses begin with; empty: those that every translation in this direction begins with. Raises
        Refusal for a prefix that ends the sentence or leaves no token to add.
        """
        if not (sources := self._check_sources(sources)):
            return []
        if not len(prefix):
            prefix = self.forced_prefix(direction)
        else:
            prefix, limit = tuple(self.check_target(prefix)), self.max_tokens - 1
            if prefix[-1] == self.tokenizer.end_id:
                raise Refusal("Nothing can follow the end of the sentence.")
            if len(prefix) >= limit:
                raise Refusal("The target is {n} tokens long; the limit is {limit} tokens.", n=len(prefix), limit=limit)
        interventions = fill_vectors(self, add_changes(self.changes, interventions), direction)
        check_positions(interventions, self.config, sources, self.max_tokens)
        return beam_search(
            self.model,
            self.model.encode(self.pad(sources), interventions=interventions),
            self.step_limits(sources, prefix, max_length),
            begin_id=self.tokenizer.begin_id,
            end_id=self.tokenizer.end_id,
            width=width,
            length_penalty=length_penalty,
            n_best=n_best,
            interventions=interventions,
            prefix=prefix,
            keep_pruned=keep_pruned,
        )

    # Traces

    def translate(
        self,
        text: str,
        direction: str | None = None,
        *,
        interventions: Changes = NO_INTERVENTIONS,
        beam: int = 1,
        length_penalty: float = 0.0,
        max_length: int | None = None,
    ) -> TranslationTrace:
        """Translate one text and return everything that happened inside.

        direction       such as "de-en"; None: the checkpoint's first
        interventions   changes of the pass, such as Interventions(heads_off=[("cross", 2, 4)])
        beam, length_penalty, max_length   as in translate_batch()

        Raises ValueError as trace() does.
        """
        return self.trace(
            text,
            direction,
            interventions=interventions,
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
        )

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
        max_length: int | None = None,
    ) -> TranslationTrace:
        """Translate a text or source ids, or force a target in whole or in part, and return the trace.

        text, source_ids   the source, as a text or as the ids of encode(); with both, the ids are read and the text is
                           their label
        target   the whole translation, read as if the model had written it: a text, or ids y1 .. yT with `</s>` or
                 (unfinished) without. A trace's own target_ids reproduce it to the last digit
        prefix   the beginning of the translation, a text or ids; decoding continues from there, for at least ten steps
                 if the model reaches that far

        Concurrent calls without target and prefix share batches (model/serve/batching.py).

        Raises ValueError for a text, ids, a target or interventions that cannot be used, and Busy when more requests
        wait than the limits allow.
        """
        if target is not None and (prefix is not None or (beam, length_penalty, max_length) != (1, 0.0, None)):
            raise ValueError(
                "a target is the whole of a translation: give it without prefix, beam, length_penalty and max_length"
            )
        prefix = self._encode_prefix(prefix, direction) if target is None else ()
        if isinstance(target, str):
            target = self.encode_target(target, direction)
        if target is None and (prefix[-1:] == (self.tokenizer.end_id,) or len(prefix) == self.max_tokens - 1):
            target = prefix  # nothing can follow it
        if target is not None:
            target = tuple(self.check_target(target))
        decoding = Decoding(beam, length_penalty, len(prefix if target is None else target))
        request = replace(self._request(text, direction, interventions, decoding, source_ids), max_length=max_length)
        if target is not None or prefix:
            return trace_requests(self, [replace(request, target=target, prefix=prefix)])[0]
        # A long text is read alone: padding would change the order of sums in its maps.
        alone = object() if is_long(self, request) else None
        key = (request.interventions, decoding, max_length, self.forced_prefix(request.direction), alone)
        return self._batcher(request, length=len(request.source_ids), key=key)

    def trace_batch(
        self, texts: Iterable[str], direction: str | None = None, *, interventions: Changes = NO_INTERVENTIONS
    ) -> list[TranslationTrace]:
        """Return the traces of many texts, translated in one batch. Raises ValueError as trace() does."""
        requests = [self._request(text, direction, interventions) for text in check_sequence("texts", texts)]
        if not any(is_long(self, request) for request in requests):
            return trace_requests(self, requests)
        return [trace_requests(self, [request])[0] for request in requests]

    def traces(
        self, texts: Iterable[str], direction: str | None = None, *, batch_size: int = 32
    ) -> Iterator[TranslationTrace]:
        """Yield the traces of a stream of texts, in their order.

        `batch_size` texts at a time are translated on each core, or on one GPU, and no more are in memory at once.
        Raises ValueError as trace() does.
        """
        workers = torch.get_num_threads() if self.device.type == "cpu" else 1
        for part in batched(check_sequence("texts", texts), workers * check_count("batch size", batch_size)):
            lengths = [len(normalize_text(text)) for text in part]
            yield from self._in_batches(
                lambda rows, part=part: self.trace_batch([part[i] for i in rows], direction),
                lengths,
                batch_size=math.ceil(len(part) / workers),
            )

    def _encode_prefix(self, prefix: str | Sequence[int] | None, direction: str | None) -> tuple[int, ...]:
        if isinstance(prefix, str):
            prefix = [*self.forced_prefix(direction), *self.encode_typed(prefix)] if prefix.strip() else ()
        ids = () if prefix is None else check_ids(prefix, self.config.num_target_tokens)
        return tuple(self.check_target(ids)) if ids else ()

    def _request(
        self,
        text: str | None,
        direction: str | None,
        interventions: Changes,
        decoding: Decoding = GREEDY,
        source_ids: Sequence[int] | None = None,
    ) -> Request:
        """Return a checked request. Raises ValueError for anything that cannot be served."""
        direction = self.check_direction(direction)
        interventions = fill_vectors(self, add_changes(self.changes, interventions), direction)
        self.model.check(interventions, batch=1)
        if source_ids is None:
            ids = self.encode(text := text or "", direction)
        else:
            ids = self._check_source(check_ids(source_ids, self.config.vocabulary_size))
            text = self.tokenizer.decode_source(ids) if text is None else text
        check_positions(interventions, self.config, [ids], self.max_tokens)
        return Request(normalize_text(text), tuple(ids), direction, interventions, decoding)

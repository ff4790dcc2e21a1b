"""A network on a device: its passes, read and changed at any place, and its decoding of any number of texts.

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> translator.edit({"logits": lambda values, at: 2 * values}).translate("Ja.").translation  # the same, more surely
'Yes.'
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Self

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.decode import scoring
from attention_atlas.model.decode.beam import BeamResult, beam_search
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.recipes import (
    check_differ,
    check_place,
    difference,
    recipes_without_vector,
    token_means,
    with_vectors,
)
from attention_atlas.model.decode.runs import AT_ONCE, Run, batched, chunks, paired, run
from attention_atlas.model.nets.lean.halves import looking_once
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.places.registry import Place, places
from attention_atlas.model.nets.places.visit import At, check_positions
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes, Sweep, edited, joined, with_given
from attention_atlas.model.serve.cores import map_over_cores
from attention_atlas.model.serve.limits import FLOAT, BatchLimits
from attention_atlas.model.text.tidy import tidy
from attention_atlas.model.trace import check_sequence
from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.edits import Edit, Recipe
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import whole_ids
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator.loaded import Loaded
from attention_atlas.model.translator.texts import Sentence

__all__ = ["Passes"]


class Passes(Loaded):
    """The network, without a line of requests before it."""

    def __init__(self, checkpoint: Checkpoint, device: torch.device, limits: BatchLimits) -> None:
        super().__init__(checkpoint, device, limits)
        self.limits: BatchLimits = limits
        self.changes: Changes = NO_INTERVENTIONS  # that every pass of edit()'s copies is made with

    def places(self) -> tuple[Place, ...]:
        """Every place of a pass by its name, with its axes: what edit() and run() take. A Refusal for a network that
        is not a Transformer."""
        check_transformer(self.model)
        return places(self.config)

    def edit(self, edits: Mapping[str, Edit | Callable[[Tensor, At], Tensor]]) -> Self:
        """This translator with something changed at named places, in everything that it does: one pass, steps, beam,
        batches. It shares the model, and other threads may use it alongside this one. Edits of an edited translator
        come after those that it has. Edits passed as `interventions` that it already has are not made again.

        edits: place or glob -> Add, Replace, Scale or Ablate (model.trace.edits), which a trace keeps, or a function of
        the tensor and of where it is (model.nets.places.At) that returns the tensor to continue with; a trace
        records such a function only in words. What reads the model's parts instead of running it (Why, circuits)
        refuses an edited translator. A trace's maps are what the softmax gave: an edit of `pattern` shows in run(),
        not in them. ValueError for an unknown place. Usable in a `with` statement."""
        check_transformer(self.model)
        changed = copy.copy(self)
        changed.changes = self._with_vectors(joined(self.changes, edited(edits)))
        self.model.check(changed.changes, batch=1)
        return changed

    def _with_vectors(self, changes: Changes, direction: str | None = None) -> Changes:
        """The same changes, with the vectors that their recipes lack, as this model without its edits makes them.

        A Refusal where the texts are more than a batch of two texts of the greatest length: interventions that
        strangers ask for may hold many recipes."""
        if not (recipes := recipes_without_vector(changes)):
            return changes
        check_transformer(self.model)
        places: dict[str, set[str]] = {}  # to read, by direction
        ids: dict[str, dict[str, list[int]]] = {}  # by direction and text
        for place, recipe in recipes:
            check_place(place, self.config)
            languages = self.check_direction(recipe.languages or direction)
            places.setdefault(languages, set()).add(place)
            known = ids.setdefault(languages, {})
            for text in (recipe.towards, recipe.away):
                if text not in known:
                    known[text] = self.encode(text, languages)
                    self._check_recipe_texts([len(row) for rows in ids.values() for row in rows.values()])
            check_differ(known[recipe.towards], known[recipe.away])
        plain = copy.copy(self)
        plain.changes = NO_INTERVENTIONS
        means = {}
        for languages, known in ids.items():
            run = plain.run(tuple(known), names=sorted(places[languages]), direction=languages)
            means[languages] = {place: dict(zip(known, token_means(run, place))) for place in run.names}

        def vector(place: str, recipe: Recipe) -> np.ndarray:
            found = means[self.check_direction(recipe.languages or direction)][place]
            return difference(found[recipe.towards], found[recipe.away])

        return with_vectors(changes, vector)

    def _check_recipe_texts(self, lengths: Sequence[int]) -> None:
        """A Refusal unless texts of these lengths are at most as large a batch as one recipe's two may be."""
        if len(lengths) * max(lengths) > 2 * self.max_tokens:
            raise Refusal(
                "The directions are made of {n} sentences of up to {longest} tokens; together the limit is {limit} "
                "tokens.",
                n=len(lengths),
                longest=max(lengths),
                limit=2 * self.max_tokens,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass  # an edit ends with the translator that has it: there is nothing to take back

    def inspect(
        self,
        source: Sentence,
        target: Sentence | None = None,
        *,
        direction: str | None = None,
        interventions: Changes = NO_INTERVENTIONS,
        beside: Sequence[Sequence[int]] = (),
    ) -> ForwardOutput:
        """One recorded teacher-forced pass of a batch of one, or of as many rows as a sweep has. source, target: texts,
        ids or a trace; of a trace alone its own target is read. Target ids are y1 .. yT, `</s>` or not; the decoder
        reads `<s>` and all of them but the last, so that row t predicts target_ids[t]. direction: of texts. beside:
        other sources of the same target, as further rows. A Refusal for texts whose full record does not fit into
        memory."""
        interventions = self._with_vectors(with_given(self.changes, interventions))
        rows = interventions.rows if isinstance(interventions, Sweep) else 1
        if target is None:
            if not isinstance(source, TranslationTrace):
                raise ValueError("there is no target to read: only a trace has its own")
            target = source
        source_ids = self.source_ids(source, direction)
        read = self._decoder_ids(self.target_ids(target, direction))
        if FLOAT * self.config.pass_numbers(len(source_ids), len(read)) > self.limits.batch_bytes:
            raise Refusal(
                "A full record of a pass over texts of {source} and {target} tokens does not fit into memory: ask "
                "about a shorter text.",
                source=len(source_ids),
                target=len(read),
            )
        sources = [*[source_ids] * rows, *map(list, beside)]
        check_positions(interventions, self.config, sources, self.max_tokens)
        return self._inspect(sources, [read] * len(sources), interventions)

    def run(
        self,
        texts: Sequence[Sentence] | TranslationTrace,
        targets: Sequence[Sentence] | None = None,
        *,
        names: Sequence[str] = ("*.resid_post",),
        direction: str | None = None,
        grad: bool = False,
    ) -> Run:
        """The values of one pass over these sentences at named places, by name or glob: run["decoder.2.resid_post"],
        [batch, position, d_model]. texts: each a text, ids or a trace; or one trace. targets: translations to read, one
        per text, each a text, ids or a trace; None: a trace's own tokens, and otherwise what the model translates.
        Of a trace the tokens alone are used, not its interventions. grad: keep the graph, for torch.autograd.grad.
        ValueError for names, texts or targets that cannot be used; runs() is for many sentences."""
        texts = [texts] if isinstance(texts, TranslationTrace) else texts
        if not check_sequence("texts", texts):
            raise ValueError("there is no text to read: name one or more")
        return next(self.runs(texts, targets, names=names, direction=direction, grad=grad, room=sys.maxsize))

    def runs(
        self,
        texts: Iterable[Sentence],
        targets: Iterable[Sentence] | None = None,
        *,
        names: Sequence[str] = ("*.resid_post",),
        direction: str | None = None,
        grad: bool = False,
        room: int = 1 << 28,
    ) -> Iterator[Run]:
        """run() in order, with as many sentences at a time as fit into `room` bytes: any number of sentences can be
        streamed."""
        check_transformer(self.model)
        if not check_sequence("names", names):
            raise ValueError("there is no place to read: name one or more")
        direction = self.check_direction(direction)
        pairs = zip(check_sequence("texts", texts), repeat(None)) if targets is None else paired(texts, targets)
        for part in batched(pairs, room if room == sys.maxsize else AT_ONCE):
            sources = [self.source_ids(text, direction) for text, _ in part]
            check_positions(self.changes, self.config, sources, self.max_tokens)
            wanted = self._targets_of(part, sources, direction)
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
                        self._source_tokens(sources[i], part[i][0]),
                        self.tokenizer.tokens(self._decoder_ids(wanted[i])),
                    )
                    for i in rows
                )
                yield replace(found, tokens=tokens)

    def _targets_of(
        self, pairs: Sequence[tuple[Sentence, Sentence | None]], sources: Sequence[list[int]], direction: str
    ) -> list[list[int]]:
        """The target ids of each (text, target); where there is no target, a trace's own or what the model writes."""
        given = [text if target is None and isinstance(text, TranslationTrace) else target for text, target in pairs]
        written = iter(self.generate([ids for ids, target in zip(sources, given) if target is None], direction))
        return [next(written) if target is None else self.target_ids(target, direction) for target in given]

    def _source_tokens(self, ids: list[int], sentence: Sentence) -> tuple[str, ...]:
        if isinstance(sentence, TranslationTrace):
            return sentence.source_tokens
        text = sentence if isinstance(sentence, str) else self.tokenizer.decode_source(ids)
        return self.tokenizer.source_tokens(ids, tidy(text))

    def generate(
        self,
        sources: Sequence[Sequence[int]],
        direction: str | None = None,
        *,
        batch_size: int = 64,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> list[list[int]]:
        """translate_batch between ids: source ids (of encode()) -> y1 .. yT, with `</s>` unless stopped by length."""
        Decoding(beam, length_penalty)  # raises
        prefix = self.forced_prefix(direction)
        sources = self._checked(sources)
        check_positions(self.changes, self.config, sources, self.max_tokens)

        def decoded(rows: Sequence[int]) -> list[list[int]]:
            batch = [sources[i] for i in rows]
            if beam == 1:
                return [[*prefix, *ids] for ids in self._greedy(batch, prefix)]
            return [
                list(r.hypotheses[0].ids)
                for r in self.beam(batch, direction, width=beam, length_penalty=length_penalty)
            ]

        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))  # the longest first: none is last alone
        # As many as there have to be, of one size: the last would leave a core waiting for the others.
        least = len(list(batched(order, batch_size)))
        batches = list(batched(order, math.ceil(len(order) / least))) if least else []
        each = looking_once(decoded)
        found = map_over_cores(each, batches) if self.device.type == "cpu" else map(each, batches)
        results: list[list[int]] = [[] for _ in sources]
        for rows, ids in zip(batches, found):
            for i, target in zip(rows, ids):
                results[i] = target
        return results

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
        """Beam search for a batch of source ids (of encode()); the options are those of model.decode.beam.beam_search.
        prefix: what all hypotheses begin with; empty: what every translation in this direction begins with. A Refusal
        for a prefix that ends the sentence or is as long as a target may be."""
        if not (sources := self._checked(sources)):
            return []
        prefix = self._check_prefix(prefix) if len(prefix) else self.forced_prefix(direction)
        interventions = self._with_vectors(with_given(self.changes, interventions), direction)
        check_positions(interventions, self.config, sources, self.max_tokens)
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

    def _check_prefix(self, prefix: Sequence[int]) -> tuple[int, ...]:
        """The ids themselves. A Refusal unless a token can follow them."""
        ids = self.check_target(prefix)
        if ids[-1] == self.tokenizer.end_id:
            raise Refusal("Nothing can follow the end of the sentence.")
        if len(ids) >= (limit := self.max_tokens - 1):
            raise Refusal("The target is {n} tokens long; the limit is {limit} tokens.", n=len(ids), limit=limit)
        return tuple(ids)

    def log_probabilities(
        self,
        sources: Sequence[Sentence],
        targets: Sequence[Sentence] | None = None,
        *,
        direction: str | None = None,
        batch_size: int = 64,
    ) -> list[list[float]]:
        """The natural log-probability of each target token y1 .. yT given its source and the tokens before it. sources,
        targets: each a text, ids or a trace; targets None: those of the sources, which then are traces. direction: of
        texts."""
        if targets is None:
            if not all(isinstance(source, TranslationTrace) for source in check_sequence("sources", sources)):
                raise ValueError("there are no targets to read: only traces have their own")
            targets = sources
        if len(check_sequence("sources", sources)) != len(check_sequence("targets", targets)):
            raise ValueError(f"each source has its target: found {len(sources)} and {len(targets)}")
        sources = [self.source_ids(source, direction) for source in sources]
        targets = [self.target_ids(target, direction) for target in targets]
        check_positions(self.changes, self.config, sources, self.max_tokens)
        return scoring.of_targets(
            self.model,
            sources,
            targets,
            begin_id=self.tokenizer.begin_id,
            device=self.device,
            batch_size=batch_size,
            interventions=self.changes,
        )

    def _checked(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        found = [whole_ids(ids, self.config.vocabulary_size) for ids in check_sequence("sources", sources)]
        if not all(found):
            raise Refusal("The text is empty: type a sentence to translate.")
        return found

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

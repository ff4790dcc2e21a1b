"""One question with all that methods share: its ids, its recorded pass, and how to run the model from changed rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.again import check_again
from attention_atlas.model.analysis.why.means_cache import stored_means
from attention_atlas.model.analysis.why.metric import measure
from attention_atlas.model.analysis.why.passes.change import Change
from attention_atlas.model.analysis.why.pinned import ask
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace import check_integer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.language import Refusal, Words, say
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against, Columns, Question, make_columns
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.translator import Translator

Baseline = tuple[np.ndarray | Tensor, np.ndarray | Tensor]  # of source and prefix, [d_model] or [positions, d_model]
CHUNK_TOKENS = 4096  # of both sides, in one batch of counterfactuals: bounds memory, costs no speed
CPU_TOKENS = (
    1024  # the same on the CPU, whose caches hold what a layer makes of these: products are up to 1.5 times faster
)
APART = 512  # so many are worth a thread of their own


@dataclass(frozen=True, eq=False)
class Case:
    """source_ids [1, source]; decoder_ids [1, step + 1], up to the question's row and no further: nothing later can
    matter to it. means: of a corpus, or None. cross_layer: the one whose cross-attention stands for all; None: their
    mean. baseline: where integrated gradients start; None: from mean_rows."""

    model: Transformer
    question: Question
    source_ids: Tensor
    decoder_ids: Tensor
    columns: Columns
    interventions: Interventions = NO_INTERVENTIONS
    means: Means | None = None
    cross_layer: int | None = None
    baseline: Baseline | None = None

    @cached_property
    def output(self) -> ForwardOutput:
        """The recorded pass."""
        with torch.inference_mode():
            return self.model(self.source_ids, self.decoder_ids, interventions=self.interventions, record=True)

    @cached_property
    def source_rows(self) -> Tensor:
        """Scaled token embeddings [1, source, d_model], without positions."""
        return self._rows(self.source_ids, decoder=False)

    @cached_property
    def target_rows(self) -> Tensor:
        """Scaled token embeddings [1, step + 1, d_model], without positions."""
        return self._rows(self.decoder_ids, decoder=True)

    def _rows(self, ids: Tensor, *, decoder: bool) -> Tensor:
        with torch.inference_mode(False), torch.no_grad():  # plain tensors: gradients start from them, too
            return self.model.token_rows(ids, decoder=decoder)

    @cached_property
    def mean_rows(self) -> tuple[Tensor, Tensor, Words]:
        """What an average token of either side is [d_model], without position, and of what it is the average."""
        if self.means is not None:
            source, target = (
                torch.from_numpy(row).to(self.source_rows)
                for row in (self.means.source_embedding, self.means.target_embedding)
            )
            return source, target, say("mean embedding of {n} sentences", n=self.means.sentences)
        with torch.inference_mode(False), torch.no_grad():
            source, target = (
                matrix.mean(0) * self.model.scale for matrix in (self.model.embedding.weight, self.model.target_matrix)
            )
        return source, target, say("mean embedding of the vocabulary")

    @cached_property
    def baseline_rows(self) -> tuple[Tensor, Tensor, str]:
        """Where integrated gradients start: source and prefix rows, of the shapes of source_rows and target_rows, and
        what they are. ValueError for a baseline of other shapes."""
        if self.baseline is None:
            *rows, what = self.mean_rows
        else:
            given = tuple(self.baseline)
            if len(given) != 2:  # one array would be taken apart: its first two rows, or numbers
                raise ValueError(f"a baseline is of source and of prefix, a pair of rows; found {len(given)}")
            rows = [torch.as_tensor(values).detach().to(self.source_rows) for values in given]
            what = "given baseline"
            if not all(row.isfinite().all() for row in rows):
                raise ValueError("a baseline's numbers must be finite")
        try:
            return (*(row.expand_as(own) for row, own in zip(rows, (self.source_rows, self.target_rows))), what)
        except RuntimeError as error:
            shapes = [list(row.shape) for row in (*rows, self.source_rows[0], self.target_rows[0])]
            raise ValueError(
                f"a baseline is of source and of prefix, each a row [d_model] or a row for each position, here "
                f"{shapes[2]} and {shapes[3]}; found {shapes[0]} and {shapes[1]}"
            ) from error

    def metric(self) -> float:
        """The metric of the plain pass, in nats."""
        with torch.inference_mode():
            return float(measure(self.model, self.question, self.output.hidden[:, -1])[0])

    def encode(self, rows: Tensor, keys: Tensor | None = None, changes: Changes | None = None) -> SourceMemory:
        """Sources from rows [batch, source, d_model] in place of token embeddings. keys: bool [batch, source], the
        positions that may be read, by the encoder and by the decoder; None: all. changes: in place of the case's own
        interventions."""
        changes = self.interventions if changes is None else changes
        mask = None if keys is None else keys[:, None, None, :]
        placed = self.model.place(rows, changes)
        memory, _ = self.model.encoder(placed, mask, interventions=changes, last=rows.shape[1])
        return SourceMemory(memory, mask)

    def decode(
        self,
        rows: Tensor,
        source: SourceMemory,
        keys: Tensor | None = None,
        changes: Changes | None = None,
        *,
        first: int = 0,
    ) -> Tensor:
        """The decoder's output [batch, d_model] at the question's row, from rows [batch, step + 1, d_model] in place of
        token embeddings. keys: bool [batch, step + 1], what later rows may read; each row reads itself.
        changes: as in encode(). first: the rows before it are those of the plain pass, and not computed again."""
        changes = self.interventions if changes is None else changes
        length = rows.shape[1]
        mask = causal_mask(length, first_query=first, device=rows.device)
        if keys is not None:
            itself = torch.eye(length, dtype=torch.bool, device=rows.device)[first:]
            mask = mask & (keys[:, None, None, :] | itself)
        placed = self.model.place(rows[:, first:], changes, first=first, decoder=True, lengths=source.lengths)
        cache = self._plain_rows(first, len(rows)) if first else None
        hidden, _ = self.model.decoder(placed, mask, source, interventions=changes, cache=cache, last=1)
        return hidden[:, 0]

    def _plain_rows(self, count: int, batch: int) -> KeyValueCache:
        """What rows after the first `count` read of these in the plain pass, for each row of a batch."""
        cache = self.model.new_cache()
        for kept, record in zip(cache.layers, self.output.decoder_records):
            read = record.self_attention
            kept.keys, kept.values = (each.expand(batch, -1, -1, -1).clone() for each in (read.keys, read.values))
        cache.length = count
        return cache

    def measure(self, hidden: Tensor) -> Tensor:
        """The metric [batch] of the decoder's output at the question's row [batch, d_model]."""
        return measure(self.model, self.question, hidden)

    @torch.inference_mode()
    def run(self, change: Change) -> Tensor:
        """The decoder's output at the question's row after each change, [batch, d_model]. Changes that leave the source
        alone share the plain pass's memory."""
        assert not change.masked_source.all(-1).any(), "a source of which nothing may be read"
        hidden = self.output.hidden.new_empty(len(change), self.output.hidden.shape[-1])
        at_source = change.at_source
        # In one batch those with the same source, which is then encoded once, or whose prefix begins to differ late.
        order = np.lexsort((change.first_rows, change.sources()[1], ~at_source))
        kinds = np.split(order, [at_source.sum()])
        parts = [rows[part] for rows in kinds for part in self.chunks(len(rows))]
        for rows, found in zip(parts, map_on_spare_core(lambda rows: self._run(change[rows]), parts)):
            hidden[torch.from_numpy(rows)] = found
        return hidden

    def _run(self, change: Change) -> Tensor:
        sources, which = change.sources()
        masked_source, masked_prefix, replaced_source, replaced_prefix = (
            torch.from_numpy(part).to(self.source_ids.device) for part in change.parts
        )
        mean_source, mean_target, _ = self.mean_rows
        if at_source := change.at_source.any():
            some = torch.from_numpy(sources).to(self.source_ids.device)
            memory = self.encode(
                torch.where(replaced_source[some, :, None], mean_source, self.source_rows),
                ~masked_source[some] if masked_source.any() else None,
            )
            memory = chosen(self.model, memory, torch.from_numpy(which).to(some))
        else:
            memory = self.shared_memory(len(change))
        return self.decode(
            torch.where(replaced_prefix[..., None], mean_target, self.target_rows),
            memory,
            ~masked_prefix if masked_prefix.any() else None,
            first=0 if at_source else int(change.first_rows.min()),
        )

    def effects(self, change: Change) -> np.ndarray:
        """m(x) - m(changed x), float64 [batch]: positive where what was taken away spoke for the token."""
        with torch.inference_mode():
            return self.metric() - self.measure(self.run(change)).cpu().numpy()

    def shared_memory(self, batch: int) -> SourceMemory:
        """The plain pass's encoded source for every row of a batch."""
        return expanded(self.model, self._plain_memory, batch)

    @cached_property
    def _plain_memory(self) -> SourceMemory:
        return SourceMemory(self.output.memory, None)

    def chunks(self, count: int) -> list[slice]:
        """Slices of `count` counterfactuals that fit into one batch each; on the CPU of one size, and two where one
        would do but has work for two threads. Which cores are free changes none: rounding depends on a batch's size."""
        tokens = self.source_ids.shape[1] + self.decoder_ids.shape[1]
        if self.source_ids.device.type != "cpu":
            size = max(1, CHUNK_TOKENS // tokens)
        else:
            fewest = max(-(-count // max(1, min(CPU_TOKENS, CHUNK_TOKENS) // tokens)), 1 + (count * tokens > APART))
            size = max(1, -(-count // fewest))
        return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def chosen(model: Transformer, memory: SourceMemory, rows: Tensor) -> SourceMemory:
    """The sources of these rows [batch]. The keys and values of each are projected once, whatever number has it."""
    if len(memory.memory) == 1:
        return expanded(model, memory, len(rows))
    if len(memory.memory) < len(rows):
        for layer in model.decoder.layers:
            memory.keys_values(layer)
    return memory.select(rows)


def expanded(model: Transformer, memory: SourceMemory, batch: int) -> SourceMemory:
    """One source for every row of a batch, its keys and values projected once and not copied."""
    projected = {}
    for layer in model.decoder.layers:
        keys, values = memory.keys_values(layer)
        projected[layer.index] = keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1)
    mask = None if memory.mask is None else memory.mask.expand(batch, -1, -1, -1)
    return SourceMemory(memory.memory.expand(batch, -1, -1), mask, projected=projected)


def open_case(
    translator: Translator,
    trace: TranslationTrace,
    question: Question,
    *,
    words: bool = True,
    means: Means | None = None,
    cross_layer: int | None = None,
    baseline: Baseline | None = None,
) -> Case:
    """The case of a question about a trace; the options are those of attribution.attribute. The trace's own
    interventions hold in every run. ValueError if they cannot be run again, or if other weights wrote it.
    Seven parameters: it takes the options of attribute() one by one, as that does."""
    check_again(translator, trace, taken_apart=True)
    if parts := translator.config.without:
        raise Refusal(
            "this network is built without {parts}: the experiments know only networks that have it",
            parts=", ".join(parts),
        )
    if means is not None and means.digest != translator.digest:
        raise ValueError(f"these means are of other weights ({means.digest}, here {translator.digest})")
    layers = translator.config.num_decoder_layers
    if cross_layer is not None and not 0 <= check_integer("layer", cross_layer) < layers:
        raise ValueError(f"cross has layers 0 to {layers - 1}, found {cross_layer}")
    device = translator.device
    return Case(
        translator.model,
        question,
        torch.tensor([trace.source_ids], device=device),
        torch.tensor([trace.decoder_ids[: question.step + 1]], device=device),
        make_columns(trace, question.step, words=words),
        trace.interventions,
        means,
        cross_layer=cross_layer,
        baseline=baseline,
    )


def ask_case(translator: Translator, trace: TranslationTrace, step: int | None, contrast: str | int | Against) -> Case:
    """The case of a question that is asked as in pinned.ask(), with the checkpoint's own means. The errors of both."""
    return open_case(translator, trace, ask(translator, trace, step, contrast), means=stored_means(translator))

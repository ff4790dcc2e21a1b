"""Decode greedily or along given ids, and return the distributions of each step with every attention map.

The maps of a decode follow from the queries and keys of its cached steps (StepMaps), without a second pass. Where the
steps do not determine them, one recorded teacher-forced pass over the decoded ids gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from attention_atlas.model.decode.distributions import DistributionCollector, Distributions, concatenate, summarize
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.long_text import LongTextCache
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.attention import attention_weights
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.decoder_step import LayerQueriesKeys
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask, pad
from attention_atlas.model.nets.places.visit import Visit, project_logits, visit
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side, SubLayerName
from attention_atlas.model.trace.maps import ComputedWeights


class Maps(Protocol):
    """The attention maps of a batch: a ForwardOutput, the StepMaps of a decode, or a LongTextCache."""

    @property
    def kinds(self) -> tuple[AttentionKind, ...]: ...

    def maps(self, kind: AttentionKind, row: int) -> Tensor | ComputedWeights: ...


@dataclass(frozen=True, eq=False)
class RecordedDecode:
    """output: the maps of a batch's ids; distributions: those that each sentence's tokens were chosen by."""

    output: Maps
    distributions: list[Distributions]


class StepRecorder:
    """The distributions, and optionally the queries and keys, of a batch's steps as a decode takes them."""

    def __init__(self, num_sentences: int, *, maps: bool) -> None:
        """maps: whether to store what maps() needs."""
        self.distributions = DistributionCollector(num_sentences)
        self.sentences: list[int] = []  # the sentence of each row, in the order of the steps
        self.queries_keys: list[Sequence[LayerQueriesKeys]] = []  # of each step; empty where Transformer.decode ran it
        self._stores_maps = maps

    def add(self, sentences: list[int], decoder: StepDecoder, chosen: Tensor) -> None:
        """Add a step: the sentences that are the decoder's batch, and their chosen tokens int64 [sentences]."""
        self.distributions.add(sentences, decoder.logits, chosen)
        if self._stores_maps:
            self.sentences += sentences
            self.queries_keys.append(decoder.queries_keys)

    def maps(self, model: Transformer, source: SourceMemory, changes: Changes) -> StepMaps | None:
        """Return the maps of all sentences, over encoded sources with records; None where the steps do not give them.

        They do not where a step read several tokens or ran Transformer.decode, nor without a look-ahead mask.
        """
        if not self._stores_maps or not all(self.queries_keys) or not model.config.look_ahead_mask:
            return None
        return StepMaps(self, model, source, changes)


class StepMaps:
    """The attention maps of a decode, computed from its steps' queries and keys when they are read."""

    def __init__(self, steps: StepRecorder, model: Transformer, source: SourceMemory, changes: Changes) -> None:
        self.steps, self.model, self.source = steps, model, source
        self.changes: Changes = changes
        self.owners = torch.tensor(steps.sentences)
        visits = [self._visit(changes, layer) for layer in range(len(model.decoder.layers))]
        self.is_plain = all(each is None for each in (*visits, *model.decoder.biases(0, 1, changes)))
        # Small maps are computed on the CPU, without launching kernels for each sentence; edits have their own device.
        self.device = torch.device("cpu") if self.is_plain else source.memory.device

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        return TRANSFORMER_KINDS

    def maps(self, kind: AttentionKind, row: int) -> Tensor:
        """Return every map of a kind of one sentence: [layers, heads, query, key]."""
        if kind is AttentionKind.ENCODER_SELF:
            return torch.stack([weights[row] for weights in self._encoder])
        changes = self.changes
        if isinstance(changes, Sweep) and changes.rows > 1:
            changes = changes.select(torch.tensor([row]))
        compute = self._cross_maps if kind is AttentionKind.CROSS else self._self_maps
        steps = (self.owners == row).nonzero()[:, 0]
        with torch.inference_mode():
            if self.is_plain:
                return compute(slice(None), row, steps, None, None)
            biases = self.model.decoder.biases(0, len(steps), changes)
            return torch.cat(
                [
                    compute(slice(layer, layer + 1), row, steps, self._visit(changes, layer), bias)
                    for layer, bias in enumerate(biases)
                ]
            )

    def _visit(self, changes: Changes, layer: int) -> Visit | None:
        return visit(changes, f"{Side.DECODER.value}.{layer}", 0, self.model.config)

    def _self_maps(self, layers: slice, row: int, steps: Tensor, edits: Visit | None, bias: Tensor | None) -> Tensor:
        """Return the maps of self-attention, [layers, heads, query, key]; edits and bias are those of one layer."""
        edit_at = None if edits is None else edits.within(SubLayerName.SELF_ATTENTION)
        queries, keys = self._rows("queries", layers, steps), self._rows("keys", layers, steps)
        if edit_at is not None and bias is not None:
            bias = edit_at("bias", bias)
        mask = causal_mask(queries.shape[2], device=queries.device)
        scaled = self.model.decoder.layers[0].self_attention.scaled
        return attention_weights(queries, keys, mask, bias=bias, scaled=scaled, edit_at=edit_at)

    def _cross_maps(self, layers: slice, row: int, steps: Tensor, edits: Visit | None, bias: Tensor | None) -> Tensor:
        """Return the maps of cross-attention, which has no bias."""
        edit_at = None if edits is None else edits.within(SubLayerName.CROSS_ATTENTION)
        keys, mask = self._source
        keys, mask = keys[layers, row], None if mask is None else mask[row : row + 1]
        queries = self._rows("cross_queries", layers, steps)
        keys = keys if edit_at is None else edit_at("k", keys)
        return attention_weights(
            queries, keys, mask, scaled=self.model.decoder.layers[0].cross_attention.scaled, edit_at=edit_at
        )

    def _rows(self, name: str, layers: slice, steps: Tensor) -> Tensor:
        """Return the queries or keys of one sentence's steps, [layers, heads, step, d_head]."""
        return self._all_rows[name][layers].index_select(1, steps.to(self.device)).transpose(1, 2)

    @cached_property
    def _all_rows(self) -> dict[str, Tensor]:
        """By name of LayerQueriesKeys, the rows of all steps one after the other: [layers, row, heads, d_head]."""
        layers = range(len(self.model.decoder.layers))
        return {
            name: torch.stack(
                [torch.cat([step[layer][number] for step in self.steps.queries_keys])[:, :, 0] for layer in layers]
            ).to(self.device)
            for number, name in enumerate(LayerQueriesKeys._fields)
        }

    @cached_property
    def _encoder(self) -> list[Tensor]:
        """The encoder's maps by layer: [sentence, heads, query, key]."""
        return [record.self_attention.weights.to(self.device) for record in self.source.records]

    @cached_property
    def _source(self) -> tuple[Tensor, Tensor | None]:
        """The keys of cross-attention [layers, sentence, heads, source, d_head], and the sources' padding mask."""
        keys = torch.stack([self.source.keys_values(layer)[0] for layer in self.model.decoder.layers])
        return keys.to(self.device), None if self.source.mask is None else self.source.mask.to(self.device)


def greedy_with_records(
    model: Transformer,
    source: SourceMemory,
    limits: list[int],
    *,
    begin_id: int,
    end_id: int,
    prefix: Sequence[int] = (),
    interventions: Changes = NO_INTERVENTIONS,
    long_text: LongTextCache | None = None,
) -> tuple[list[list[int]], RecordedDecode]:
    """Decode as greedy() does; return each sentence's ids, prefix included, and what was recorded of them.

    source: encoded with records, or with `long_text.storing`, which then stores a pass over the ids instead.
    """
    recorder = StepRecorder(len(limits), maps=long_text is None)
    continuations = greedy(
        model,
        source,
        limits,
        begin_id=begin_id,
        end_id=end_id,
        prefix=prefix,
        interventions=interventions,
        recorder=recorder,
    )
    targets = [[*prefix, *ids] for ids in continuations]
    return targets, _recorded(model, source, targets, recorder, begin_id, interventions, long_text)


def forced_with_records(
    model: Transformer,
    source: SourceMemory,
    ids: Sequence[int],
    *,
    begin_id: int,
    prefix_length: int = 0,
    interventions: Changes = NO_INTERVENTIONS,
    long_text: LongTextCache | None = None,
) -> RecordedDecode:
    """Record a decode of one sentence along given ids y1 .. yT.

    It takes the same steps as greedy_with_records(), so that greedy's own ids give the same numbers to the last bit.
    The first prefix_length ids are read in one pass, as greedy reads its prefix.
    """
    prefix_length = min(prefix_length, len(ids) - 1)
    decoder = StepDecoder(
        model,
        source,
        torch.tensor([[begin_id, *ids[:prefix_length]]], device=source.memory.device),
        interventions=interventions,
    )
    recorder = StepRecorder(1, maps=long_text is None)
    for step, token in enumerate(ids[prefix_length:], prefix_length):
        chosen = decoder.prefix.new_tensor([token])
        recorder.add([0], decoder, chosen)
        if step < len(ids) - 1:
            decoder.append(chosen)
    return _recorded(model, source, [list(ids)], recorder, begin_id, interventions, long_text)


def _recorded(
    model: Transformer,
    source: SourceMemory,
    targets: list[list[int]],
    recorder: StepRecorder,
    begin_id: int,
    interventions: Changes,
    long_text: LongTextCache | None,
) -> RecordedDecode:
    by_sentence = recorder.distributions.by_sentence()
    if (maps := recorder.maps(model, source, interventions)) is not None:
        return RecordedDecode(maps, by_sentence)
    device = source.memory.device
    inputs = pad([[begin_id, *ids[:-1]] for ids in targets], model.config.pad_id).to(device)
    changes = long_text.storing if long_text else interventions
    output = model.read(source, inputs, interventions=changes, record=long_text is None)
    for row, (ids, steps) in enumerate(zip(targets, by_sentence)):
        if first := len(ids) - len(steps):  # the prefix was read in one pass, without steps
            hidden, prefix = output.hidden[row, :first], torch.tensor(ids[:first], device=device)
            by_sentence[row] = concatenate([*_summarize_hidden(model, hidden, prefix, interventions), steps])
    return RecordedDecode(long_text or output, by_sentence)


def with_distributions(
    model: Transformer,
    output: ForwardOutput,
    targets: Sequence[Sequence[int]],
    interventions: Changes = NO_INTERVENTIONS,
    long_text: LongTextCache | None = None,
) -> RecordedDecode:
    """Add to a teacher-forced pass the distributions that it gives along each sentence's target ids.

    The pass is a recorded one, or one that `long_text` stored.
    """
    rows = [torch.tensor(ids, device=output.hidden.device) for ids in targets]
    return RecordedDecode(
        long_text or output,
        [
            concatenate(_summarize_hidden(model, output.hidden[row, : len(ids)], ids, interventions))
            for row, ids in enumerate(rows)
        ],
    )


def _summarize_hidden(model: Transformer, hidden: Tensor, ids: Tensor, interventions: Changes) -> list[Distributions]:
    """Summarize the decoder's output from the first step on, hidden [step, d_model], along ids [step], in blocks."""
    return [
        summarize(project_logits(model, hidden[None, part], interventions, first=part.start)[0], ids[part])
        for part in blocks(len(ids), model.config.num_target_tokens)
    ]

"""Decode greedily or along given ids, and return the distributions of each step with every attention map.

The maps of a decode follow from the queries and keys of its cached steps (StepMaps), without a second pass. Where the
steps do not determine them, one recorded teacher-forced pass over the decoded ids gives them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from attention_atlas.model.decode.long_text import LongTextCache
from attention_atlas.model.decode.steps import StepDecoder, greedy
from attention_atlas.model.nets.attention import attention_weights
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.decoder_step import LayerQueriesKeys
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask, pad
from attention_atlas.model.nets.places.visit import has_visits, project_logits, visit
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side
from attention_atlas.model.trace.maps import ComputedWeights

TOP_TOKENS = 10  # candidates stored for each step of a trace


@dataclass(frozen=True, eq=False)
class Distributions:
    """The next-token distributions of one sentence's steps, in float32 unless said otherwise:

    top_ids            int64 [step, k], the k most probable tokens
    top_probabilities  [step, k]
    chosen_rank        int64 [step], rank of the token that was chosen, from 1
    log_probability    [step], natural logarithm, of that token
    entropy            [step], bits
    """

    top_ids: Tensor
    top_probabilities: Tensor
    chosen_rank: Tensor
    log_probability: Tensor
    entropy: Tensor

    def __len__(self) -> int:
        return len(self.entropy)


def concatenate(parts: Sequence[Distributions]) -> Distributions:
    """Return the steps of all parts, in order."""
    return Distributions(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Distributions)))


def summarize(logits: Tensor, chosen: Tensor) -> Distributions:
    """Summarize logits [step, vocabulary] of any floating type; chosen int64 [step] are the tokens that were chosen."""
    logits = logits.float()
    log_p, p = logits.log_softmax(-1), logits.softmax(-1)  # a second softmax is faster than log_p.exp()
    top, top_ids = log_p.topk(min(TOP_TOKENS, log_p.shape[-1]), dim=-1)  # [step, k]
    chosen_log_p = log_p.gather(1, chosen[:, None])  # [step, 1]
    rank = (top > chosen_log_p).count_nonzero(-1) + 1
    below_top = chosen_log_p[:, 0] < top[:, -1]  # few steps: ranking all of them would take as long as the rest
    if below_top.any():
        rank[below_top] = (log_p[below_top] > chosen_log_p[below_top]).count_nonzero(-1) + 1
    return Distributions(
        top_ids,
        top.exp(),
        rank,
        chosen_log_p[:, 0],
        torch.linalg.vecdot(p, log_p) / -math.log(2),
    )


def split_by_sentence(steps: Sequence[Distributions], sentences: Sequence[int]) -> list[Distributions]:
    """Return each sentence's steps, in order. sentences: the sentence of each row of all steps, one after the other."""
    summary, owners = concatenate(steps), torch.tensor(sentences)
    order, counts = owners.argsort(stable=True).to(summary.entropy.device), owners.bincount().tolist()
    columns = (getattr(summary, field.name)[order].split(counts) for field in fields(Distributions))
    return [Distributions(*values) for values in zip(*columns)]


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

    def __init__(self, *, maps: bool) -> None:
        """maps: whether to store what maps() needs."""
        self.sentences: list[int] = []  # the sentence of each row, in the order of the steps
        self.summaries: list[Distributions] = []  # of each step
        self.queries_keys: list[Sequence[LayerQueriesKeys]] = []  # of each step; empty where Transformer.decode ran it
        self._stores_maps = maps

    def add(self, sentences: list[int], decoder: StepDecoder, chosen: Tensor) -> None:
        """Add a step: the sentences that are the decoder's batch, and their chosen tokens int64 [sentences]."""
        self.sentences += sentences
        self.summaries.append(summarize(decoder.logits, chosen))
        if self._stores_maps:
            self.queries_keys.append(decoder.queries_keys)

    def distributions(self) -> list[Distributions]:
        """Return each sentence's distributions, in the order of its steps."""
        return split_by_sentence(self.summaries, self.sentences)

    def maps(self, model: Transformer, source: SourceMemory, changes: Changes) -> StepMaps | None:
        """Return the maps of all sentences, over encoded sources with records; None where the steps do not give them.

        They do not where a step read several tokens or ran Transformer.decode, nor without a look-ahead mask.
        """
        if not self._stores_maps or not all(self.queries_keys) or not model.config.look_ahead_mask:
            return None
        return StepMaps(self, model, source, changes)


class StepMaps:
    """The attention maps of a decode, computed from its steps' queries and keys when they are read."""

    kinds = TRANSFORMER_KINDS

    def __init__(self, steps: StepRecorder, model: Transformer, source: SourceMemory, changes: Changes) -> None:
        self.model, self.changes = model, changes
        # Small maps are computed on the CPU, without launching kernels for each sentence; edits have their own device.
        self.device = source.memory.device if has_visits(changes) else torch.device("cpu")
        layers = model.decoder.layers
        self.owners = torch.tensor(steps.sentences, device=self.device)
        self.queries, self.keys, self.cross_queries = (  # each [layers, row, heads, d_head], the rows of all steps
            torch.stack(
                [torch.cat([step[layer][part] for step in steps.queries_keys])[:, :, 0] for layer in range(len(layers))]
            ).to(self.device)
            for part in range(len(LayerQueriesKeys._fields))
        )
        self.encoder = torch.stack([record.self_attention.weights for record in source.records]).to(self.device)
        self.source_keys = torch.stack([source.keys_values(layer)[0] for layer in layers]).to(self.device)
        self.source_mask = None if source.mask is None else source.mask.to(self.device)

    @torch.inference_mode()
    def maps(self, kind: AttentionKind, row: int) -> Tensor:
        """Return every map of a kind of one sentence: [layers, heads, query, key]."""
        if kind is AttentionKind.ENCODER_SELF:
            return self.encoder[:, row]
        changes, steps = self.changes, (self.owners == row).nonzero()[:, 0]
        if isinstance(changes, Sweep) and changes.rows > 1:
            changes = changes.select(torch.tensor([row]))
        biases = self.model.decoder.biases(0, len(steps), changes)
        return torch.cat([self._compute(kind, layer, row, steps, changes, bias) for layer, bias in enumerate(biases)])

    def _compute(
        self, kind: AttentionKind, layer: int, row: int, steps: Tensor, changes: Changes, bias: Tensor | None
    ) -> Tensor:
        """Return the maps of one layer, [1, heads, query, key]. bias: that of its self-attention."""
        edit_at = visit(changes, f"{Side.DECODER.value}.{layer}", 0, self.model.config).within(kind.sublayer)
        if kind is AttentionKind.CROSS:
            queries, keys, bias = self.cross_queries, edit_at("k", self.source_keys[layer, row][None]), None
            mask = None if self.source_mask is None else self.source_mask[row][None]
        else:
            queries, keys = self.queries, self.keys[layer, steps].transpose(0, 1)[None]
            bias = None if bias is None else edit_at("bias", bias.to(self.device))
            mask = causal_mask(len(steps), device=self.device)
        queries = queries[layer, steps].transpose(0, 1)[None]
        scaled = self.model.config.scale_scores
        return attention_weights(queries, keys, mask, bias=bias, scaled=scaled, edit_at=edit_at)


def greedy_with_records(
    model: Transformer,
    source: SourceMemory,
    limits: list[int],
    *,
    begin_id: int,
    end_id: int,
    prefix: Sequence[int] = (),
    forced: Sequence[int] | None = None,
    interventions: Changes = NO_INTERVENTIONS,
    long_text: LongTextCache | None = None,
) -> tuple[list[list[int]], RecordedDecode]:
    """Decode as greedy() does; return each sentence's ids, prefix included, and what was recorded of them.

    source: encoded with records, or with `long_text.storing`, which then stores a pass over the ids instead. Forced ids
    that greedy decoding would choose itself give the same numbers to the last bit.
    """
    recorder = StepRecorder(maps=long_text is None)
    continuations = greedy(
        model,
        source,
        limits,
        begin_id=begin_id,
        end_id=end_id,
        prefix=prefix,
        interventions=interventions,
        forced=forced,
        recorder=recorder,
    )
    targets = [[*prefix, *ids] for ids in continuations]
    by_sentence = recorder.distributions()
    if (maps := recorder.maps(model, source, interventions)) is not None:
        return targets, RecordedDecode(maps, by_sentence)
    device = source.memory.device
    inputs = pad([[begin_id, *ids[:-1]] for ids in targets], model.config.pad_id).to(device)
    changes = long_text.storing if long_text else interventions
    output = model.read(source, inputs, interventions=changes, record=long_text is None)
    for row, (ids, steps) in enumerate(zip(targets, by_sentence)):
        if first := len(ids) - len(steps):  # the prefix was read in one pass, without steps
            hidden, prefix = output.hidden[row, :first], torch.tensor(ids[:first], device=device)
            by_sentence[row] = concatenate([*_summarize_hidden(model, hidden, prefix, interventions), steps])
    return targets, RecordedDecode(long_text or output, by_sentence)


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

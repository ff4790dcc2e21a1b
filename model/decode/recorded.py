"""Decode greedily or along given ids, and return the distributions of each step with every attention map.

The maps of a decode follow from the queries and keys of its cached steps, without a second pass. Where the steps do not
determine them, one recorded teacher-forced pass over the decoded ids gives them. The maps of a batch are computed at
once and stay on its device until a trace of the batch is read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.decode.long_text import LongTextCache
from attention_atlas.model.decode.steps import StepDecoder, greedy
from attention_atlas.model.nets.attention import attention_weights
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.decoder_step import LayerQueriesKeys
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask, pad
from attention_atlas.model.nets.places.visit import project_logits, visit
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side

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

    def map(self, function: Callable[[Tensor], Tensor]) -> Distributions:
        """Return the distributions with function(tensor) in place of each tensor."""
        return Distributions(*(function(getattr(self, field.name)) for field in fields(self)))

    def split(self, lengths: Sequence[int]) -> list[Distributions]:
        """Return each sentence's distributions on the CPU, where these are of a batch: [sentence, step, ..].

        lengths: the number of steps of each sentence; later ones are padding.
        """
        on_cpu = self.map(Tensor.cpu)
        return [
            on_cpu.map(lambda column, row=row, steps=steps: column[row, :steps]) for row, steps in enumerate(lengths)
        ]


def concatenate(parts: Sequence[Distributions], axis: int = 0) -> Distributions:
    """Return the steps of all parts, in order."""
    names = [field.name for field in fields(Distributions)]
    return Distributions(*(torch.cat([getattr(part, name) for part in parts], axis) for name in names))


def summarize(logits: Tensor, chosen: Tensor) -> Distributions:
    """Summarize logits [step, vocabulary] of any floating type; chosen int64 [step] are the tokens that were chosen."""
    logits = logits.float()
    log_p, p = logits.log_softmax(-1), logits.softmax(-1)  # a second softmax is faster than log_p.exp()
    top, top_ids = log_p.topk(min(TOP_TOKENS, log_p.shape[-1]), dim=-1)  # [step, k]
    chosen_log_p = log_p.gather(1, chosen[:, None])  # [step, 1]
    if logits.device.type == "cpu":
        rank = (top > chosen_log_p).count_nonzero(-1) + 1
        below_top = chosen_log_p[:, 0] < top[:, -1]  # few steps: ranking all of them would take as long as the rest
        if below_top.any():
            rank[below_top] = (log_p[below_top] > chosen_log_p[below_top]).count_nonzero(-1) + 1
    else:  # finding the few would wait for the device
        rank = (log_p > chosen_log_p).count_nonzero(-1) + 1
    return Distributions(
        top_ids,
        top.exp(),
        rank,
        chosen_log_p[:, 0],
        torch.linalg.vecdot(p, log_p) / -math.log(2),
    )


class BatchMaps:
    """The attention maps of a batch, padded: by kind [sentence, layers, heads, query, key].

    They stay on their device until a sentence's maps are read. Then all maps of the kind are copied to the host, and
    the device's memory is free.
    """

    def __init__(self, by_kind: Mapping[AttentionKind, Tensor]) -> None:
        self.kinds: tuple[AttentionKind, ...] = tuple(by_kind)
        self._weights = dict(by_kind)
        self._cells = Counter[AttentionKind]()  # of one head's map, in all sentences together, without padding
        self._lock = Lock()

    @classmethod
    def of_pass(cls, output: ForwardOutput) -> BatchMaps:
        """Return the maps of a recorded pass."""
        return cls(
            {
                kind: torch.stack([record.attention(kind).weights for record in output.records(kind)], dim=1)
                for kind in output.kinds
            }
        )

    def maps(self, kind: AttentionKind, row: int) -> Tensor:
        """Return every map of a kind of one sentence, [layers, heads, query, key], with its padding."""
        return self._weights[kind][row]

    def reader(self, kind: AttentionKind, row: int, queries: int, keys: int) -> Callable[[], np.ndarray]:
        """Return a function that returns the maps of one sentence as float32 [layers, heads, queries, keys].

        The array is a view of the batch's copy. Where more than half of the copy is padding, it is an array of its own,
        so that a short sentence does not keep the padding in memory.
        """
        self._cells[kind] += queries * keys
        return partial(self._read, kind, row, queries, keys)

    def _read(self, kind: AttentionKind, row: int, queries: int, keys: int) -> np.ndarray:
        with self._lock:
            weights = self._weights[kind] = self._weights[kind].float().cpu()
        batch, _, _, longest_query, longest_key = weights.shape
        maps = weights[row, :, :, :queries, :keys].numpy()
        return maps if 2 * self._cells[kind] >= batch * longest_query * longest_key else maps.copy()


@dataclass(frozen=True, eq=False)
class RecordedDecode:
    """output: the maps of a batch's ids; distributions: those that each sentence's tokens were chosen by."""

    output: BatchMaps | LongTextCache
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

    def distributions(self) -> Distributions:
        """Return the distributions of all sentences, [sentence, step, ..]; padding repeats the last step."""
        steps = concatenate(self.summaries)
        rows = self._rows(steps.entropy.device)
        return steps.map(lambda column: column[rows])

    @torch.inference_mode()
    def maps(self, model: Transformer, source: SourceMemory, changes: Changes) -> BatchMaps | None:
        """Return the maps of all sentences, over encoded sources with records; None where the steps do not give them.

        They do not where a step read several tokens or ran Transformer.decode, nor without a look-ahead mask.
        """
        if not self._stores_maps or not all(self.queries_keys) or not model.config.look_ahead_mask:
            return None
        rows, layers = self._rows(source.memory.device), range(len(model.decoder.layers))

        def stack_steps(part: int) -> list[Tensor]:
            """Return a part of LayerQueriesKeys of each layer: [sentence, heads, step, d_head]."""
            joined = (torch.cat([step[layer][part] for step in self.queries_keys]) for layer in layers)
            return [rows_of_steps[:, :, 0][rows].transpose(1, 2) for rows_of_steps in joined]

        queries, keys, cross_queries = map(stack_steps, range(len(LayerQueriesKeys._fields)))
        length = rows.shape[1]
        biases = model.decoder.biases(0, length, changes)
        mask = causal_mask(length, device=rows.device)
        own, cross = [], []
        for index, layer in enumerate(model.decoder.layers):
            edit_at = visit(changes, f"{Side.DECODER.value}.{index}", 0, model.config)
            edit_own, edit_cross = (
                edit_at.within(k.sublayer) for k in (AttentionKind.DECODER_SELF, AttentionKind.CROSS)
            )
            bias = None if biases[index] is None else edit_own("bias", biases[index])
            scaled = model.config.scale_scores
            own.append(attention_weights(queries[index], keys[index], mask, bias=bias, scaled=scaled, edit_at=edit_own))
            source_keys = edit_cross("k", source.keys_values(layer)[0])
            cross.append(
                attention_weights(cross_queries[index], source_keys, source.mask, scaled=scaled, edit_at=edit_cross)
            )
        encoder = [record.self_attention.weights for record in source.records]
        return BatchMaps(
            {
                kind: torch.stack(weights, dim=1)
                for kind, weights in zip(TRANSFORMER_KINDS, (encoder, own, cross), strict=True)
            }
        )

    def _rows(self, device: torch.device) -> Tensor:
        """Return where the steps of each sentence are among the rows of all steps, int64 [sentence, step].

        A sentence with fewer steps repeats its last one.
        """
        sentences = np.array(self.sentences)
        order, counts = sentences.argsort(kind="stable"), np.bincount(sentences)
        ends = counts.cumsum()
        at = (ends - counts)[:, None] + np.arange(counts.max())
        return torch.from_numpy(order[np.minimum(at, ends[:, None] - 1)]).to(device)


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
    steps, lengths = recorder.distributions(), list(map(len, targets))
    if (maps := recorder.maps(model, source, interventions)) is not None:
        return targets, RecordedDecode(maps, steps.split(lengths))
    inputs = pad([[begin_id, *ids[:-1]] for ids in targets], model.config.pad_id).to(source.memory.device)
    changes = long_text.storing if long_text else interventions
    output = model.read(source, inputs, interventions=changes, record=long_text is None)
    if prefix:  # it was read in one pass, without steps
        hidden, ids = output.hidden[:, : len(prefix)], inputs.new_tensor([prefix] * len(targets))
        steps = concatenate([*_summarize_hidden(model, hidden, ids, interventions), steps], axis=1)
    return targets, RecordedDecode(long_text or BatchMaps.of_pass(output), steps.split(lengths))


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
    ids = pad(targets, model.config.pad_id).to(output.hidden.device)
    steps = concatenate(_summarize_hidden(model, output.hidden, ids, interventions), axis=1)
    return RecordedDecode(long_text or BatchMaps.of_pass(output), steps.split(list(map(len, targets))))


def _summarize_hidden(model: Transformer, hidden: Tensor, ids: Tensor, interventions: Changes) -> list[Distributions]:
    """Summarize the decoder's output from the first step on along ids, in blocks: [sentence, step, ..] each.

    hidden [sentence, step, d_model], ids [sentence, step].
    """
    sentences, steps = ids.shape
    summaries = []
    for part in blocks(steps, sentences * model.config.num_target_tokens):
        logits = project_logits(model, hidden[:, part], interventions, first=part.start)
        summary = summarize(logits.flatten(0, 1), ids[:, part].flatten())
        summaries.append(summary.map(lambda column: column.unflatten(0, (sentences, -1))))
    return summaries

"""Decode greedily or along given ids, and return the distributions of each step with every attention map.

The maps of a decode follow from the queries and keys of its cached steps, without a second pass. Where the steps do not
determine them, one recorded teacher-forced pass over the decoded ids gives them. The maps of a batch are computed at
once and stay on its device until a trace of the batch is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.decode.distributions import Distributions, concatenate, summarize
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
        self._batch: tuple[Distributions, list[LayerQueriesKeys]] | None = None

    def add(self, sentences: list[int], decoder: StepDecoder, chosen: Tensor) -> None:
        """Add a step: the sentences that are the decoder's batch, and their chosen tokens int64 [sentences]."""
        self.sentences += sentences
        self.summaries.append(summarize(decoder.logits, chosen))
        if self._stores_maps:
            self.queries_keys.append(decoder.queries_keys)

    def add_batch(self, summaries: Distributions, layers: list[LayerQueriesKeys]) -> None:
        """Add all steps at once: [sentence, step, ..], and of each layer [sentence, heads, step, d_head]."""
        self._batch = summaries, layers

    def distributions(self) -> Distributions:
        """Return the distributions of all sentences, [sentence, step, ..]; padding repeats the last step."""
        if self._batch is not None:
            return self._batch[0]
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
        layers = self._join_steps() if self._batch is None else self._batch[1]
        length = layers[0].keys.shape[2]
        biases = model.decoder.biases(0, length, changes)
        mask = causal_mask(length, device=source.memory.device)
        own, cross = [], []
        for index, (layer, (queries, keys, cross_queries)) in enumerate(zip(model.decoder.layers, layers)):
            edit_at = visit(changes, f"{Side.DECODER.value}.{index}", 0, model.config)
            edit_own, edit_cross = (
                edit_at.within(k.sublayer) for k in (AttentionKind.DECODER_SELF, AttentionKind.CROSS)
            )
            bias = None if biases[index] is None else edit_own("bias", biases[index])
            scaled = model.config.scale_scores
            own.append(attention_weights(queries, keys, mask, bias=bias, scaled=scaled, edit_at=edit_own))
            source_keys = edit_cross("k", source.keys_values(layer)[0])
            cross.append(attention_weights(cross_queries, source_keys, source.mask, scaled=scaled, edit_at=edit_cross))
        encoder = [record.self_attention.weights for record in source.records]
        return BatchMaps(
            {
                kind: torch.stack(weights, dim=1)
                for kind, weights in zip(TRANSFORMER_KINDS, (encoder, own, cross), strict=True)
            }
        )

    def _join_steps(self) -> list[LayerQueriesKeys]:
        """Return the queries and keys of each layer, [sentence, heads, step, d_head]."""
        rows = self._rows(self.queries_keys[0][0].keys.device)
        return [
            LayerQueriesKeys(*(torch.cat(part)[:, :, 0][rows].transpose(1, 2) for part in zip(*steps)))
            for steps in zip(*self.queries_keys)
        ]

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

"""Ablate heads one by one or in sets, and measure or estimate what a written token loses without them.

`measure_heads` is the entry point of the library. The rows of a batch have different gates, so one pass measures many
heads. `AblationPasses` caches residual streams that sets of heads share: with layers numbered from the first of the
encoder to the last of the decoder, the streams of two sets are equal up to the first layer in which the sets differ.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.why.case import Case, open_case_at
from attention_atlas.model.nets.blocks import most_probable
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.trace.why.effects import Head, HeadEffects, Replacement
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.translator import Translator

HEADS_PER_REPORT = 48  # heads that measure_in_order() ablates between two reports
MAX_CACHED_NUMBERS = 1 << 23  # 32 MB in float32
DRAWS = 8  # sentences whose outputs replace those of the heads in a resample ablation
DRAW_STRIDE = 37  # every 37th of this project's sentences is drawn, so that the draws do not resemble each other

HeadOutputs = dict[AttentionKind, Tensor]  # [1, layers, heads, positions, d_head]; the outputs of a missing kind are 0
# (layer, ablated heads up to that layer as a bit mask). The value is the residual stream after the layer. For ~layer
# instead of layer it is the keys and values of cross-attention in that layer.
CacheKey = tuple[int, int]


@dataclass(frozen=True, eq=False)
class AblationValues:
    """The values that replace ablated heads' outputs.

    replacement  zeros, means over a corpus, or the outputs in other sentences
    draws        the values, once for each sentence drawn; effects are means over draws. {}: zeros
    """

    replacement: Replacement
    draws: tuple[HeadOutputs, ...] = ({},)


def measure_heads(
    translator: Translator,
    trace: TranslationTrace,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    replacement: Replacement | str = Replacement.ZERO,
) -> HeadEffects:
    """Measure what one written token loses without each single head, in nats.

    step, contrast: as in attribute(). Raises ValueError for a step or contrast that the trace does not have, and a
    Refusal if there are no values for the replacement.
    """
    case = open_case_at(translator, trace, step, contrast)
    return measure_all_heads(case, make_ablation_values(case, translator, trace, Replacement(replacement)))


def make_ablation_values(
    case: Case, translator: Translator, trace: TranslationTrace, replacement: Replacement
) -> AblationValues:
    """Return the values of a replacement for this case.

    Raises a Refusal if the model has no recorded means, or if there are no built-in sentences in the source language to
    resample from.
    """
    if replacement is Replacement.ZERO:
        return zero_values()
    if replacement is Replacement.MEAN:
        return mean_values(case)
    language = parse_direction(trace.direction)[0]
    if language not in languages():
        raise Refusal("There are no sentences in this source language to take another output from.")
    texts = [text for text in sentences(language)[::DRAW_STRIDE] if text != trace.source_text]
    texts = [text for text in texts if translator.fits(text, trace.direction)]
    return resample_values(case, translator, texts[:DRAWS], trace.direction)


def zero_values() -> AblationValues:
    """Return the values of zero ablation."""
    return AblationValues(Replacement.ZERO)


def mean_values(case: Case) -> AblationValues:
    """Return the values of mean ablation. Raises a Refusal if the case has no means."""
    if case.means is None:
        raise Refusal("There are no averages of this model's heads: choose zero instead.")
    values = {
        kind: torch.from_numpy(case.means.by_position(kind, _query_length(case, kind))[None]).to(case.source_rows)
        for kind in case.model.num_layers
    }
    return AblationValues(Replacement.MEAN, (values,))


def resample_values(case: Case, translator: Translator, texts: Sequence[str], direction: str) -> AblationValues:
    """Return the values of resample ablation: the heads' outputs while the model translates each text.

    A position of this case gets the output at the same relative position of the other sentence. Raises ValueError if
    there are no texts.
    """
    if not texts:
        raise ValueError("there is no other sentence to take the heads' outputs from")
    sources = [translator.encode(text, direction) for text in texts]
    draws = []
    for source, target in zip(sources, translator.generate(sources, direction)):
        output = translator.inspect(source, target)
        draw = {}
        for kind in case.model.num_layers:
            # [1, layers, heads, query, d_head]
            outputs = torch.stack([record.attention(kind).head_outputs for record in output.records(kind)], dim=1)
            positions = torch.linspace(0, outputs.shape[3] - 1, _query_length(case, kind)).round().long()
            draw[kind] = outputs.index_select(3, positions.to(outputs.device))
        draws.append(draw)
    return AblationValues(Replacement.RESAMPLE, tuple(draws))


def _query_length(case: Case, kind: AttentionKind) -> int:
    """Return the number of queries of an attention of this kind."""
    ids = case.source_ids if kind is AttentionKind.ENCODER_SELF else case.decoder_ids
    return ids.shape[1]


def list_heads(case: Case) -> list[Head]:
    """Return every head of the model."""
    return [
        (kind, layer, head)
        for kind, layers in case.model.num_layers.items()
        for layer in range(layers)
        for head in range(case.model.num_heads[kind])
    ]


def close_gates(case: Case, sets: Sequence[Sequence[Head]]) -> dict[AttentionKind, Tensor]:
    """Return gates by kind, [batch, layers, heads]: 0 in row i for the heads of sets[i], otherwise 1."""
    gates = {
        kind: case.source_rows.new_ones(len(sets), layers, case.model.num_heads[kind])
        for kind, layers in case.model.num_layers.items()
    }
    for kind, gate in gates.items():
        closed = [(row, layer, head) for row, heads in enumerate(sets) for k, layer, head in heads if k == kind]
        if closed:
            gate[tuple(torch.tensor(closed).T)] = 0.0
    return gates


@torch.inference_mode()
def run_without_heads(case: Case, sets: Sequence[Sequence[Head]], values: HeadOutputs) -> Tensor:
    """Return the decoder's output [sets, d_model] at the position of the case's token, row i without sets[i]."""
    passes = AblationPasses(case, values, last=1)
    hidden = case.source_rows.new_empty(len(sets), case.model.config.d_model)
    batches = passes.make_batches(sets)
    outputs = map_on_spare_core(lambda rows: passes.run([sets[row] for row in rows]), batches)
    for rows, output in zip(batches, outputs):
        hidden[rows] = output[:, 0]
    return hidden


@torch.inference_mode()
def ablate(case: Case, values: AblationValues, sets: Sequence[Sequence[Head]]) -> tuple[np.ndarray, np.ndarray]:
    """Ablate sets of heads, and return their effects and flips.

    effects  float64 [sets]: m(x) - m(x without the set), where m is the case's metric; a mean over draws
    flips    bool [sets]: whether another token becomes the most probable in at least half of the draws
    """
    vocabulary = case.model.config.num_target_tokens
    prediction = most_probable(case.model.project, case.output.hidden[:, -1], vocabulary)
    effects, flips = np.zeros(len(sets)), np.zeros(len(sets))
    for draw in values.draws:
        hidden = run_without_heads(case, sets, draw)
        effects += case.metric() - case.measure(hidden).cpu().numpy()
        flips += (most_probable(case.model.project, hidden, vocabulary) != prediction).cpu().numpy()
    return effects / len(values.draws), 2 * flips >= len(values.draws)


def measure_all_heads(case: Case, values: AblationValues) -> HeadEffects:
    """Ablate every head alone, and return the effects of all."""
    *_, effects = measure_in_order(case, values, list_heads(case))
    return effects


def measure_in_order(case: Case, values: AblationValues, order: Sequence[Head]) -> Iterator[HeadEffects]:
    """Ablate heads alone in this order.

    After every HEADS_PER_REPORT heads, yield the effects so far, which are NaN for the remaining heads.
    """
    index = {head: i for i, head in enumerate(list_heads(case))}
    effects, flips = np.full(len(index), np.nan), np.zeros(len(index), bool)
    for start in range(0, len(order), HEADS_PER_REPORT):
        heads = list(order[start : start + HEADS_PER_REPORT])
        measured = [index[head] for head in heads]
        effects[measured], flips[measured] = ablate(case, values, [[head] for head in heads])
        yield HeadEffects(
            values.replacement,
            Evidence.MEASURED,
            _split_by_kind(case, effects.copy()),
            _split_by_kind(case, flips.copy()),
            len(values.draws),
        )


def estimate_heads(case: Case, values: AblationValues) -> HeadEffects:
    """Estimate each head's effect by the gradient of the metric with respect to the head's gate at 1.

    This is the effect of ablating the head if the metric were linear in its gate (Michel et al. 2019, section 4.1, but
    with its sign). It takes one pass per draw.
    """
    total = np.zeros(len(list_heads(case)))
    for draw in values.draws:
        with torch.inference_mode(False), torch.enable_grad():
            gates = {kind: gate.requires_grad_() for kind, gate in close_gates(case, [[]]).items()}
            # Tensors made in inference mode cannot take part in a gradient; their clones can.
            sweep = make_sweep(case, gates, {kind: outputs.clone() for kind, outputs in draw.items()})
            memory = case.encode(case.source_rows, changes=sweep)
            metric = case.measure(case.decode(case.target_rows, memory, changes=sweep)).sum()
            gradients = torch.autograd.grad(metric, list(gates.values()))
        total += torch.cat([gradient.flatten() for gradient in gradients]).cpu().double().numpy()
    effects = _split_by_kind(case, total / len(values.draws))
    return HeadEffects(values.replacement, Evidence.PROXY, effects, draws=len(values.draws))


def _split_by_kind(case: Case, values: np.ndarray) -> dict[AttentionKind, np.ndarray]:
    """Split values [head], in the order of list_heads(), into [layers, heads] of each kind."""
    by_kind, start = {}, 0
    for kind, layers in case.model.num_layers.items():
        shape = layers, case.model.num_heads[kind]
        by_kind[kind] = values[start : start + shape[0] * shape[1]].reshape(shape)
        start += shape[0] * shape[1]
    return by_kind


class AblationPasses:
    """Passes over one case without sets of heads, which cache residual streams for later sets.

    Layers are numbered through both stacks, the encoder's first. Each head is one bit, and the key of a set of heads is
    its bit mask. The stream after a layer depends only on the heads up to that layer: `key & self.up_to[layer]`. Passes
    may run on several threads.
    """

    def __init__(self, case: Case, values: HeadOutputs, *, last: int | None = None) -> None:
        """values: replace the heads' outputs. last: the number of last decoder rows to return; None: all."""
        self.case, self.values, self.last = case, values, last
        self.stacks = case.model.encoder, case.model.decoder
        self.encoder_layers = len(self.stacks[0].layers)
        self.layers = self.encoder_layers + len(self.stacks[1].layers)
        heads = sorted(list_heads(case), key=self._layer_of)
        self.bits = {head: 1 << number for number, head in enumerate(heads)}
        self.up_to = [sum(self.bits[head] for head in heads if self._layer_of(head) <= i) for i in range(self.layers)]
        self._cache: dict[CacheKey, Tensor] = {}
        self._cached_numbers, self._lock = 0, threading.Lock()

    def make_batches(self, sets: Sequence[Sequence[Head]]) -> list[list[int]]:
        """Divide sets into batches of about equal size, each a list of indices of sets.

        Sets that ablate heads in early layers take longest, and are spread over all batches.
        """
        keys = [self._key(heads) for heads in sets]
        order = sorted(range(len(sets)), key=lambda index: [keys[index] & bits for bits in self.up_to])
        count = len(self.case.batches(len(sets)))
        return [order[batch::count] for batch in range(count)]

    @torch.inference_mode()
    def run(self, sets: Sequence[Sequence[Head]]) -> Tensor:
        """Return the decoder's output without each set of heads, [sets, target or last, d_model].

        An empty set with zero ablation needs no pass: its output is that of the recorded pass. With other values it is
        not, because heads that the case's interventions switch off are then replaced too.
        """
        keys, streams = [self._key(heads) for heads in sets], {}
        if 0 in keys and not self.values:
            streams[self.layers - 1, 0] = self.case.output.hidden[0, -self.last if self.last else 0 :]
        sweep = make_sweep(self.case, close_gates(self.case, sets), self.values)
        for layer, missing in enumerate(self._find_missing(keys, streams)):
            if missing:
                self._run_layer(layer, missing, sweep, streams)
        self._store(streams)
        return torch.stack([streams[self.layers - 1, key] for key in keys])

    def _layer_of(self, head: Head) -> int:
        kind, layer, _ = head
        return layer if kind is AttentionKind.ENCODER_SELF else self.encoder_layers + layer

    def _key(self, heads: Sequence[Head]) -> int:
        """Return a set of heads as a bit mask."""
        key = 0
        for head in heads:
            key |= self.bits[head]
        return key

    def _find_missing(self, keys: list[int], streams: dict[CacheKey, Tensor]) -> list[dict[int, int]]:
        """Return for each layer the keys whose stream must be computed, each with the index of a set that shares it.

        Cached streams are put into `streams`, because another thread may evict them from the cache.
        """
        missing: list[dict[int, int]] = [{} for _ in range(self.layers)]
        missing[-1] = {key: row for row, key in enumerate(keys) if (self.layers - 1, key) not in streams}
        last_encoder = self.encoder_layers - 1
        for layer in reversed(range(self.layers)):
            for key, row in list(missing[layer].items()):
                if (stream := self._cache.get((layer, key))) is not None:
                    streams[layer, key] = stream
                    del missing[layer][key]
                    continue
                if layer not in (0, self.encoder_layers):  # first layers read embeddings
                    missing[layer - 1][key & self.up_to[layer - 1]] = row
                if layer >= self.encoder_layers:  # decoder layers read the encoder's output
                    missing[last_encoder][key & self.up_to[last_encoder]] = row
        return missing

    def _run_layer(self, layer: int, missing: dict[int, int], sweep: Sweep, streams: dict[CacheKey, Tensor]) -> None:
        """Compute the missing streams after a layer in one batch, and add them to `streams`."""
        in_decoder = layer >= self.encoder_layers
        number, stack = (layer - self.encoder_layers, self.stacks[1]) if in_decoder else (layer, self.stacks[0])
        if number == 0:
            x = self._embedded[in_decoder].expand(len(missing), -1, -1)
        else:
            x = torch.stack([streams[layer - 1, key & self.up_to[layer - 1]] for key in missing])
        x, _ = stack(
            x,
            causal_mask(x.shape[1], device=x.device) if in_decoder else None,
            self._read_source(layer, missing, streams) if in_decoder else None,
            interventions=sweep.select(torch.tensor(list(missing.values()), device=x.device)),
            start=number,
            stop=number + 1,
            last=self.last if in_decoder and self.last else x.shape[1],
        )
        streams.update(((layer, key), row) for key, row in zip(missing, x))

    def _read_source(self, layer: int, missing: dict[int, int], streams: dict[CacheKey, Tensor]) -> SourceMemory:
        """Return the encoder's keys and values for a decoder layer, projected once for each encoder stream."""
        last_encoder = self.encoder_layers - 1
        source_keys = [key & self.up_to[last_encoder] for key in missing]
        number = layer - self.encoder_layers
        unprojected = []
        for key in dict.fromkeys(source_keys):
            if (cached := self._cache.get((~layer, key))) is not None:
                streams[~layer, key] = cached
            elif (~layer, key) not in streams:
                unprojected.append(key)
        if unprojected:
            memory = torch.stack([streams[last_encoder, key] for key in unprojected])
            cross_attention = self.stacks[1].layers[number].cross_attention
            both = torch.stack(cross_attention.project_keys_values(memory), dim=1)  # [key, 2, heads, source, d_head]
            streams.update(((~layer, key), row) for key, row in zip(unprojected, both))
        if len(set(source_keys)) == 1:
            both = streams[~layer, source_keys[0]].expand(len(source_keys), -1, -1, -1, -1)
        else:
            both = torch.stack([streams[~layer, key] for key in source_keys])
        keys, values = both.unbind(1)
        memory = streams[last_encoder, source_keys[0]][None]  # required, but not read: keys and values are given below
        return SourceMemory(memory, None, projected={number: (keys, values)})

    @cached_property
    def _embedded(self) -> tuple[Tensor, Tensor]:
        """The inputs of the encoder's and the decoder's first layer, [1, length, d_model]."""
        case = self.case
        lengths = torch.tensor([case.source_rows.shape[1]])
        return (
            case.model.place(case.source_rows, case.interventions),
            case.model.place(case.target_rows, case.interventions, decoder=True, lengths=lengths),
        )

    def _store(self, streams: dict[CacheKey, Tensor]) -> None:
        """Cache streams, except outputs of the decoder, and evict the oldest beyond MAX_CACHED_NUMBERS."""
        with self._lock:
            for key, stream in streams.items():
                if key[0] != self.layers - 1 and key not in self._cache:
                    self._cache[key] = stream
                    self._cached_numbers += stream.numel()
            while self._cached_numbers > MAX_CACHED_NUMBERS:
                self._cached_numbers -= self._cache.pop(next(iter(self._cache))).numel()


def make_sweep(case: Case, gates: dict[AttentionKind, Tensor], values: HeadOutputs) -> Sweep:
    """Return the case's interventions with gates on heads, and the values that replace the outputs of closed ones."""
    return Sweep(case.interventions, gates, replacements={kind: values[kind] for kind in gates if kind in values})

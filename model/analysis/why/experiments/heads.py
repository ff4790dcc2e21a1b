"""Ablate heads one by one or in sets, and measure or estimate what a written token loses without them.

`measure_heads` is the entry point of the library. The rows of a batch have different gates, so one pass measures many
heads. `AblationPasses` shares residual streams between sets of heads that are equal up to a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.sentences import has_sentences, source_sentences
from attention_atlas.model.analysis.why.case import Case, open_case_at
from attention_atlas.model.nets.blocks import most_probable
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.kinds import AttentionKind, Side
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

Measured = TypeVar("Measured")
HeadOutputs = dict[AttentionKind, Tensor]  # [1, layers, heads, positions, d_head]; the outputs of a missing kind are 0


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
    if not has_sentences(trace.direction):
        raise Refusal("There are no sentences in this source language whose outputs could be used instead.")
    texts = source_sentences(trace.direction)[::DRAW_STRIDE]
    texts = [text for text in texts if text != trace.source_text and translator.fits(text, trace.direction)]
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
            outputs = output.head_outputs(kind)  # [1, layers, heads, query, d_head]
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


def run_without_heads(case: Case, sets: Sequence[Sequence[Head]], values: HeadOutputs) -> Tensor:
    """Return the decoder's output [sets, d_model] at the position of the case's token, row i without sets[i]."""
    return torch.cat(AblationPasses(case, values, last=1).map(sets, lambda hidden: hidden[:, 0]))


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

    def measure(sweep: Sweep) -> Tensor:
        memory = case.encode(case.source_rows, changes=sweep)
        return case.measure(case.decode(case.target_rows, memory, changes=sweep))

    total = sum(gate_slopes(case, draw, measure) for draw in values.draws)
    effects = _split_by_kind(case, total / len(values.draws))
    return HeadEffects(values.replacement, Evidence.PROXY, effects, draws=len(values.draws))


def gate_slopes(case: Case, values: HeadOutputs, measure: Callable[[Sweep], Tensor]) -> np.ndarray:
    """Return the gradient of the sum of `measure` by each head's gate at 1: float64 [head], as list_heads()."""
    with torch.inference_mode(False), torch.enable_grad():
        gates = {kind: gate.requires_grad_() for kind, gate in close_gates(case, [[]]).items()}
        # Tensors made in inference mode cannot take part in a gradient; their clones can.
        sweep = make_sweep(case, gates, {kind: outputs.clone() for kind, outputs in values.items()})
        gradients = torch.autograd.grad(measure(sweep).sum(), list(gates.values()))
    return torch.cat([gradient.flatten() for gradient in gradients]).cpu().double().numpy()


def _split_by_kind(case: Case, values: np.ndarray) -> dict[AttentionKind, np.ndarray]:
    """Split values [head], in the order of list_heads(), into [layers, heads] of each kind."""
    num_layers, num_heads = case.model.num_layers, case.model.num_heads
    parts = np.split(values, np.cumsum([layers * num_heads[kind] for kind, layers in num_layers.items()])[:-1])
    return {kind: part.reshape(num_layers[kind], num_heads[kind]) for kind, part in zip(num_layers, parts)}


class AblationPasses:
    """Passes over one case without sets of heads, which cache residual streams for later sets.

    Layers are numbered through both stacks, the encoder's first, and heads are bits. The stream after a layer depends
    only on the ablated heads up to that layer. Passes may run on several threads.
    """

    def __init__(self, case: Case, values: HeadOutputs, *, last: int | None = None) -> None:
        """values: replace the heads' outputs. last: the number of last decoder rows to return; None: all."""
        self.case, self.values, self.last = case, values, last
        self.num_encoder_layers = len(case.model.encoder.layers)
        self.bits = {head: 1 << number for number, head in enumerate(list_heads(case))}
        self.up_to = [0] * (self.num_encoder_layers + len(case.model.decoder.layers))
        for (kind, layer, _), bit in self.bits.items():
            for later in range(layer + (kind.side is Side.DECODER) * self.num_encoder_layers, len(self.up_to)):
                self.up_to[later] |= bit
        self._streams: dict[tuple[int, int], Tensor] = {}  # by layer and the ablated heads up to it

    @torch.inference_mode()
    def map(self, sets: Sequence[Sequence[Head]], measure: Callable[[Tensor], Measured]) -> list[Measured]:
        """Apply `measure` to the decoder's outputs [batch, target or last, d_model] of batches of sets, in order."""
        return map_on_spare_core(lambda batch: measure(self.run(sets[batch])), self.case.batches(len(sets)))

    def run(self, sets: Sequence[Sequence[Head]]) -> Tensor:
        """Return the decoder's output without each set of heads, [sets, target or last, d_model]."""
        sweep = make_sweep(self.case, close_gates(self.case, sets), self.values)
        keys = [sum(self.bits[head] for head in set(heads)) for heads in sets]
        if sum(stream.numel() for stream in [*self._streams.values()]) > MAX_CACHED_NUMBERS:
            self._streams = {}
        streams = self._streams  # another thread may start an empty cache
        for layer, heads in enumerate(self.up_to):
            missing = {key & heads: row for row, key in enumerate(keys) if (layer, key & heads) not in streams}
            if missing:
                rows = sweep.select(torch.tensor(list(missing.values())))
                streams.update(
                    zip(((layer, key) for key in missing), self._run_layer(layer, [*missing], rows, streams))
                )
        return torch.stack([streams[len(self.up_to) - 1, key] for key in keys])

    def _run_layer(self, layer: int, keys: list[int], sweep: Sweep, streams: dict[tuple[int, int], Tensor]) -> Tensor:
        """Return the stream after a layer for each set of ablated heads up to it, [key, length, d_model]."""
        model, in_decoder = self.case.model, layer >= self.num_encoder_layers
        number = layer - in_decoder * self.num_encoder_layers
        if number == 0:
            rows = self.case.target_rows if in_decoder else self.case.source_rows
            lengths = torch.tensor([self.case.source_rows.shape[1]])
            x = model.place(rows, sweep, decoder=in_decoder, lengths=lengths).expand(len(keys), -1, -1)
        else:
            x = torch.stack([streams[layer - 1, key & self.up_to[layer - 1]] for key in keys])
        options = {"interventions": sweep, "start": number, "stop": number + 1}
        if not in_decoder:
            return model.encoder(x, None, last=x.shape[1], **options)[0]
        last_encoder = self.num_encoder_layers - 1
        source_keys = [key & self.up_to[last_encoder] for key in keys]
        distinct = list(dict.fromkeys(source_keys))
        memory = SourceMemory(torch.stack([streams[last_encoder, key] for key in distinct]), None)
        memory.keys_values(model.decoder.layers[number])  # projected once for each encoder stream
        memory = memory.select(torch.tensor([distinct.index(key) for key in source_keys], device=x.device))
        mask = causal_mask(x.shape[1], device=x.device)
        return model.decoder(x, mask, memory, last=self.last or x.shape[1], **options)[0]


def make_sweep(case: Case, gates: dict[AttentionKind, Tensor], values: HeadOutputs) -> Sweep:
    """Return the case's interventions with gates on heads, and the values that replace the outputs of closed ones."""
    return Sweep(case.interventions, gates, replacements={kind: values[kind] for kind in gates if kind in values})

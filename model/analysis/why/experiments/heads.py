"""Heads switched off one by one, measured in batches; and what the gradients of their gates say before that.

A batch row has gates of its own, so that one pass measures many heads. Heads of the decoder share the encoded source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.passes.ablations import Ablations, Instead, all_heads
from attention_atlas.model.nets.blocks import most_probable
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.effects import Head, HeadEffects, Replacement
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.translator import Translator

AT_ONCE = 48  # heads between two reports


@dataclass(frozen=True, eq=False)
class Voices:
    """A replacement with its values: one Instead a draw; an empty one is silence."""

    replacement: Replacement
    draws: tuple[Instead, ...] = ({},)


def silence() -> Voices:
    """Zero ablation."""
    return Voices(Replacement.ZERO)


def mean_voices(case: Case) -> Voices:
    """Mean ablation. ValueError where the case has no means."""
    if case.means is None:
        raise Refusal("There are no averages of this model's heads: choose zero instead.")
    return Voices(
        Replacement.MEAN,
        (
            {
                kind: torch.from_numpy(case.means.at(kind, _length(case, kind))[None]).to(case.source_rows)
                for kind in case.model.num_layers
            },
        ),
    )


@torch.inference_mode()
def usual(case: Case) -> Voices:
    """Each head's mean where means are known, else silence."""
    return silence() if case.means is None else mean_voices(case)


def other_voices(case: Case, translator: Translator, texts: Sequence[str], direction: str) -> Voices:
    """Resample ablation: each text is a draw, read at the same relative positions, with the model's own translation.
    ValueError for no text."""
    if not texts:
        raise ValueError("there is no other sentence to take the heads' outputs from")
    sources = [translator.encode(text, direction) for text in texts]
    draws = []
    for source, target in zip(sources, translator.generate(sources, direction)):
        output = translator.inspect(source, target)
        draw = {}
        for kind in case.model.num_layers:
            said = torch.stack([record.attention(kind).head_outputs for record in output.records(kind)], dim=1)
            length = _length(case, kind)  # said: [1, layers, heads, query, d_head]
            at = torch.linspace(0, said.shape[3] - 1, length).round().long().to(said.device)
            draw[kind] = said.index_select(3, at)
        draws.append(draw)
    return Voices(Replacement.RESAMPLE, tuple(draws))


def _length(case: Case, kind: AttentionKind) -> int:
    ids = case.source_ids if kind is AttentionKind.ENCODER_SELF else case.decoder_ids
    return ids.shape[1]


@torch.inference_mode()
def without(case: Case, sets: Sequence[Sequence[Head]], instead: Instead) -> Tensor:
    """The decoder's output [batch, d_model] at the question's row, row i without the heads of sets[i]."""
    ablations = Ablations(case, instead, last=1)
    hidden, parts = case.source_rows.new_empty(len(sets), case.model.config.d_model), ablations.dealt(sets)
    for rows, found in zip(
        parts, map_on_spare_core(lambda rows: ablations.without([sets[row] for row in rows]), parts)
    ):
        hidden[rows] = found[:, 0]
    return hidden


def gated(case: Case, gates: dict[AttentionKind, Tensor], instead: Instead, *, encode: bool) -> Tensor:
    """The decoder's output [batch, d_model] at the question's row under gates by kind [batch, layers, heads].
    encode: some gates of the encoder are not 1; otherwise the plain pass's memory serves all rows."""
    batch = len(gates[AttentionKind.CROSS])
    sweep = Sweep(case.interventions, gates, {kind: instead[kind] for kind in gates if kind in instead})
    memory = case.encode(case.source_rows.expand(batch, -1, -1), changes=sweep) if encode else case.shared_memory(batch)
    return case.decode(case.target_rows.expand(batch, -1, -1), memory, changes=sweep)


@torch.inference_mode()
def ablate(case: Case, voices: Voices, sets: Sequence[Sequence[Head]]) -> tuple[np.ndarray, np.ndarray]:
    """m(x) - m(without the heads of each set), float64 [batch], a mean over draws; and bool [batch], whether another
    token becomes the most probable (in at least half of the draws)."""
    vocabulary = case.model.config.num_target_tokens
    plain = most_probable(case.model.project, case.output.hidden[:, -1], vocabulary)
    effects, flips = np.zeros(len(sets)), np.zeros(len(sets))
    for draw in voices.draws:
        hidden = without(case, sets, draw)
        effects += case.metric() - case.measure(hidden).cpu().numpy()
        flips += (most_probable(case.model.project, hidden, vocabulary) != plain).cpu().numpy()
    return effects / len(voices.draws), 2 * flips >= len(voices.draws)


def measured(case: Case, voices: Voices) -> HeadEffects:
    """Every head switched off alone."""
    *_, last = measuring(case, voices, all_heads(case))
    return last


def measuring(case: Case, voices: Voices, order: Sequence[Head]) -> Iterator[HeadEffects]:
    """Heads switched off alone, one after another in this order: after each batch what is measured so far, and NaN for
    the other heads."""
    place = {head: i for i, head in enumerate(all_heads(case))}
    effects, flips = np.full(len(place), np.nan), np.zeros(len(place), bool)
    for start in range(0, len(order), AT_ONCE):
        part = list(order[start : start + AT_ONCE])
        at = [place[head] for head in part]
        effects[at], flips[at] = ablate(case, voices, [[head] for head in part])
        yield HeadEffects(
            voices.replacement,
            Evidence.MEASURED,
            _by_kind(case, effects.copy()),
            _by_kind(case, flips.copy()),
            len(voices.draws),
        )


def estimated(case: Case, voices: Voices) -> HeadEffects:
    """The slope of the metric by each gate at 1, one pass a draw (Michel et al. 2019, section 4.1, with its sign): what
    switching the head off would change if the metric were linear in its gate."""
    total = np.zeros(len(all_heads(case)))
    for draw in voices.draws:
        with torch.inference_mode(False), torch.enable_grad():
            gates = {
                kind: case.source_rows.new_ones(1, layers, case.model.num_heads[kind]).requires_grad_()
                for kind, layers in case.model.num_layers.items()
            }
            plain = {kind: value.clone() for kind, value in draw.items()}
            metric = case.measure(gated(case, gates, plain, encode=True)).sum()
            found = torch.autograd.grad(metric, list(gates.values()))
        total += torch.cat([gradient.flatten() for gradient in found]).cpu().double().numpy()
    return HeadEffects(
        voices.replacement, Evidence.PROXY, _by_kind(case, total / len(voices.draws)), draws=len(voices.draws)
    )


def _by_kind(case: Case, values: np.ndarray) -> dict[AttentionKind, np.ndarray]:
    found, start = {}, 0
    for kind, layers in case.model.num_layers.items():
        shape = layers, case.model.num_heads[kind]
        found[kind] = values[start : start + shape[0] * shape[1]].reshape(shape)
        start += shape[0] * shape[1]
    return found

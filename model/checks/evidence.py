"""What the live checks read, each number measured once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.model.checks import oracle
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord
from attention_atlas.model.nets.recurrent import RecurrentMemory
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Shown:
    """Weights as some other part of the program shows them: [layers, heads, query, key] of a kind, or of one layer and
    head [query, key]."""

    kind: AttentionKind
    weights: np.ndarray
    layer: int | None = None
    head: int | None = None

    def expected(self, trace: TranslationTrace) -> np.ndarray:
        weights = trace.maps(self.kind).weights
        return weights if self.layer is None else weights[self.layer, self.head]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the checks read: the trace under test and a second, independent pass of the model over the same ids.

    shown: what other parts of the program show, by name, each with the tolerance that its format allows (a 16-bit
    payload cannot carry more than half a step). known: what once() has measured.
    """

    translator: Translator
    trace: TranslationTrace
    output: ForwardOutput
    shown: Mapping[str, tuple[Sequence[Shown], float]]
    known: dict[Callable, object] = field(default_factory=dict)

    def recomputed(self, kind: AttentionKind) -> np.ndarray:
        """The maps of the second pass: [layers, heads, query, key]."""
        return self.output.weights(kind)[:, 0].float().cpu().numpy()

    @cached_property
    def encoded(self) -> SourceMemory | RecurrentMemory:
        """The source, encoded once more."""
        with torch.inference_mode():
            return self.translator.model.encode(self.source_ids())

    @cached_property
    def oracle_attention(self) -> tuple[list[float], list[float]]:
        """Errors of weights and of outputs against torch's attention, one of each an attention."""
        return oracle.attention_errors(self.translator, self.output, self.trace)

    @cached_property
    def torch_layers(self) -> dict[Side, nn.ModuleList]:
        """torch's layers with the model's weights."""
        return oracle.torch_layers(self.translator, self.output)

    @cached_property
    def cached_steps(self) -> list[tuple[float, float]]:
        """Errors of logits and of weights at each step, decoded over the cache, against the pass at once."""
        model, whole = self.translator.model, self.output
        ids = torch.tensor([self.trace.decoder_ids], device=self.translator.device)
        with torch.inference_mode():
            decoder = StepDecoder(model, self.encoded, ids[:, :1], record=True)
            errors = []
            for part in blocks(ids.shape[1], self.translator.config.num_target_tokens):
                for step, expected in enumerate(whole.project(whole.hidden[0, part]), part.start):
                    if step:
                        decoder.append(ids[:, step])
                    logits = float((decoder.logits[0] - expected).abs().max())
                    errors.append((logits, _row_error(decoder.records, whole.layers(Side.DECODER), step)))
        return errors

    @cached_property
    def padded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, decoder inputs and targets [2, length] of the sentence beside one with a few tokens more on both
        sides: itself, its words written on."""
        trace, pad_id = self.trace, self.translator.tokenizer.pad_id
        rows = []
        for ids in (trace.source_ids, trace.decoder_ids, trace.target_ids):
            longer = (*ids, *ids[: min(5, self.translator.config.reach - len(ids))])
            rows.append(
                torch.tensor(
                    [[*ids, *([pad_id] * (len(longer) - len(ids)))], list(longer)], device=self.translator.device
                )
            )
        return rows[0], rows[1], rows[2]

    @cached_property
    def padded_output(self) -> ForwardOutput:
        """The recorded pass over that batch."""
        with torch.inference_mode():
            return self.translator.model(*self.padded[:2], record=True)

    def source_ids(self) -> Tensor:
        """[1, source], on the model's device."""
        return torch.tensor([self.trace.source_ids], device=self.translator.device)


def once(measure: Callable[[Evidence], Found]) -> Callable[[Evidence], Found]:
    """measure(evidence), which several checks ask for, measured for the first of them."""

    @wraps(measure)
    def found(evidence: Evidence) -> Found:
        if measure not in evidence.known:
            evidence.known[measure] = measure(evidence)
        return evidence.known[measure]

    return found


def _row_error(records: tuple[LayerRecord, ...], whole: tuple[LayerRecord, ...], step: int) -> float:
    """Of the one row that each layer recorded at this step, against row `step` of the whole map."""
    errors = []
    for mine, full in zip(records, whole):
        for kind in AttentionKind:
            if kind.side is Side.DECODER and mine.attention(kind) is not None:
                row = mine.attention(kind).weights  # [1, heads, 1, keys so far]
                there = full.attention(kind).weights[:, :, step : step + 1, : row.shape[-1]]
                errors.append(float((row - there).abs().max()))
    return max(errors)

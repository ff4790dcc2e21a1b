"""The data that the live checks share: a trace, a second pass over the same ids, and copies of the trace's maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class MapCopy:
    """A copy of a trace's weights in another part of the program, such as the page's payload or a figure.

    weights: [layers, heads, query, key] of a kind; [query, key] where `layer` and `head` name one head.
    """

    kind: AttentionKind
    weights: np.ndarray
    layer: int | None = None
    head: int | None = None

    def original(self, trace: TranslationTrace) -> np.ndarray:
        """Return the trace's weights of the same heads."""
        weights = trace.maps(self.kind).weights
        return weights if self.layer is None else weights[self.layer, self.head]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The trace under test, and the record of a second, independent pass of the model over the same ids.

    copies    name -> copies of the trace's maps, and the tolerance that their format allows
    measured  the values of measured_once(), by function
    """

    translator: Translator
    trace: TranslationTrace
    output: ForwardOutput
    copies: Mapping[str, tuple[Sequence[MapCopy], float]]
    measured: dict[Callable, object] = field(default_factory=dict)

    def recomputed(self, kind: AttentionKind) -> np.ndarray:
        """Return the maps of the second pass, [layers, heads, query, key]."""
        return self.output.weights(kind)[:, 0].float().cpu().numpy()

    def logits(self, hidden: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Yield the logits [row, vocabulary] of hidden [step, d_model] in blocks of rows, each with its rows."""
        for part in blocks(len(hidden), self.translator.config.num_target_tokens):
            yield part, self.output.project(hidden[part])

    @cached_property
    def encoded(self) -> SourceMemory | RecurrentMemory:
        """The source, encoded by another pass."""
        with torch.inference_mode():
            return self.translator.model.encode(self.source_ids())

    @cached_property
    def oracle_attention(self) -> tuple[list[float], list[float]]:
        """The errors of weights and of outputs against torch's attention, one of each for each attention."""
        return oracle.attention_errors(self.translator, self.output, self.trace)

    @cached_property
    def torch_layers(self) -> dict[Side, nn.ModuleList]:
        """torch's layers with the model's weights, by side."""
        return oracle.torch_layers(self.translator, self.output)

    @cached_property
    def cached_steps(self) -> list[tuple[float, float]]:
        """The errors of logits and of weights at each step of cached decoding, against the pass over all ids."""
        model, whole = self.translator.model, self.output
        ids = torch.tensor([self.trace.decoder_ids], device=self.translator.device)
        with torch.inference_mode():
            decoder = StepDecoder(model, self.encoded, ids[:, :1], record=True)
            errors = []
            for part, block in self.logits(whole.hidden[0]):
                for step, expected in enumerate(block, part.start):
                    if step:
                        decoder.append(ids[:, step])
                    logits = float((decoder.logits[0] - expected).abs().max())
                    errors.append((logits, _row_error(decoder.records, whole.layers(Side.DECODER), step)))
        return errors

    @cached_property
    def padded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, decoder inputs and targets, each [2, length], of a batch that pads the sentence.

        The second row is the sentence continued by its own first tokens.
        """
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
        """The recorded pass over the padded batch."""
        with torch.inference_mode():
            return self.translator.model(*self.padded[:2], record=True)

    def source_ids(self) -> Tensor:
        """Return the source ids [1, source] on the model's device."""
        return torch.tensor([self.trace.source_ids], device=self.translator.device)


def measured_once(measure: Callable[[Evidence], Value]) -> Callable[[Evidence], Value]:
    """Decorate a measure that several checks need, so that each Evidence computes it once."""

    @wraps(measure)
    def cached(evidence: Evidence) -> Value:
        if measure not in evidence.measured:
            evidence.measured[measure] = measure(evidence)
        return evidence.measured[measure]

    return cached


def _row_error(records: tuple[LayerRecord, ...], whole: tuple[LayerRecord, ...], step: int) -> float:
    """Return the largest difference of the rows that a step recorded from row `step` of the whole maps."""
    errors = []
    for mine, full in zip(records, whole):
        for kind in AttentionKind:
            if kind.side is Side.DECODER and mine.attention(kind) is not None:
                row = mine.attention(kind).weights  # [1, heads, 1, keys so far]
                expected = full.attention(kind).weights[:, :, step : step + 1, : row.shape[-1]]
                errors.append(float((row - expected).abs().max()))
    return max(errors)

"""The data that the live checks share: a trace, a second pass over the same ids, and copies of the trace's maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.checks import oracle
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord
from attention_atlas.model.nets.recurrent import RecurrentMemory
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

SMOOTHING = 0.1  # of the labels, as in the paper (section 5.4)


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

    copies: name -> copies of the trace's maps, and the tolerance that their format allows.
    """

    translator: Translator
    trace: TranslationTrace
    output: ForwardOutput
    copies: Mapping[str, tuple[Sequence[MapCopy], float]]

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

    @cached_property
    def largest_weight(self) -> float:
        """The largest attention weight."""
        return max((float(self.trace.maps(kind).weights.max()) for kind in self.trace.kinds), default=1.0)

    @cached_property
    def largest_probability(self) -> float:
        """The largest probability of a token."""
        return float(self.trace.top_probabilities.max())

    @cached_property
    def largest_logit(self) -> float:
        """The largest absolute logit."""
        with torch.inference_mode():
            return max(float(logits.abs().max()) for _, logits in self.logits(self.output.hidden[0]))

    @cached_property
    def largest_hidden(self) -> float:
        """The largest number of the decoder's output, typical of every normed stream."""
        return float(self.output.hidden.abs().max())

    @cached_property
    def largest_stream(self) -> float:
        """The largest number of the residual streams after every layer."""
        return max(float(record.after.abs().max()) for side in Side for record in self.output.layers(side))

    @cached_property
    def largest_embedding(self) -> float:
        """The largest number of the source's embeddings."""
        return float(torch.linalg.vector_norm(self.translator.model.embedding.weight.detach(), torch.inf))

    @property
    def num_targets(self) -> int:
        """The number of target tokens of the padded batch that are no padding."""
        return int((self.padded[2] != self.translator.tokenizer.pad_id).sum())

    @cached_property
    @torch.inference_mode()
    def torch_loss(self) -> float:
        """The smoothed F.cross_entropy a token of both sentences, each in a pass without padding."""
        source, inputs, targets = self.padded  # its second row is as long as the batch
        passes = self.output, self.translator.model(source[1:], inputs[1:])
        # A random model may write the padding symbol as if it were a word, which training ignores.
        pad_id = self.translator.tokenizer.pad_id
        options = {"label_smoothing": SMOOTHING, "reduction": "sum", "ignore_index": pad_id}
        summed = 0.0
        for output, sentence in zip(passes, targets):
            ids = sentence[: output.hidden.shape[1]]
            for part, logits in self.logits(output.hidden[0]):
                summed += float(F.cross_entropy(logits.float(), ids[part], **options))
        return summed / self.num_targets

    @property
    def paddings(self) -> list[Tensor]:
        """Which tokens of the padded batch's sources and decoder inputs are padding, bool [2, length].

        As in torch, True may not be attended to. Only the first row is padded, from its own length on: some families
        begin a sentence with the symbol that pads.
        """
        masks = []
        for ids, sentence in zip(self.padded, (self.trace.source_ids, self.trace.decoder_ids)):
            mask = torch.zeros_like(ids, dtype=torch.bool)
            mask[0, len(sentence) :] = True
            masks.append(mask)
        return masks

    @cached_property
    @torch.inference_mode()
    def masked_errors(self) -> list[tuple[float, float]]:
        """The errors of weights and of outputs of each attention in the padded batch, against torch's."""
        output, padding, errors = self.padded_output, self.paddings, []
        for kind in TRANSFORMER_KINDS:
            queries_padded = padding[kind is not AttentionKind.ENCODER_SELF]
            keys_padded = padding[kind is AttentionKind.DECODER_SELF]
            future = ~causal_mask(keys_padded.shape[1], device=keys_padded.device)[0, 0]
            for layer in range(len(output.records(kind))):
                passed = output.layer(kind, layer).sublayer(kind.sublayer)
                keys = output.memory if kind is AttentionKind.CROSS else passed.read
                module, record = self.translator.model.attention(kind, layer), output.attention(kind, layer)
                theirs, weights = oracle.torch_attention(module, record.bias)(
                    passed.read,
                    keys,
                    keys,
                    key_padding_mask=keys_padded,
                    average_attn_weights=False,
                    attn_mask=future if kind is AttentionKind.DECODER_SELF else None,
                )
                of_weights = (weights - record.weights).abs().amax((1, 3))  # over heads and keys
                of_outputs = (theirs - passed.added).abs().amax(2)
                errors.append((float(of_weights[~queries_padded].max()), float(of_outputs[~queries_padded].max())))
        return errors

    def source_ids(self) -> Tensor:
        """Return the source ids [1, source] on the model's device."""
        return torch.tensor([self.trace.source_ids], device=self.translator.device)


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

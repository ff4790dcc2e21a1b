"""The masks of a batch of two sentences, as the model makes them, and once more from lengths alone; what a padded pass
makes of them; and what becomes of a row in which nothing is open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.nets.masks import causal_mask, pad, padding_mask
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator


@dataclass(frozen=True, eq=False)
class BatchMasks:
    """Two sentences and their translations, each pair padded to one length. True = may attend.

    tokens, inputs  of source and decoder, padded: [2][length]
    ids, input_ids  int64 [2, length], as the model gets them
    lengths         int [2] of the sources, target_lengths of what the decoder reads
    padding         bool [2, source]: the model's padding_mask() of the ids
    from_lengths    bool [2, source]: position < length
    target_padding  bool [2, target]: the same of the decoder's inputs, which the model never makes
    causal          bool [target, target]
    interventions   that both sentences are read under
    written         by each row of the decoder, without padding: [2][target length]
    """

    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    inputs: tuple[tuple[str, ...], tuple[str, ...]]
    ids: torch.Tensor
    input_ids: torch.Tensor
    lengths: np.ndarray
    target_lengths: np.ndarray
    padding: np.ndarray
    from_lengths: np.ndarray
    target_padding: np.ndarray
    causal: np.ndarray
    interventions: Interventions = NO_INTERVENTIONS
    written: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def agree(self) -> bool:
        return np.array_equal(self.padding, self.from_lengths)

    def squares(self, sentence: int) -> dict[str, np.ndarray]:
        """The masks of one of the two sentences, bool [query, key]: of the encoder; of the decoder the padding, the
        future and both; and of cross-attention, target by source."""
        source, target = self.padding[sentence], self.target_padding[sentence]
        rows = len(self.causal)
        padded = np.broadcast_to(target, (rows, rows))
        return {
            "encoder": np.broadcast_to(source, (len(source), len(source))),
            "padding": padded,
            "future": self.causal,
            "both": padded & self.causal,
            "cross": np.broadcast_to(source, (rows, len(source))),
        }


def of_two(translator: Translator, trace: TranslationTrace, second: str | None = None) -> BatchMasks:
    """The trace's sentence beside `second`, or beside its own first words, under the trace's interventions. ValueError
    if `second` is too long, or if those cannot be run again."""
    check_rerun(translator, trace)
    if second is None:
        words = trace.source_text.split()
        second = " ".join(words[: max(1, len(words) // 2)])
    other = translator.translate(second, trace.direction, interventions=trace.interventions)
    pad_id = translator.tokenizer.pad_id
    pairs = [[list(one.source_ids), list(one.decoder_ids)] for one in (trace, other)]
    ids, input_ids = (pad([pair[side] for pair in pairs], pad_id) for side in (0, 1))
    lengths, target_lengths = (np.array([len(pair[side]) for pair in pairs]) for side in (0, 1))
    named = [
        [(*tokens, *["<pad>"] * (width - len(tokens))) for tokens in side]
        for side, width in (
            ((trace.source_tokens, other.source_tokens), ids.shape[1]),
            ((trace.decoder_inputs, other.decoder_inputs), input_ids.shape[1]),
        )
    ]
    return BatchMasks(
        tuple(named[0]),
        tuple(named[1]),
        ids,
        input_ids,
        lengths,
        target_lengths,
        padding_mask(ids, pad_id)[:, 0, 0].numpy(),
        np.arange(ids.shape[1])[None] < lengths[:, None],
        padding_mask(input_ids, pad_id)[:, 0, 0].numpy(),
        causal_mask(input_ids.shape[1])[0, 0].numpy(),
        trace.interventions,
        (trace.target_tokens, other.target_tokens),
    )


@torch.inference_mode()
def padded_pass(translator: Translator, masks: BatchMasks) -> ForwardOutput:
    """One recorded pass over both sentences at once, with the model's own masks."""
    ids, input_ids = masks.ids.to(translator.device), masks.input_ids.to(translator.device)
    return translator.model(ids, input_ids, interventions=masks.interventions, record=True)


def weight_on_closed(output: ForwardOutput, masks: BatchMasks) -> dict[AttentionKind, float]:
    """The largest weight that any layer and head gives to a cell that its mask closes, rows of padding left out."""
    found = {}
    for kind in output.kinds:
        weights, rows = output.weights(kind).float().cpu().numpy(), masks.lengths  # [layers, 2, heads, query, key]
        if kind is not AttentionKind.ENCODER_SELF:
            rows = masks.target_lengths
        name = {AttentionKind.ENCODER_SELF: "encoder", AttentionKind.DECODER_SELF: "both"}.get(kind, "cross")
        found[kind] = max(
            float(weights[:, i, :, : rows[i]][..., ~masks.squares(i)[name][: rows[i]]].max(initial=0.0))
            for i in range(2)
        )
    return found


@torch.inference_mode()
def without_target_padding(translator: Translator, masks: BatchMasks) -> float:
    """How far a padding mask in the decoder's self-attention would change its output at any real token: the largest
    difference. 0 up to rounding: padding stands on the right, and no real token looks to its right."""
    model = translator.model
    changes, ids = masks.interventions, masks.input_ids.to(translator.device)
    source = model.encode(masks.ids.to(translator.device), interventions=changes)
    x, causal = model.embed(ids, changes, decoder=True), causal_mask(ids.shape[1], device=ids.device)
    both = causal & padding_mask(ids, translator.tokenizer.pad_id)
    with_it, without = (model.decoder(x, mask, source, interventions=changes)[0] for mask in (both, causal))
    return max(
        float((with_it[i, :length] - without[i, :length]).abs().max())
        for i, length in enumerate(masks.target_lengths.tolist())
    )


@dataclass(frozen=True, eq=False)
class ClosedRow:
    """The softmax of one row of scores [key], all of its cells closed in three ways: by -infinity; by putting -1e9 in
    their place; by adding -1e9. Weights [key] each, NaN where there is no answer."""

    scores: np.ndarray
    infinite: np.ndarray
    replaced: np.ndarray
    added: np.ndarray


def closed_row(scores: np.ndarray) -> ClosedRow:
    """By torch, in float32. With -infinity the row is 0 / 0; -1e9 in every place gives an even row, so a token that may
    see nothing sees everything alike; added to the scores, it swallows what they were."""
    row = torch.as_tensor(scores, dtype=torch.float32)
    ways = (torch.full_like(row, float("-inf")), torch.full_like(row, -1e9), row - 1e9)
    return ClosedRow(np.asarray(scores), *(way.softmax(-1).numpy() for way in ways))

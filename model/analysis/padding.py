"""The masks of a batch of two sentences, what a padded pass does with them, and a softmax row that is masked entirely.

The model's masks are compared with masks computed from the sentences' lengths alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.nets.masks import causal_mask, pad, padding_mask
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator


@dataclass(frozen=True, eq=False)
class BatchMasks:
    """Two sentences and their translations, padded to one length. True = may attend.

    tokens, inputs  padded tokens of the source and of the decoder's input: [2][length]
    ids, input_ids  int64 [2, length], their ids
    lengths, target_lengths  int [2], the numbers of tokens without padding
    padding         bool [2, source], the model's padding_mask() of the ids
    from_lengths    bool [2, source], position < length
    target_padding  bool [2, target], a padding mask of the decoder's inputs, which the model does not use
    causal          bool [target, target]
    """

    traces: tuple[TranslationTrace, TranslationTrace]
    tokens: list[tuple[str, ...]]
    inputs: list[tuple[str, ...]]
    ids: torch.Tensor
    input_ids: torch.Tensor
    lengths: np.ndarray
    target_lengths: np.ndarray
    padding: np.ndarray
    from_lengths: np.ndarray
    target_padding: np.ndarray
    causal: np.ndarray

    @property
    def agree(self) -> bool:
        return np.array_equal(self.padding, self.from_lengths)

    def squares(self, sentence: int) -> dict[str, np.ndarray]:
        """Return the masks of one sentence, bool [query, key], by name.

        "encoder"; "padding", "future" and "both" of the decoder; "cross" of cross-attention.
        """
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


def make_batch_masks(translator: Translator, trace: TranslationTrace, second: str | None = None) -> BatchMasks:
    """Return the masks of a batch of the trace's sentence and `second`, by default the sentence's own first words.

    Raises ValueError if `second` is too long, or if the trace's interventions cannot be run again.
    """
    check_rerun(translator, trace)
    if second is None:
        words = trace.source_text.split()
        second = " ".join(words[: max(1, len(words) // 2)])
    traces = trace, translator.translate(second, trace.direction, interventions=trace.interventions)
    pad_id = translator.tokenizer.pad_id
    rows = [t.source_ids for t in traces], [t.decoder_ids for t in traces]
    ids, input_ids = (pad(side, pad_id) for side in rows)
    lengths, target_lengths = (np.array([*map(len, side)]) for side in rows)

    def pad_tokens(tokens: tuple[str, ...], padded: torch.Tensor) -> tuple[str, ...]:
        return (*tokens, *["<pad>"] * (padded.shape[1] - len(tokens)))

    return BatchMasks(
        traces,
        [pad_tokens(t.source_tokens, ids) for t in traces],
        [pad_tokens(t.decoder_inputs, input_ids) for t in traces],
        ids,
        input_ids,
        lengths,
        target_lengths,
        padding_mask(ids, pad_id)[:, 0, 0].numpy(),
        np.arange(ids.shape[1])[None] < lengths[:, None],
        padding_mask(input_ids, pad_id)[:, 0, 0].numpy(),
        causal_mask(input_ids.shape[1])[0, 0].numpy(),
    )


@torch.inference_mode()
def run_padded(translator: Translator, masks: BatchMasks) -> ForwardOutput:
    """Record one pass over both sentences, with the model's own masks."""
    ids, input_ids = masks.ids.to(translator.device), masks.input_ids.to(translator.device)
    return translator.model(ids, input_ids, interventions=masks.traces[0].interventions, record=True)


def max_masked_weight(output: ForwardOutput, masks: BatchMasks) -> dict[AttentionKind, float]:
    """Return the largest weight of any layer and head on a masked cell, by kind; padding rows are left out."""
    largest = {}
    for kind in output.kinds:
        weights, rows = output.weights(kind).float().cpu().numpy(), masks.lengths  # [layers, 2, heads, query, key]
        if kind is not AttentionKind.ENCODER_SELF:
            rows = masks.target_lengths
        name = {AttentionKind.ENCODER_SELF: "encoder", AttentionKind.DECODER_SELF: "both"}.get(kind, "cross")
        largest[kind] = max(
            float(weights[:, i, :, : rows[i]][..., ~masks.squares(i)[name][: rows[i]]].max(initial=0.0))
            for i in range(2)
        )
    return largest


@torch.inference_mode()
def measure_target_padding(translator: Translator, masks: BatchMasks) -> float:
    """Return the largest change that a padding mask in the decoder's self-attention makes at a real token.

    It is 0 up to rounding: padding is on the right, and no real token attends to its right.
    """
    model = translator.model
    changes, ids = masks.traces[0].interventions, masks.input_ids.to(translator.device)
    source = model.encode(masks.ids.to(translator.device), interventions=changes)
    x, causal = model.embed(ids, changes, decoder=True), causal_mask(ids.shape[1], device=ids.device)
    both = causal & padding_mask(ids, translator.tokenizer.pad_id)
    with_it, without = (model.decoder(x, mask, source, interventions=changes)[0] for mask in (both, causal))
    return max(
        float((with_it[i, :length] - without[i, :length]).abs().max())
        for i, length in enumerate(masks.target_lengths.tolist())
    )


def mask_whole_row(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the softmax of a row of scores [key], all masked in three ways, in float32; NaN if undefined.

    The scores are replaced by -infinity, replaced by -1e9, or -1e9 is added to them. With -infinity the row is 0 / 0.
    With -1e9 the weights are uniform, so a token that may attend to nothing attends to everything equally. Adding -1e9
    gives the same, since float32 loses the scores.
    """
    row = torch.as_tensor(scores, dtype=torch.float32)
    masked = (torch.full_like(row, float("-inf")), torch.full_like(row, -1e9), row - 1e9)
    infinite, replaced, added = (row.softmax(-1).numpy() for row in masked)
    return infinite, replaced, added

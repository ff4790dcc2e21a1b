"""A batch as in training: source, decoder inputs, outputs shifted by one, and the loss of every target token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

SMOOTHING = 0.1  # section 5.4
SENTENCES = 3


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """Sentences and their translations, padded on the right.

    source           int64 [sentence, source]
    inputs, outputs  int64 [sentence, target], the decoder's input, and the same shifted by one, which it must write
    tokens           the tokens of the three, by sentence
    losses           float64 [sentence, target], -log p of the token to be written, in nats; NaN at padding
    smoothed         the same with smoothed labels
    logits           the shape of the logits
    """

    source: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray
    tokens: tuple[tuple[tuple[str, ...], ...], ...]
    losses: np.ndarray
    smoothed: np.ndarray
    logits: tuple[int, ...]

    @property
    def real(self) -> int:
        """The number of target tokens that are not padding."""
        return int(np.isfinite(self.losses).sum())

    def mean(self, *, smoothed: bool = False) -> float:
        """Return the mean loss in nats per token, without padding."""
        return float(np.nansum(self.smoothed if smoothed else self.losses)) / self.real


def min_smoothed_loss(vocabulary: int) -> float:
    """Return the entropy of smoothed labels, the smallest possible loss, in nats (Szegedy et al. 2016, section 7)."""
    wrong = SMOOTHING / vocabulary
    right = 1 - SMOOTHING + wrong
    return float(-right * np.log(right) - (vocabulary - 1) * wrong * np.log(wrong))


def make_training_batch(translator: Translator, trace: TranslationTrace) -> TrainingBatch:
    """Return a batch of the trace's sentence with its translation and the checkpoint's first examples with a reference.

    It is run once, under the trace's interventions. Raises ValueError if those cannot be run again.
    """
    check_rerun(translator, trace)
    tokenizer = translator.tokenizer
    source, target = parse_direction(trace.direction)
    end, prefix = tokenizer.end_id, tokenizer.forced_prefix(target)
    pairs = [(trace.source_ids, [i for i in trace.target_ids if i != end])]
    for example in translator.examples.get(trace.direction, ()):
        if example.reference and example.text != trace.source_text and len(pairs) < SENTENCES:
            read = tokenizer.encode_source(example.text, target, source)
            pairs.append((read, [*prefix, *tokenizer.encode(example.reference)]))
    rows = [(read, [tokenizer.begin_id, *written], [*written, end]) for read, written in pairs]
    ids = [pad(side, tokenizer.pad_id) for side in zip(*rows)]
    read, inputs, outputs = (side.to(translator.device) for side in ids)
    with torch.inference_mode():
        output = translator.model(read, inputs, interventions=trace.interventions)
        logs = output.logits.double().log_softmax(-1)
    plain = -logs.gather(-1, outputs[..., None])[..., 0]
    smoothed = (1 - SMOOTHING) * plain - SMOOTHING * logs.mean(-1)
    padding = (ids[2] == tokenizer.pad_id).numpy()
    return TrainingBatch(
        *(side.numpy() for side in ids),
        tuple(tuple(tuple(tokenizer.tokens(row.tolist())) for row in side) for side in ids),
        *(np.where(padding, np.nan, loss.cpu().numpy()) for loss in (plain, smoothed)),
        tuple(output.logits.shape),
    )

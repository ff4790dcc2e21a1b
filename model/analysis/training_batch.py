"""A training batch as training sees it: what the encoder reads, what the decoder reads, the same one place on as what
it must write, and the loss of every cell."""

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
SENTENCES = 3  # at most


@dataclass(frozen=True, eq=False)
class SeenBatch:
    """Sentences and their translations, padded on the right.

    source, inputs, outputs  ids, int64 [sentence, source] and twice [sentence, target]: outputs are inputs one on
    tokens    of the three, by sentence
    losses    float64 [sentence, target]: -log p of the token to be written, in nats; NaN at padding
    smoothed  the same with smoothed labels
    logits    the shape of the logits
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
        """Cells that count."""
        return int(np.isfinite(self.losses).sum())

    def mean(self, *, smoothed: bool = False) -> float:
        """The loss, in nats a token: padding does not count."""
        return float(np.nansum(self.smoothed if smoothed else self.losses)) / self.real


def least(vocabulary: int, smoothing: float = SMOOTHING) -> float:
    """The least loss that smoothed labels leave, in nats a token: their entropy (Szegedy et al. 2016, section 7)."""
    other = smoothing / vocabulary
    own = 1 - smoothing + other
    return float(-own * np.log(own) - (vocabulary - 1) * other * np.log(other))


def seen(translator: Translator, trace: TranslationTrace, *, smoothing: float = SMOOTHING) -> SeenBatch:
    """The trace's sentence with its own translation, and beside it the checkpoint's first examples that have a
    reference, in one pass under the trace's interventions. ValueError where those cannot be run again."""
    check_rerun(translator, trace)
    tokenizer = translator.tokenizer
    source, target = parse_direction(trace.direction)
    end, prefix = tokenizer.end_id, tokenizer.forced_prefix(target)
    pairs = [(trace.source_ids, [i for i in trace.target_ids if i != end])]
    for example in translator.examples.get(trace.direction, ()):
        if example.reference and example.text != trace.source_text and len(pairs) < SENTENCES:
            read = tokenizer.encode_source(example.text, target, source)
            pairs.append((read, [*prefix, *tokenizer.encode(example.reference)]))
    ids = [
        pad(side, tokenizer.pad_id)
        for side in (
            [read for read, _ in pairs],
            [[tokenizer.begin_id, *written] for _, written in pairs],
            [[*written, end] for _, written in pairs],
        )
    ]
    read, inputs, outputs = (side.to(translator.device) for side in ids)
    with torch.inference_mode():
        output = translator.model(read, inputs, interventions=trace.interventions)
        logs = output.logits.double().log_softmax(-1)
    plain = -logs.gather(-1, outputs[..., None])[..., 0]
    smoothed = (1 - smoothing) * plain - smoothing * logs.mean(-1)
    padding = (ids[2] == tokenizer.pad_id).numpy()
    return SeenBatch(
        *(side.numpy() for side in ids),
        tuple(tuple(tuple(tokenizer.tokens(row.tolist())) for row in side) for side in ids),
        *(np.where(padding, np.nan, one.cpu().numpy()) for one in (plain, smoothed)),
        tuple(output.logits.shape),
    )
